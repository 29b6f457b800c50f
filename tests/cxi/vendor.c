/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One side of tests/cxi/interop.sh: an endpoint of a libfabric provider that does what it reads, a command a line, and
 * answers with a line each. interop/main.go has the commands, and the same for hw/cxi.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../../include/weft/ext.h"

#define must(call) must_be((long)(call), #call)

/* Each side has a thread, which reads and answers by streams of its own. */
#define own static _Thread_local

own FILE *in, *out;

#define answer(...) fprintf(out, __VA_ARGS__)

static void must_be(long rc, const char *call)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", call, fi_strerror((int)-rc));
	exit(1);
}

enum { OPS = 256, PEERS = 64 };

/* What was posted, by its number. */
own struct op {
	struct fi_context2 context; /* first */
	unsigned char *b;
	size_t n;
	int search;
	int discard;
	int atomic;
	uint64_t element[6]; /* operand, comparand, result */
	struct fid_mr *mr;
	struct fid_cntr *count;
} ops[OPS];

/* The endpoint chooses keys, and what is written is counted. */
static int chosen, counted;

own struct fid_domain *domain;
own struct fid_ep *ep;
own struct fid_cq *cq;
own struct fid_av *av;

/* Those that were named, in turn, and which of them messages go to. */
own fi_addr_t peers[PEERS], peer = FI_ADDR_NOTAVAIL;
own int known;

/* number says which peer an address is, counted from 1. */
static int number(fi_addr_t from)
{
	for (int k = 0; k < known; k++) {
		if (peers[k] == from)
			return k + 1;
	}
	return 0;
}

static void open_endpoint(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;
	uint64_t name = 0;
	size_t n = sizeof name, least = 1000;

	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT2;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->protocol = FI_PROTO_CXI;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	if (chosen)
		hints->domain_attr->mr_mode |= FI_MR_PROV_KEY;
	if (counted)
		hints->caps |= FI_RMA_EVENT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	must(fi_fabric(info->fabric_attr, &fabric, NULL));
	must(fi_domain(fabric, info, &domain, NULL));
	must(fi_endpoint(domain, info, &ep, NULL));
	must(fi_cq_open(domain, &cq_attr, &cq, NULL));
	must(fi_av_open(domain, &av_attr, &av, NULL));
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_ep_bind(ep, &av->fid, 0));
	must(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
	must(fi_enable(ep));
	must(fi_getname(&ep->fid, &name, &n));
	answer("name");
	for (size_t k = 0; k < sizeof name; k++)
		answer(" %u", ((unsigned char *)&name)[k]);
	answer("\n");
}

/* sum is a checksum of n bytes (FNV-1a). */
static uint64_t sum(const unsigned char *b, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t k = 0; k < n; k++)
		h = (h ^ b[k]) * 0x100000001b3;
	return h;
}

static struct op *begin(unsigned int id, size_t n)
{
	struct op *o = &ops[id % OPS];

	free(o->b);
	o->b = calloc(1, n + 1);
	o->n = n;
	o->search = 0;
	o->discard = 0;
	o->atomic = 0;
	return o;
}

static void posted(long rc)
{
	if (rc == 0)
		answer("ok\n");
	else if (rc == -FI_EAGAIN)
		answer("again\n");
	else
		answer("failed %ld\n", rc);
}

static void receive(unsigned int id, int tagged, uint64_t tag, uint64_t ignore, size_t n, int directed, int many)
{
	struct op *o = begin(id, n);
	fi_addr_t from = directed ? peer : FI_ADDR_UNSPEC;
	struct iovec iov = { o->b, n };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = from, .context = o };

	if (tagged)
		posted(fi_trecv(ep, o->b, n, NULL, from, tag, ignore, o));
	else
		posted(fi_recvmsg(ep, &m, FI_COMPLETION | (many ? FI_MULTI_RECV : 0)));
}

