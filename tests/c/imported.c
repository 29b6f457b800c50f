/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Imported completion queues, counters and shared receive contexts (fi_peer(3)): this program is
 * the owner, with a queue of receives as simple as can be.
 */
#include "counts.h"

#if FI_MAJOR_VERSION < 2

static void test_skipped(long unused)
{
	(void)unused;
	SKIP("these headers are of libfabric %d.%d: their peer structures differ from 2.0's", FI_MAJOR_VERSION,
	     FI_MINOR_VERSION);
}

static const struct test tests[] = { { "imported", test_skipped, 1, 30, 0 } };

#else

#include <poll.h>

#include <rdma/providers/fi_peer.h>

#define ENTRIES 64

/* ---- the owner ---- */

struct owned {
	struct fi_peer_rx_entry entry; /* first */
	struct iovec iov[2];
	uint64_t ignore;
	bool used, posted, queued, tagged;
	int order;
};

static struct owner {
	struct fid_peer_cq cq;
	struct fid_peer_cntr cntr;
	struct fid_peer_srx srx;
	struct owned pool[ENTRIES];
	int order;
	struct fi_cq_tagged_entry done[ENTRIES];
	fi_addr_t src[ENTRIES];
	struct fi_cq_err_entry failed[ENTRIES];
	int ndone, nfailed, refuse; /* writes to refuse */
	int incs, errs, frees;
	int asked[2];		   /* calls of each_unspec, for srx and other */
	struct fid_peer_srx other; /* a second context, which gets no messages */
} owner;

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			uint64_t tag, fi_addr_t src)
{
	CHECK(cq == &owner.cq);
	if (owner.refuse && owner.refuse--)
		return -FI_EAGAIN;
	owner.src[owner.ndone] = src;
	owner.done[owner.ndone++] = (struct fi_cq_tagged_entry){ context, flags, len, buf, data, tag };
	CHECK(owner.ndone < ENTRIES);
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *e)
{
	CHECK(cq == &owner.cq && owner.nfailed < ENTRIES);
	owner.failed[owner.nfailed++] = *e;
	return 0;
}

static void cntr_inc(struct fid_peer_cntr *c)
{
	CHECK(c == &owner.cntr);
	owner.incs++;
}
static void cntr_incerr(struct fid_peer_cntr *c)
{
	CHECK(c == &owner.cntr);
	owner.errs++;
}

static struct owned *alloc_entry(void)
{
	for (struct owned *o = owner.pool; o < owner.pool + ENTRIES; o++)
		if (!o->used) {
			memset(o, 0, sizeof(*o));
			o->used = true;
			o->order = owner.order++;
			o->entry.srx = &owner.srx;
			o->entry.iov = o->iov;
			return o;
		}
	CHECKF(false, "no free entry");
	return NULL;
}

static struct owned *find(bool posted, bool tagged, fi_addr_t addr, uint64_t tag, uint64_t ignore)
{
	struct owned *first = NULL;

	for (struct owned *o = owner.pool; o < owner.pool + ENTRIES; o++) {
		uint64_t mask = posted ? o->ignore : ignore;
		fi_addr_t want = posted ? o->entry.addr : addr;
		fi_addr_t have = posted ? addr : o->entry.addr;

		if (!o->used || o->tagged != tagged || (posted ? !o->posted : !o->queued))
			continue;
		if (want != FI_ADDR_UNSPEC && want != have)
			continue;
		if (tagged && (o->entry.tag | mask) != (tag | mask))
			continue;
		if (!first || o->order < first->order)
			first = o;
	}
	return first;
}

static int get(bool tagged, struct fi_peer_match_attr *m, struct fi_peer_rx_entry **entry)
{
	struct owned *o = find(true, tagged, m->addr, m->tag, 0);
	bool found = o;

	if (found) {
		o->posted = false;
	} else {
		o = alloc_entry();
		o->tagged = tagged;
	}
	o->entry.addr = m->addr;
	o->entry.tag = m->tag;
	o->entry.msg_size = m->msg_size;
	*entry = &o->entry;
	return found ? 0 : -FI_ENOENT;
}

static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *m, struct fi_peer_rx_entry **entry)
{
	CHECK(srx == &owner.srx && m->tag == 0);
	return get(false, m, entry);
}

