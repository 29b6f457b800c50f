/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the host does for a message in libfabric's own CXI provider, over the stepped model of the NIC, which stands
 * still while the host is timed. For each line of standard input it does one round and prints a line: the nanoseconds
 * of fi_trecv, of fi_tsend of 8, 192 and 1024 bytes, of fi_cq_read of one completion of a send and of a receive, and of
 * one that finds nothing. TestBeside of hw/cxi runs it in turns with its own rounds.
 *
 *	posts [domain|safe [weft]]	FI_THREAD_DOMAIN; else FI_THREAD_SAFE. weft: over its provider, with
 *					FI_WEFT_CXI=native
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

enum { COUNT = 200, LONGEST = 1024 };

static unsigned int (*step)(unsigned int n); /* cassini_step */

/* turn steps the NIC for calls that wait for it, until they are made. */
static void *turn(void *over)
{
	while (!atomic_load((atomic_bool *)over))
		step(1u << 30);
	return NULL;
}

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %ld\n", what, rc);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One side: an endpoint with a completion queue. */
struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
};

static struct side sender, receiver;
static fi_addr_t peer;
static char out[LONGEST], in[COUNT][LONGEST];

static void open_side(struct side *s, struct fid_domain *domain, struct fi_info *info, struct fid_av *av)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4 * COUNT };

	must(fi_endpoint(domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_cq_open(domain, &attr, &s->cq, NULL), "fi_cq_open");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

static void open_both(enum fi_threading threading, const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	char name[64];
	size_t n = sizeof name;

	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	hints->domain_attr->threading = threading;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	open_side(&sender, domain, info, av);
	open_side(&receiver, domain, info, av);
	must(fi_getname(&receiver.ep->fid, name, &n), "fi_getname");
	must(fi_av_insert(av, name, 1, &peer, 0, NULL), "fi_av_insert");
}

/* reads returns the time of one of COUNT calls that find a completion each, or none do. */
static double reads(struct side *s, int each)
{
	struct fi_cq_tagged_entry e;
	double from = now();

	for (int i = 0; i < COUNT; i++)
		if (fi_cq_read(s->cq, &e, 1) != (each ? 1 : -FI_EAGAIN)) {
			fprintf(stderr, "fi_cq_read %d: not what is expected\n", i);
			exit(1);
		}
	return (now() - from) / COUNT;
}

struct times {
	double receive, send, sent, received, empty;
};

static struct times transfer(size_t length)
{
	struct times t;
	double from = now();

	for (int i = 0; i < COUNT; i++)
		must(fi_trecv(receiver.ep, in[i], LONGEST, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, NULL), "fi_trecv");
	t.receive = (now() - from) / COUNT;
	step(1u << 30);
	from = now();
	for (int i = 0; i < COUNT; i++)
		must(fi_tsend(sender.ep, out, length, NULL, peer, (uint64_t)i, NULL), "fi_tsend");
	t.send = (now() - from) / COUNT;
	step(1u << 30);
	t.sent = reads(&sender, 1);
	t.received = reads(&receiver, 1);
	t.empty = reads(&receiver, 0);
	return t;
}

int main(int argc, char **argv)
{
	void *model = dlopen("libcxi.so.1", RTLD_NOW);
	atomic_bool over = false;
	pthread_t thread;
	char line[16];

	if (!model || !(step = (unsigned int (*)(unsigned int))dlsym(model, "cassini_step"))) {
		fprintf(stderr, "libcxi.so.1 is no model of the NIC\n");
		return 1;
	}
	must(-pthread_create(&thread, NULL, turn, &over), "pthread_create");
	open_both(argc > 1 && !strcmp(argv[1], "domain") ? FI_THREAD_DOMAIN : FI_THREAD_SAFE,
		  argc > 2 ? argv[2] : "cxi");
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	while (fgets(line, sizeof line, stdin)) {
		struct times small = transfer(8), medium = transfer(192), large = transfer(1024);

		printf("%.2f %.2f %.2f %.2f %.2f %.2f %.2f\n", small.receive, small.send, medium.send, large.send,
		       small.sent, small.received, small.empty);
		fflush(stdout);
	}
	return 0;
}