/* fill makes what is sent. */
static void fill(struct op *o, unsigned int id)
{
	for (size_t k = 0; k < o->n; k++)
		o->b[k] = (unsigned char)(id * 131 + k * 7 + (k >> 8));
}

/* expose lets the peer read and write memory by a key, or one of both: rights has r, w, or both. */
static void expose(unsigned int id, uint64_t key, size_t n, const char *rights)
{
	uint64_t access = (strchr(rights, 'r') ? FI_REMOTE_READ : 0) | (strchr(rights, 'w') ? FI_REMOTE_WRITE : 0);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct op *o = begin(id, n);

	fill(o, id);
	must(fi_mr_reg(domain, o->b, n, access, 0, key, 0, &o->mr, NULL));
	if (counted) {
		must(fi_cntr_open(domain, &attr, &o->count, NULL));
		must(fi_mr_bind(o->mr, &o->count->fid, FI_REMOTE_WRITE));
	}
	must(fi_mr_bind(o->mr, &ep->fid, 0));
	must(fi_mr_enable(o->mr));
	answer("ok %" PRIx64 "\n", fi_mr_key(o->mr));
}

/* withdraw ends that. */
static void withdraw(unsigned int id)
{
	struct op *o = &ops[id % OPS];

	must(fi_close(&o->mr->fid));
	if (o->count)
		must(fi_close(&o->count->fid));
	o->count = NULL;
	answer("ok\n");
}

static void access_peer(unsigned int id, int get, uint64_t key, uint64_t off, size_t n)
{
	struct op *o = begin(id, n);
	long rc;

	o->search = 0;
	if (!get)
		fill(o, id);
	rc = get ? fi_read(ep, o->b, n, NULL, peer, off, key, o) : fi_write(ep, o->b, n, NULL, peer, off, key, o);
	if (rc == 0)
		answer("ok %" PRIx64 "\n", sum(o->b, n));
	else
		posted(rc);
}

/* put writes with a completion level, or with data. */
static void put(unsigned int id, uint64_t key, uint64_t off, size_t n, const char *level, uint64_t data)
{
	struct op *o = begin(id, n);
	struct iovec iov = { o->b, n };
	struct fi_rma_iov remote = { off, n, key };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = peer,
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = o,
				.data = data };
	uint64_t flags = FI_COMPLETION;
	long rc;

	fill(o, id);
	flags |= !strcmp(level, "delivery") ? FI_DELIVERY_COMPLETE : !strcmp(level, "inject") ? FI_INJECT : 0;
	if (!strcmp(level, "data")) /* prov/cxi has no FI_REMOTE_CQ_DATA in a message */
		rc = fi_writedata(ep, o->b, n, NULL, data, peer, off, key, o);
	else
		rc = fi_writemsg(ep, &m, flags);
	if (rc == 0)
		answer("ok %" PRIx64 "\n", sum(o->b, n));
	else
		posted(rc);
}

/* atomic performs an operation on an element. */
static void atomic(unsigned int id, uint64_t key, uint64_t off, int op, int type, int fetch, const uint64_t v[4])
{
	struct op *o = begin(id, 0);
	uint64_t *e = o->element;

	memcpy(e, v, 4 * sizeof *v);
	e[4] = e[5] = 0;
	o->atomic = 1;
	if (op >= FI_CSWAP)
		posted(fi_compare_atomic(ep, e, 1, NULL, e + 2, NULL, e + 4, NULL, peer, off, key,
					 (enum fi_datatype)type, (enum fi_op)op, o));
	else if (fetch)
		posted(fi_fetch_atomic(ep, e, 1, NULL, e + 4, NULL, peer, off, key, (enum fi_datatype)type,
				       (enum fi_op)op, o));
	else
		posted(fi_atomic(ep, e, 1, NULL, peer, off, key, (enum fi_datatype)type, (enum fi_op)op, o));
}