static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *m, struct fi_peer_rx_entry **entry)
{
	CHECK(srx == &owner.srx);
	return get(true, m, entry);
}

static int queue(struct fi_peer_rx_entry *entry)
{
	struct owned *o = (struct owned *)entry;

	CHECK(o->used && !o->queued && !o->posted);
	o->queued = true;
	return 0;
}

static void each_unspec(struct fid_peer_srx *srx, fi_addr_t (*address)(struct fi_peer_rx_entry *))
{
	CHECK(srx == &owner.srx || srx == &owner.other);
	owner.asked[srx == &owner.other]++;
	for (struct owned *o = owner.pool; o < owner.pool + ENTRIES; o++)
		if (o->used && o->entry.srx == srx && o->queued && o->entry.addr == FI_ADDR_UNSPEC)
			o->entry.addr = address(&o->entry);
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	struct owned *o = (struct owned *)entry;

	CHECK(o->used && !o->queued && !o->posted);
	o->used = false;
	owner.frees++;
}

static struct fi_ops_cq_owner cq_owner = { sizeof(cq_owner), cq_write, cq_writeerr };
static struct fi_ops_cntr_owner cntr_owner = { sizeof(cntr_owner), cntr_inc, cntr_incerr };
static struct fi_ops_srx_owner srx_owner = {
	sizeof(srx_owner), get_msg, get_tag, queue, queue, each_unspec, free_entry,
};

/* The application's receive on the owner. */
static void owner_recv(bool tagged, void *buf, size_t len, fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct owned *o = find(false, tagged, src, tag, ignore);
	bool found = o;

	if (!found) {
		o = alloc_entry();
		o->entry.addr = src;
		o->entry.tag = tag;
	}
	o->tagged = tagged;
	o->ignore = ignore;
	o->iov[0] = (struct iovec){ buf, len / 2 };
	o->iov[1] = (struct iovec){ (char *)buf + len / 2, len - len / 2 };
	o->entry.count = 2;
	o->entry.context = context;
	o->entry.flags |= FI_RECV | (tagged ? FI_TAGGED : FI_MSG);
	if (!found) {
		o->posted = true;
		return;
	}
	o->queued = false;
	OK(tagged ? owner.srx.peer_ops->start_tag(&o->entry) : owner.srx.peer_ops->start_msg(&o->entry));
}

/* ---- weft as its peer ---- */

#define ID(rank) ((fi_addr_t)(0xabc000 + (rank))) /* user ids of addresses */

struct peer {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_ep *srx, *ep;
	fi_addr_t addr[2];
};

static void open_peer(struct peer *p, struct fid_peer_srx *imported)
{
	struct fi_info *hints = node_hints(&(struct node_opts){ .caps = FI_MSG | FI_TAGGED | FI_SOURCE |
									FI_DIRECTED_RECV | FI_PEER | FI_AV_USER_ID });
	struct fi_peer_cq_context cq = { sizeof(cq), &owner.cq };
	struct fi_peer_cntr_context cntr = { sizeof(cntr), &owner.cntr };
	struct fi_peer_srx_context srx = { sizeof(srx), imported };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fi_cntr_attr bytes_attr = { .flags = FI_PEER, .events = FI_CNTR_EVENTS_BYTES };
	struct fi_rx_attr rx_attr = { .op_flags = FI_PEER };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	owner.cq.owner_ops = &cq_owner;
	owner.cntr.owner_ops = &cntr_owner;
	imported->owner_ops = &srx_owner;
	OK(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &p->info));
	fi_freeinfo(hints);
	CHECK(p->info->caps & FI_PEER && p->info->domain_attr->caps & FI_PEER);
	OK(fi_fabric(p->info->fabric_attr, &p->fabric, NULL));
	OK(fi_domain(p->fabric, p->info, &p->domain, NULL));
	CHECK_RC(fi_cq_open(p->domain, &cq_attr, &p->cq, NULL), -FI_EINVAL);
	OK(fi_cq_open(p->domain, &cq_attr, &p->cq, &cq));
	CHECK_RC(fi_cntr_open(p->domain, &bytes_attr, &p->cntr, &cntr), -FI_ENOSYS);
	OK(fi_cntr_open(p->domain, &cntr_attr, &p->cntr, &cntr));
	CHECK_RC(fi_srx_context(p->domain, &rx_attr, &p->srx, NULL), -FI_EINVAL);
	OK(fi_srx_context(p->domain, &rx_attr, &p->srx, &srx));
	OK(fi_av_open(p->domain, &av_attr, &p->av, NULL));
	OK(fi_endpoint(p->domain, p->info, &p->ep, NULL));
	OK(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(p->ep, &p->cntr->fid, FI_SEND | FI_RECV));
	OK(fi_ep_bind(p->ep, &p->av->fid, 0));
	OK(fi_ep_bind(p->ep, &p->srx->fid, 0));
	OK(fi_enable(p->ep));
}

