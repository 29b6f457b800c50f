/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What calls of libfabric on an endpoint of the CXI protocol cost, over the stepped model of the NIC, which stands
 * still while the host is timed. For each line of standard input it does one round and prints a line of numbers: the
 * nanoseconds of columns[], then what the model counted for each message. tests/cxi/calls.sh runs providers in turns.
 *
 *	calls PROVIDER safe|domain	rounds
 *	calls PROVIDER safe|domain|completion marked	two rounds, the second with breakpoints around what is measured
 *					(tests/cxi/instructions.c)
 *	calls PROVIDER memory		bytes that an endpoint adds to what the process has in memory, and how many of them
 *					are event queues
 *	calls PROVIDER many N [SIZE]	nanoseconds to read a message whose receive is behind N others, with a receive
 *					context of SIZE
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
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

enum { MOST = 200, FEWER = 20, LONGEST = 1024, ENDPOINTS = 16 };

static unsigned int (*step)(unsigned int n); /* cassini_step */
static uint64_t (*count)(const char *name);  /* cassini_count */
static int calls = MOST;		     /* that are measured at a time */
static const char *const counted[] = { "commands", "cstates", "pointers" };

enum { COUNTED = sizeof counted / sizeof counted[0] };

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %ld\n", what, rc);
	exit(1);
}

/* turn steps the NIC for calls that wait for it, until they are made. */
static void *turn(void *over)
{
	while (!atomic_load((atomic_bool *)over))
		step(1u << 30);
	return NULL;
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

static struct fid_domain *domain;
static struct fid_av *av;
static struct fi_info *info;
static struct side sender, receiver;
static struct side second; /* the peer of the second thread, where threads have a peer each */
static fi_addr_t peer, other_peer;
static char out[LONGEST], in[MOST][LONGEST];

static void open_side(struct side *s)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4 * MOST };

	must(fi_endpoint(domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_cq_open(domain, &attr, &s->cq, NULL), "fi_cq_open");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

/* open_domain opens endpoints for so many receives at a time as the provider bounds, 0: its own number. */
static void open_domain(enum fi_threading threading, const char *provider, long posted)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;

	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	hints->domain_attr->threading = threading;
	hints->rx_attr->size = (size_t)posted;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
}

static fi_addr_t open_receiver(struct side *s)
{
	char name[64];
	size_t n = sizeof name;
	fi_addr_t to;

	open_side(s);
	must(fi_getname(&s->ep->fid, name, &n), "fi_getname");
	must(fi_av_insert(av, name, 1, &to, 0, NULL), "fi_av_insert");
	return to;
}

/* open_all opens the sender and its receiver, and one for a second thread, if there are two. Those of one process have
 * PIDs in a row, which weft's provider has at different transmit queues, if there are four or more. */
static void open_all(bool two)
{
	open_side(&sender);
	peer = open_receiver(&receiver);
	if (two)
		other_peer = open_receiver(&second);
}

static void receives_of(struct side *s, int from, int n)
{
	for (int i = from; i < from + n; i++)
		must(fi_trecv(s->ep, in[i], LONGEST, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, NULL), "fi_trecv");
}

static void receives(int n)
{
	receives_of(&receiver, 0, n);
}

static void sends_to(fi_addr_t to, int from, int n, size_t length)
{
	for (int i = from; i < from + n; i++)
		must(fi_tsend(sender.ep, out, length, NULL, to, (uint64_t)i, NULL), "fi_tsend");
}

static void sends(int from, int n, size_t length)
{
	sends_to(peer, from, n, length);
}

static void injects(int n)
{
	for (int i = 0; i < n; i++)
		must(fi_tinject(sender.ep, out, 8, peer, (uint64_t)i), "fi_tinject");
}

/* takes has n completions of a queue read; empty: none is there, in so many calls. */
static void takes(struct side *s, int n, bool empty)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < n; i++) {
		ssize_t rc = fi_cq_read(s->cq, &e, 1);

		if (rc != (empty ? -FI_EAGAIN : 1)) {
			fprintf(stderr, "fi_cq_read %d: %zd is not what is expected\n", i, rc);
			exit(1);
		}
	}
}

/* What half of the calls by each of two threads do. */
struct half {
	struct fid_cq *reads; /* NULL: it sends */
	fi_addr_t to;
	int from;
	double began, ended;
};

static atomic_int waiting;

static void *run_half(void *arg)
{
	struct half *h = arg;
	struct fi_cq_tagged_entry e;

	atomic_fetch_add(&waiting, 1);
	while (atomic_load(&waiting) < 2)
		;
	h->began = now();
	if (!h->reads)
		sends_to(h->to, h->from, calls / 2, 8);
	for (int i = 0; h->reads && i < calls / 2;) {
		ssize_t rc = fi_cq_read(h->reads, &e, 1);

		must(rc == -FI_EAGAIN ? 0 : rc, "fi_cq_read");
		i += rc == 1;
	}
	h->ended = now();
	return NULL;
}

/* halves returns how long both threads together take for one of them: they read a queue, or they send, the second
 * thread to to. */
static double halves(struct fid_cq *reads, fi_addr_t to)
{
	struct half h[2] = { { reads, peer, 0, 0, 0 }, { reads, to, calls / 2, 0, 0 } };
	pthread_t other;

	atomic_store(&waiting, 0);
	must(-pthread_create(&other, NULL, run_half, &h[1]), "pthread_create");
	run_half(&h[0]);
	pthread_join(other, NULL);
	return ((h[0].ended > h[1].ended ? h[0].ended : h[1].ended) -
		(h[0].began < h[1].began ? h[0].began : h[1].began)) /
	       calls;
}