/* level_of is the flag by which a message is asked for at a completion level, or injected. */
static uint64_t level_of(const char *level)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} levels[] = { { "transmit", FI_TRANSMIT_COMPLETE },
		       { "match", FI_MATCH_COMPLETE },
		       { "inject", FI_INJECT },
		       { "injected", FI_INJECT_COMPLETE },
		       { "delivery", FI_DELIVERY_COMPLETE } };

	for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
		if (!strcmp(level, levels[k].name))
			return levels[k].flag;
	}
	fprintf(stderr, "level %s is not known\n", level);
	exit(1);
}

static void transmit(unsigned int id, int tagged, uint64_t tag, size_t n, int has_data, uint64_t data,
		     const char *level)
{
	struct op *o = begin(id, n);
	uint64_t flags = FI_COMPLETION | (has_data ? FI_REMOTE_CQ_DATA : 0);
	struct iovec iov = { o->b, n };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = peer, .context = o, .data = data };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer, .tag = tag, .context = o, .data = data
	};
	long rc;

	flags |= level_of(level);
	fill(o, id);
	rc = tagged ? fi_tsendmsg(ep, &t, flags) : fi_sendmsg(ep, &m, flags);
	if (rc == 0)
		answer("ok %" PRIx64 "\n", sum(o->b, n));
	else
		posted(rc);
}

static void search(unsigned int id, int tagged, uint64_t tag, uint64_t flags)
{
	struct op *o = begin(id, 0);
	struct fi_msg_tagged t = { .addr = FI_ADDR_UNSPEC, .tag = tag, .context = o };
	struct fi_msg m = { .addr = FI_ADDR_UNSPEC, .context = o };

	o->search = 1;
	posted(tagged ? fi_trecvmsg(ep, &t, flags) : fi_recvmsg(ep, &m, flags));
}

/* take receives what was claimed with the same context, or throws it away: flag is FI_DISCARD then. */
static void take(unsigned int id, size_t n, uint64_t flag)
{
	struct op *o = begin(id, n);
	struct iovec iov = { o->b, n };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = o, .ignore = 0xffffffffffff
	};

	o->discard = flag != 0;
	posted(fi_trecvmsg(ep, &t, FI_CLAIM | FI_COMPLETION | flag));
}

static void said(const struct fi_cq_tagged_entry *e, fi_addr_t from)
{
	struct op *o = e->op_context;
	const unsigned char *b;

	if (e->flags & FI_REMOTE_WRITE) { /* its context is the region's */
		answer("written %" PRIx64 " %zu %d\n", e->data, e->len, number(from));
		return;
	}
	b = e->flags & FI_MULTI_RECV || !o->search ? e->buf : o->b;
	if (!b || b < o->b || b > o->b + o->n)
		b = o->b;
	if (o->atomic)
		answer("performed %d %" PRIx64 " %" PRIx64 "\n", (int)(o - ops), o->element[4], o->element[5]);
	else if (e->flags & FI_READ)
		answer("read %d %" PRIx64 "\n", (int)(o - ops), sum(o->b, o->n));
	else if (!(e->flags & FI_RECV))
		answer("sent %d\n", (int)(o - ops));
	else if (o->discard)
		answer("discarded %d %zu\n", (int)(o - ops), e->len);
	else if (o->search)
		answer("found %d %zu %" PRIx64 "\n", (int)(o - ops), e->len, e->tag);
	else
		answer("received %d %zu %" PRIx64 " %" PRIx64 " %d %" PRIx64 "\n", (int)(o - ops), e->len,
		       e->flags & FI_TAGGED ? e->tag : 0, e->flags & FI_REMOTE_CQ_DATA ? e->data : 0, number(from),
		       sum(b, e->len));
}

