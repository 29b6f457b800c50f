/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether the thread of an application sleeps in calls while endpoints of the CXI protocol recover from flow control:
 * two senders post more messages than their receiver has room for, which are dropped and sent again. Prints how often
 * the thread gave up its processor by itself, for how many microseconds it neither ran nor waited for a processor (0
 * where it never gave it up), how many messages there were beyond room, and the milliseconds of it all. Other threads
 * of the provider's are not counted.
 *
 *	recovery PROVIDER
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

enum { SENDERS = 2, EACH = 540, LENGTH = 8000, ROOM = 80 /* messages in two buffers of 320,000 bytes */ };

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	int ended;
};

static struct fi_info *info;
static struct fid_domain *domain;
static struct fid_av *av;
static char out[LENGTH], in[LENGTH];

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %ld\n", what, rc);
	exit(1);
}

static void open_domain(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;

	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
}

static void open_side(struct side *s)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4 * SENDERS * EACH };

	must(fi_endpoint(domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_cq_open(domain, &attr, &s->cq, NULL), "fi_cq_open");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

static void progress(struct side *s)
{
	struct fi_cq_tagged_entry e[16];
	long n = fi_cq_read(s->cq, e, 16);

	if (n == -FI_EAGAIN)
		return;
	must(n, "fi_cq_read");
	s->ended += (int)n;
}

/* clock_ms is a clock of the system's, in milliseconds. */
static double clock_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* awake is how long this thread has run or waited for a processor, in milliseconds. */
static double awake(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "r");
	double waited;

	if (!f || fscanf(f, "%*f %lf", &waited) != 1) {
		fprintf(stderr, "/proc/thread-self/schedstat cannot be read\n");
		exit(1);
	}
	fclose(f);
	return clock_ms(CLOCK_THREAD_CPUTIME_ID) + waited / 1e6;
}

int main(int argc, char **argv)
{
	struct side senders[SENDERS] = {}, receiver = {};
	struct rusage before, after;
	char name[64];
	size_t n = sizeof name;
	fi_addr_t peer;
	double from, rested;
	long slept;

	if (argc != 2)
		return 2;
	open_domain(argv[1]);
	open_side(&receiver);
	must(fi_getname(&receiver.ep->fid, name, &n), "fi_getname");
	must(fi_av_insert(av, name, 1, &peer, 0, NULL), "fi_av_insert");
	for (int i = 0; i < SENDERS; i++)
		open_side(senders + i);
	for (int i = 0; i < EACH; i++)
		for (int k = 0; k < SENDERS; k++)
			must(fi_tsend(senders[k].ep, out, LENGTH, NULL, peer, 1, NULL), "fi_tsend");
	must(getrusage(RUSAGE_THREAD, &before), "getrusage");
	from = clock_ms(CLOCK_MONOTONIC);
	rested = from - awake();
	for (int posted = 0; receiver.ended < SENDERS * EACH;) {
		if (posted < SENDERS * EACH && !fi_trecv(receiver.ep, in, LENGTH, NULL, FI_ADDR_UNSPEC, 1, 0, NULL))
			posted++;
		progress(&receiver);
		for (int k = 0; k < SENDERS; k++)
			progress(senders + k);
	}
	for (int k = 0; k < SENDERS; k++)
		while (senders[k].ended < EACH)
			progress(senders + k);
	rested = clock_ms(CLOCK_MONOTONIC) - awake() - rested;
	must(getrusage(RUSAGE_THREAD, &after), "getrusage");
	slept = after.ru_nvcsw - before.ru_nvcsw;
	printf("%ld %.0f %d %.0f\n", slept, slept && rested > 0 ? 1e3 * rested : 0, SENDERS * EACH - ROOM,
	       clock_ms(CLOCK_MONOTONIC) - from);
	return 0;
}