static void insert(struct peer *p, int rank, struct name *name)
{
	fi_addr_t addr = ID(rank);

	CHECK(fi_av_insert(p->av, name->bytes, 1, &addr, FI_AV_USER_ID, NULL) == 1);
	CHECK(addr != ID(rank)); /* what transfers take is weft's own */
	p->addr[rank] = addr;
}

/* Exchanges names; rank 1 inserts rank 0 only when it is notified to. */
static void connect_peer(struct peer *p, struct name names[2])
{
	names[test_rank].len = sizeof(names[0].bytes);
	OK(fi_getname(&p->ep->fid, names[test_rank].bytes, &names[test_rank].len));
	link_send(!test_rank, &names[test_rank], sizeof(names[0]));
	link_recv(!test_rank, &names[!test_rank], sizeof(names[0]));
}

static void close_peer(struct peer *p)
{
	OK(fi_close(&p->ep->fid));
	OK(fi_close(&p->srx->fid));
	OK(fi_close(&p->cq->fid));
	OK(fi_close(&p->cntr->fid));
	OK(fi_close(&p->av->fid));
	OK(fi_close(&p->domain->fid));
	OK(fi_close(&p->fabric->fid));
	fi_freeinfo(p->info);
}

static void turn(struct peer *p)
{
	fi_cq_read(p->cq, NULL, 0);
	CHECK(fi_cntr_read(p->cntr) == 0);
}

/* Progress until the owner has n completions and m errors. */
static void until(struct peer *p, int n, int m)
{
	uint64_t end = now_ms() + 20000;

	while (owner.ndone < n || owner.nfailed < m) {
		CHECKF(now_ms() < end, "%d completions and %d errors, want %d and %d", owner.ndone, owner.nfailed, n,
		       m);
		turn(p);
	}
}

static void send_to(struct peer *p, bool tagged, void *buf, size_t len, uint64_t tag)
{
	ssize_t rc;

	do {
		rc = tagged ? fi_tsenddata(p->ep, buf, len, NULL, tag + 1, p->addr[1], tag, NULL)
			    : fi_send(p->ep, buf, len, NULL, p->addr[1], NULL);
		turn(p);
	} while (rc == -FI_EAGAIN);
	OK(rc);
}

/* Waits for a byte of the other side, with progress. */
static void await_byte(struct peer *p)
{
	struct pollfd fd = { .fd = link_fd(!test_rank), .events = POLLIN };
	char byte;

	while (poll(&fd, 1, 0) == 0)
		turn(p);
	link_recv(!test_rank, &byte, 1);
}

static void notify(void)
{
	link_send(!test_rank, "x", 1);
}

static const size_t lengths[] = { 0, 8, 100, 5000, 100000, 1 << 20 };
#define LENGTHS 6
#define MOST (1 << 20)

static uint64_t entries(struct peer *p)
{
	return value(open_stats(&p->domain->fid), &p->domain->fid, "runtime_entries");
}