static int failed(void)
{
	struct fi_cq_err_entry e = {};
	struct op *o;

	if (fi_cq_readerr(cq, &e, 0) != 1)
		return 0;
	o = e.op_context;
	if (e.err == FI_ECANCELED)
		answer("canceled %d\n", (int)(o - ops));
	else if (e.flags & (FI_RMA | FI_ATOMIC) && e.err == FI_EIO)
		answer("refused %d\n", (int)(o - ops));
	else if (e.err == FI_ENOMSG)
		answer("missing %d\n", (int)(o - ops));
	else if (e.err == FI_ETRUNC)
		answer("truncated %d %zu %zu\n", (int)(o - ops), e.len, e.olen);
	else
		answer("error %d %d\n", (int)(o - ops), e.err);
	return 1;
}

/* counter answers one of weft's counters of the endpoint. */
static void counter(const char *name)
{
	struct weft_stats_ops *stats;
	uint64_t v;

	must(fi_open_ops(&ep->fid, WEFT_STATS_OPS, 0, (void **)&stats, NULL));
	must(stats->read(&ep->fid, stats->find(name), 1, &v));
	answer("ok %" PRIu64 "\n", v);
}

/* await prints what ends, until that are n. */
static void await(int n)
{
	time_t end = time(NULL) + 30;
	struct fi_cq_tagged_entry e;
	fi_addr_t from;
	long rc;

	while (n > 0 && time(NULL) < end) {
		from = FI_ADDR_NOTAVAIL;
		rc = fi_cq_readfrom(cq, &e, 1, &from);
		if (rc == 1) {
			said(&e, from);
			n--;
		} else if (rc == -FI_EAVAIL) {
			n -= failed();
		}
	}
	answer(n > 0 ? "late\n" : "end\n");
}

/* now is in milliseconds. */
static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* drain prints what ends until nothing has for ms milliseconds. */
static void drain(long ms)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t from;
	long end = now() + ms, rc;

	while (now() < end) {
		from = FI_ADDR_NOTAVAIL;
		rc = fi_cq_readfrom(cq, &e, 1, &from);
		if (rc == 1)
			said(&e, from);
		else if (rc == -FI_EAVAIL)
			rc = failed();
		if (rc == 1)
			end = now() + ms;
	}
	answer("end\n");
}

