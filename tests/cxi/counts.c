/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What operations of libfabric on endpoints of the CXI protocol cost a NIC, as its model counts: doorbells, bytes of
 * command rings, and read pointers that it stores. The model sees every doorbell, and performs what it is for at once.
 *
 *	counts PROVIDER		a line for each of operations[]: doorbells, bytes and pointers for one
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum { MANY = 64, LONG = 1024, KEY = 7, THREADS = 2 };

static uint64_t (*count)(const char *name); /* cassini_count */
static const char *const counted[] = { "rings", "ring_bytes", "pointers" };

enum { COUNTED = sizeof counted / sizeof counted[0] };

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t self;
static char out[LONG], in[LONG];
static uint64_t words[16];

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %ld\n", what, rc);
	exit(1);
}

/* take reads n completions. */
static void take(int n)
{
	struct fi_cq_tagged_entry e;

	while (n > 0) {
		long rc = fi_cq_read(cq, &e, 1);

		if (rc == -FI_EAGAIN)
			continue;
		must(rc, "fi_cq_read");
		n -= (int)rc;
	}
}

static void receive(uint64_t flags)
{
	struct iovec iov = { in, LONG };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };

	must(fi_trecvmsg(ep, &m, flags | FI_COMPLETION), "fi_trecvmsg");
}

static void send_of(size_t n, uint64_t flags)
{
	struct iovec iov = { out, n };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .addr = self };

	must(fi_tsendmsg(ep, &m, flags | FI_COMPLETION), "fi_tsendmsg");
}

static void receive_one(int i)
{
	(void)i;
	receive(0);
}
static void receive_more(int i)
{
	receive(i < MANY - 1 ? FI_MORE : 0);
}
static void send_8(int i)
{
	(void)i;
	send_of(8, 0);
}
static void send_more(int i)
{
	send_of(8, i < MANY - 1 ? FI_MORE : 0);
}
static void send_192(int i)
{
	(void)i;
	send_of(192, 0);
}
static void send_1k(int i)
{
	(void)i;
	send_of(LONG, 0);
}
static void write_8(int i)
{
	(void)i;
	must(fi_write(ep, out, 8, NULL, self, 0, KEY, NULL), "fi_write");
}
static void write_224(int i)
{
	(void)i;
	must(fi_write(ep, out, 224, NULL, self, 0, KEY, NULL), "fi_write");
}
static void write_1k(int i)
{
	(void)i;
	must(fi_write(ep, out, LONG, NULL, self, 0, KEY, NULL), "fi_write");
}
static void read_8(int i)
{
	(void)i;
	must(fi_read(ep, out, 8, NULL, self, 0, KEY, NULL), "fi_read");
}
static void inject(int i)
{
	(void)i;
	must(fi_inject_write(ep, out, 8, self, 0, KEY), "fi_inject_write");
}

static void add(int i)
{
	(void)i;
	must(fi_atomic(ep, words, 1, NULL, self, 0, KEY, FI_UINT64, FI_SUM, NULL), "fi_atomic");
}

static void fetch(int i)
{
	(void)i;
	must(fi_fetch_atomic(ep, words, 1, NULL, words + 1, NULL, self, 0, KEY, FI_UINT64, FI_SUM, NULL),
	     "fi_fetch_atomic");
}

/* An operation, of which MANY are counted; with receives they have some before them. */
static const struct {
	const char *name;
	void (*post)(int i);
	bool receives, completes;
	int threads;
} operations[] = {
	{ "fi_trecv of 1 KiB", receive_one, false, false, 1 },
	{ "the same with FI_MORE, 64 at a time", receive_more, false, false, 1 },
	{ "fi_tsend of 8 bytes", send_8, true, true, 1 },
	{ "the same with FI_MORE, 64 at a time", send_more, true, true, 1 },
	{ "the same by two threads", send_8, true, true, THREADS },
	{ "fi_tsend of 192 bytes", send_192, true, true, 1 },
	{ "fi_tsend of 1 KiB", send_1k, true, true, 1 },
	{ "fi_write of 8 bytes, key with an index", write_8, false, true, 1 },
	{ "fi_write of 224 bytes", write_224, false, true, 1 },
	{ "fi_write of 1 KiB", write_1k, false, true, 1 },
	{ "fi_inject_write of 8 bytes", inject, false, false, 1 },
	{ "fi_read of 8 bytes", read_8, false, true, 1 },
	{ "fi_atomic, a sum", add, false, true, 1 },
	{ "fi_fetch_atomic, a sum", fetch, false, true, 1 },
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void *posts(void *of)
{
	for (int i = 0; i < MANY; i++)
		operations[*(int *)of].post(i);
	return NULL;
}

/* measure prints what the posts of an operation cost, and ends them. */
static void measure(int n)
{
	uint64_t before[COUNTED];
	pthread_t threads[THREADS];
	int all = MANY * operations[n].threads;

	for (int i = 0; operations[n].receives && i < all; i++)
		receive(0);
	for (int i = 0; i < COUNTED; i++)
		before[i] = count(counted[i]);
	for (int i = 1; i < operations[n].threads; i++)
		must(-pthread_create(threads + i, NULL, posts, &n), "pthread_create");
	posts(&n);
	for (int i = 1; i < operations[n].threads; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < COUNTED; i++)
		printf("%s%.3f", i ? " " : "", (double)(count(counted[i]) - before[i]) / all);
	printf(" %s\n", operations[n].name);
	take(operations[n].receives ? 2 * all : operations[n].completes ? all : 0);
	for (int i = 0; operations[n].post == receive_one && i < all; i++) /* what was posted before ends */
		send_of(8, 0);
	for (int i = 0; operations[n].post == receive_more && i < all; i++)
		send_of(8, 0);
	if (!operations[n].receives && !operations[n].completes && operations[n].post != inject)
		take(2 * all);
}

static void open_endpoint(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 16 * MANY };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_mr *mr;
	char name[64];
	size_t n = sizeof name;

	hints->caps = FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, name, &n), "fi_getname");
	must(fi_av_insert(av, name, 1, &self, 0, NULL), "fi_av_insert");
	must(fi_mr_reg(domain, in, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), "fi_mr_reg");
	must(fi_mr_bind(mr, &ep->fid, 0), "fi_mr_bind");
	must(fi_mr_enable(mr), "fi_mr_enable");
}

int main(int argc, char **argv)
{
	void *model = dlopen("libcxi.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (argc != 2 || !model || !(count = (uint64_t(*)(const char *))dlsym(model, "cassini_count"))) {
		fprintf(stderr, "counts PROVIDER, over the model of the NIC\n");
		return 2;
	}
	open_endpoint(argv[1]);
	for (int n = 0; n < OPERATIONS; n++) /* maps and opens what the first of a kind does */
		if (operations[n].threads == 1 && operations[n].post != receive_more &&
		    operations[n].post != send_more) {
			if (operations[n].receives)
				receive(0);
			operations[n].post(0);
			if (operations[n].post == receive_one)
				send_of(8, 0);
			take(operations[n].receives || operations[n].post == receive_one ? 2
			     : operations[n].completes					 ? 1
											 : 0);
		}
	for (int n = 0; n < OPERATIONS; n++)
		measure(n);
	return 0;
}