/* Messages of every protocol that find a receive, and that find none. */
static void test_messages(long unexpected)
{
	static char buf[MOST];
	uint64_t before;
	struct name names[2];
	struct peer p;

	open_peer(&p, &owner.srx);
	connect_peer(&p, names);
	insert(&p, !test_rank, &names[!test_rank]);
	before = entries(&p);
	for (int i = 0; i < 2 * LENGTHS; i++) {
		size_t len = lengths[i / 2];
		bool tagged = i % 2;

		if (test_rank == 0) {
			fill(buf, len, i);
			if (!unexpected)
				await_byte(&p);
			send_to(&p, tagged, buf, len, i);
			if (unexpected)
				notify();
			until(&p, i + 1, 0);
			await_byte(&p);
		} else {
			if (unexpected) {
				await_byte(&p);
				for (int n = 0; n < 1000; n++)
					turn(&p);
				CHECK(owner.ndone == i);
				owner.refuse = 3;
			}
			owner_recv(tagged, buf, MOST, FI_ADDR_UNSPEC, i, 0, &buf[i]);
			if (!unexpected)
				notify();
			until(&p, i + 1, 0);
			struct fi_cq_tagged_entry *e = &owner.done[i];
			CHECK(e->len == len && e->op_context == &buf[i]);
			CHECK(e->flags & FI_RECV && e->flags & (tagged ? FI_TAGGED : FI_MSG));
			CHECK(!tagged || (e->tag == (uint64_t)i && e->data == (uint64_t)i + 1));
			CHECKF(owner.src[i] == ID(0), "source %#lx", (unsigned long)owner.src[i]);
			verify(buf, len, i);
			CHECK(owner.frees == i + 1);
			notify();
		}
	}
	CHECK(owner.incs == 2 * LENGTHS && owner.errs == 0);
	before = entries(&p) - before; /* each delivery enters the runtime, which calls the owner */
	if (test_rank == 1)
		CHECKF(before >= 2 * LENGTHS && before <= 3 * LENGTHS, "%d entries", (int)before);
	close_peer(&p);
}

/* Truncation, discarded messages, a sender whose address is known later. */
static void test_edges(long unused)
{
	static char buf[MOST];
	struct name names[2];
	struct peer p;
	struct owned *o;

	(void)unused;
	open_peer(&p, &owner.srx);
	connect_peer(&p, names);
	if (test_rank == 0) {
		insert(&p, 1, &names[1]);
		for (int i = 0; i < 6; i++) {
			send_to(&p, i < 4, buf, i % 2 ? MOST : 100, i);
			await_byte(&p);
		}
		until(&p, 6, 0);
		close_peer(&p);
		return;
	}
	for (int i = 0; i < 2; i++) { /* too long */
		owner_recv(true, buf, 60, FI_ADDR_UNSPEC, i, 0, NULL);
		until(&p, 0, i + 1);
		CHECK(owner.failed[i].err == FI_ETRUNC && owner.failed[i].tag == (uint64_t)i);
		notify();
	}
	for (int i = 2; i < 6; i++) { /* no one's; the address of the second is notified later */
		bool tagged = i < 4;

		while (!(o = find(false, tagged, FI_ADDR_UNSPEC, i, 0)))
			turn(&p);
		CHECK(o->entry.addr == (i < 4 ? FI_ADDR_UNSPEC : ID(0)));
		CHECK(!tagged || (o->entry.flags & FI_REMOTE_CQ_DATA && o->entry.cq_data == (uint64_t)i + 1));
		if (i == 3) {
			insert(&p, 0, &names[0]);
			CHECKF(o->entry.addr == ID(0), "address %#lx", (unsigned long)o->entry.addr);
		}
		o->queued = false;
		OK(tagged ? owner.srx.peer_ops->discard_tag(&o->entry) : owner.srx.peer_ops->discard_msg(&o->entry));
		o->used = false; /* the entry stays the owner's */
		notify();
	}
	CHECK(owner.frees == 2 && owner.ndone == 0);
	CHECK(fi_recv(p.ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL) != 0);
	close_peer(&p);
}

/* What is inserted into an address vector is news for the contexts of its endpoints only. */
static void test_apart(long unused)
{
	struct name name = { .len = sizeof(name.bytes) };
	struct peer p[2];

	(void)unused;
	open_peer(&p[0], &owner.srx);
	open_peer(&p[1], &owner.other);
	OK(fi_getname(&p[0].ep->fid, name.bytes, &name.len));
	for (int i = 0; i < 2; i++) {
		insert(&p[i], 0, &name);
		CHECKF(owner.asked[0] == 1 && owner.asked[1] == i, "insert %d: asked %d and %d times", i,
		       owner.asked[0], owner.asked[1]);
	}
	close_peer(&p[0]);
	close_peer(&p[1]);
}

static const struct test tests[] = {
	{ "expected", test_messages, 2, 60, 0 },
	{ "unexpected", test_messages, 2, 60, 1 },
	{ "edges", test_edges, 2, 60, 0 },
	{ "apart", test_apart, 1, 60, 0 },
};

#endif

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