static bool marked; /* breakpoints stand around what is timed */

/* mark is the breakpoint, which a tracer passes by. */
static void mark(void)
{
	if (!marked)
		return;
#if defined(__x86_64__)
	__asm__ volatile("int3" ::: "memory");
#else
	raise(SIGTRAP);
#endif
}

#define TIMED(value, call) \
	do { \
		double from = now(); \
		mark(); \
		call; \
		mark(); \
		value = (now() - from) / calls; \
	} while (0)

static void counts(uint64_t *v)
{
	for (int k = 0; k < COUNTED; k++)
		v[k] = count(counted[k]);
}

/* one_round prints what one round has measured, unless it is counted. */
static void one_round(bool two)
{
	static const size_t lengths[] = { 8, 192, LONGEST };
	double receive = 0, send[3], sent = 0, received = 0, empty = 0;
	double sends_by_two = 0, reads_by_two = 0, sends_apart = 0, sent_by_two = 0;
	uint64_t v[3][COUNTED];

	for (int k = 0; k < 3; k++) {
		if (!k)
			counts(v[0]);
		TIMED(receive, receives(calls));
		step(1u << 30);
		if (!k)
			counts(v[1]);
		TIMED(send[k], sends(0, calls, lengths[k]));
		step(1u << 30);
		TIMED(sent, takes(&sender, calls, false));
		TIMED(received, takes(&receiver, calls, false));
		TIMED(empty, takes(&receiver, calls, true));
		if (!k)
			counts(v[2]);
	}
	if (calls != MOST) {
		double inject;

		receives(calls);
		step(1u << 30);
		TIMED(inject, injects(calls));
		(void)inject; /* it is counted */
		step(1u << 30);
		takes(&sender, 1, true);
		takes(&receiver, calls, false);
		return;
	}
	if (two) {
		receives(calls);
		step(1u << 30);
		sends_by_two = halves(NULL, peer);
		step(1u << 30);
		takes(&sender, calls, false);
		reads_by_two = halves(receiver.cq, peer);
		receives(calls / 2);
		receives_of(&second, calls / 2, calls / 2);
		step(1u << 30);
		sends_apart = halves(NULL, other_peer);
		step(1u << 30);
		sent_by_two = halves(sender.cq, peer);
		takes(&receiver, calls / 2, false);
		takes(&second, calls / 2, false);
	}
	printf("%.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f", receive, send[0], send[1], send[2], sent, received,
	       empty, sends_by_two, reads_by_two);
	for (int phase = 1; phase < 3; phase++)
		for (int k = 0; k < COUNTED; k++)
			printf(" %.3f", (double)(v[phase][k] - v[phase - 1][k]) / calls);
	printf(" %.2f %.2f\n", sends_apart, sent_by_two);
	fflush(stdout);
}

/* resident is what the process has in memory, in bytes. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(f);
	return pages * 4096;
}

static void memory(void)
{
	struct side s;
	long before;
	uint64_t queues;

	open_side(&s); /* what the first brings with it is not counted */
	before = resident();
	queues = count("queue_bytes");
	for (int k = 0; k < ENDPOINTS; k++)
		open_side(&s);
	printf("%ld %ld\n", (resident() - before) / ENDPOINTS, (long)(count("queue_bytes") - queues) / ENDPOINTS);
}

/* many posts n receives of tags that no message has, and reads messages whose receives come behind them. */
static void many(long n, atomic_bool *over)
{
	double took;

	for (long i = 0; i < n; i++) {
		long rc;

		while ((rc = fi_trecv(receiver.ep, in[0], 8, NULL, FI_ADDR_UNSPEC, (uint64_t)(1000 + i), 0, NULL)) ==
		       -FI_EAGAIN)
			takes(&receiver, 1, true);
		must(rc, "fi_trecv");
	}
	receives(calls);
	sends(0, calls, 8);
	for (int k = 0; k < 100; k++) {
		struct timespec ms = { .tv_nsec = 1000000 };

		nanosleep(&ms, NULL); /* the NIC is turned by the other thread */
	}
	atomic_store(over, true);
	TIMED(took, takes(&receiver, calls, false));
	printf("%.1f\n", took);
}

int main(int argc, char **argv)
{
	void *model = dlopen("libcxi.so.1", RTLD_NOW);
	atomic_bool over = false;
	pthread_t thread;
	char line[16];

	if (argc < 3 || !model || !(step = (unsigned int (*)(unsigned int))dlsym(model, "cassini_step")) ||
	    !(count = (uint64_t(*)(const char *))dlsym(model, "cassini_count"))) {
		fprintf(stderr, "libcxi.so.1 is no model of the NIC\n");
		return 1;
	}
	must(-pthread_create(&thread, NULL, turn, &over), "pthread_create");
	open_domain(!strcmp(argv[2], "domain")	     ? FI_THREAD_DOMAIN
		    : !strcmp(argv[2], "completion") ? FI_THREAD_COMPLETION
						     : FI_THREAD_SAFE,
		    argv[1], argc > 4 ? atol(argv[4]) : 0);
	if (!strcmp(argv[2], "memory")) {
		memory();
	} else {
		open_all(argc == 3 && !strcmp(argv[2], "safe"));
		if (argc > 3 && !strcmp(argv[2], "many"))
			many(atol(argv[3]), &over);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	for (int k = 0; argc == 4 && !strcmp(argv[3], "marked") && k < 2; k++) {
		marked = k;
		calls = FEWER;
		one_round(false);
	}
	while (argc == 3 && strcmp(argv[2], "memory") && fgets(line, sizeof line, stdin))
		one_round(!strcmp(argv[2], "safe"));
	return 0;
}