/* side does what is read, until there is no more. */
static void side(const char *provider)
{
	unsigned int id, name[8], tagged, directed, many, has_data;
	uint64_t tag, ignore, data, v[4];
	char line[256], level[16], name_of[64];
	struct timespec rest = { .tv_nsec = 1000000 };
	size_t n;
	int count;

	open_endpoint(provider);
	setvbuf(out, NULL, _IOLBF, 0);
	fflush(out);
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "peer %u %u %u %u %u %u %u %u", name, name + 1, name + 2, name + 3, name + 4, name + 5,
			   name + 6, name + 7) == 8) {
			unsigned char b[8];

			for (int k = 0; k < 8; k++)
				b[k] = (unsigned char)name[k];
			must(fi_av_insert(av, b, 1, &peer, 0, NULL));
			peers[known++ % PEERS] = peer;
			answer("ok\n");
		} else if (sscanf(line, "to %d", &count) == 1) {
			peer = peers[(count - 1) % PEERS];
			answer("ok\n");
		} else if (sscanf(line, "receive %u %u %" SCNx64 " %" SCNx64 " %zu %u %u", &id, &tagged, &tag, &ignore,
				  &n, &directed, &many) == 7) {
			receive(id, (int)tagged, tag, ignore, n, (int)directed, (int)many);
		} else if (sscanf(line, "send %u %u %" SCNx64 " %zu %u %" SCNx64 " %15s", &id, &tagged, &tag, &n,
				  &has_data, &data, level) == 7) {
			transmit(id, (int)tagged, tag, n, (int)has_data, data, level);
		} else if (sscanf(line, "search %u %u %" SCNx64, &id, &tagged, &tag) == 3) {
			search(id, (int)tagged, tag, FI_PEEK | FI_COMPLETION);
		} else if (sscanf(line, "claim %u %u %" SCNx64, &id, &tagged, &tag) == 3) {
			search(id, (int)tagged, tag, FI_PEEK | FI_CLAIM | FI_COMPLETION);
		} else if (sscanf(line, "take %u %zu", &id, &n) == 2) {
			take(id, n, 0);
		} else if (sscanf(line, "discard %u", &id) == 1) {
			take(id, 0, FI_DISCARD);
		} else if (sscanf(line, "drop %u %u %" SCNx64, &id, &tagged, &tag) == 3) {
			search(id, (int)tagged, tag, FI_PEEK | FI_DISCARD | FI_COMPLETION);
		} else if (sscanf(line, "expose %u %" SCNx64 " %zu %15s", &id, &tag, &n, level) == 4) {
			expose(id, tag, n, level);
		} else if (sscanf(line, "content %u %" SCNu64 " %zu", &id, &data, &n) == 3) {
			answer("ok %" PRIx64 "\n", sum(ops[id % OPS].b + data, n));
		} else if (sscanf(line, "withdraw %u", &id) == 1) {
			withdraw(id);
		} else if (sscanf(line, "counter %63s", name_of) == 1) {
			counter(name_of);
		} else if (sscanf(line, "count %u", &id) == 1) {
			fi_cq_read(cq, NULL, 0);
			answer("ok %" PRIu64 "\n", fi_cntr_read(ops[id % OPS].count));
		} else if (sscanf(line, "write %u %" SCNx64 " %" SCNu64 " %zu", &id, &tag, &data, &n) == 4) {
			access_peer(id, 0, tag, data, n);
		} else if (sscanf(line, "read %u %" SCNx64 " %" SCNu64 " %zu", &id, &tag, &data, &n) == 4) {
			access_peer(id, 1, tag, data, n);
		} else if (sscanf(line, "put %u %" SCNx64 " %" SCNu64 " %zu %15s %" SCNx64, &id, &tag, &ignore, &n,
				  level, &data) == 6) {
			put(id, tag, ignore, n, level, data);
		} else if (sscanf(line,
				  "atomic %u %" SCNx64 " %" SCNu64 " %u %u %u %" SCNx64 " %" SCNx64 " %" SCNx64
				  " %" SCNx64,
				  &id, &tag, &ignore, &tagged, &directed, &many, v, v + 1, v + 2, v + 3) == 10) {
			atomic(id, tag, ignore, (int)tagged, (int)directed, (int)many, v);
		} else if (sscanf(line, "cancel %u", &id) == 1) {
			posted(fi_cancel(&ep->fid, &ops[id % OPS]));
		} else if (sscanf(line, "await %d", &count) == 1) {
			await(count);
		} else if (sscanf(line, "drain %d", &count) == 1) {
			drain(count);
		} else if (!strcmp(line, "rest\n")) {
			for (int k = 0; k < 5; k++) {
				fi_cq_read(cq, NULL, 0);
				nanosleep(&rest, NULL);
			}
			answer("ok\n");
		} else {
			answer("what\n");
		}
	}
}

struct start {
	const char *provider;
	int from, to;
};

static void *start(void *arg)
{
	const struct start *s = arg;

	in = fdopen(s->from, "r");
	out = fdopen(s->to, "w");
	if (!in || !out)
		exit(1);
	side(s->provider);
	return NULL;
}

/* A provider, or two, each on a thread of this process: the second has the descriptors 3 and 4. */
int main(int argc, char **argv)
{
	struct start sides[] = { { argc > 1 ? argv[1] : "cxi", 0, 1 }, { argc > 2 ? argv[2] : NULL, 3, 4 } };
	pthread_t second;

	chosen = getenv("INTEROP_KEYS") != NULL;
	counted = chosen && !strcmp(getenv("INTEROP_KEYS"), "counted");
	if (sides[1].provider)
		must(-pthread_create(&second, NULL, start, &sides[1]));
	start(&sides[0]);
	if (sides[1].provider)
		must(-pthread_join(second, NULL));
	return 0;
}
