/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft_bench: figures of one libfabric provider on one host.
 *
 * Every test runs in processes of its own, which are forked before any call of
 * libfabric and pinned to one core each. They share the memory below: their
 * addresses, barriers and the figures that rank 0 finds.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "../../include/weft/token.h"

enum {
	MAX_REQUESTERS = 16,
	MAX_RANKS = MAX_REQUESTERS + 1,
	WINDOW = 64,
	TURNS = 256, /* that rank 0 may be ahead in agree() */
	BUFFER_BYTES = 1 << 20,
	BUFFER_ALIGN = 2 << 20, /* a huge page's: whether a buffer's ends can be on one is not left to chance */
	MAX_SAMPLES = 1 << 20,
	SCALE_THREADS = 16,
	MANY_PEERS = 64,
	MAX_PROVIDERS = 8,
	MAX_HOSTS = 8,
};

struct options {
	const char *providers[MAX_PROVIDERS];
	int provider_count;
	bool several;		      /* providers were named, more than one */
	const char *hosts[MAX_HOSTS]; /* network namespaces, which ranks take in turn */
	int host_count;		      /* 0: all are in this one */
	int cores[2];
	double seconds; /* of measuring, per figure and provider */
	double slice;	/* the same of one time slice, of which there are so many */
	int slices;
	int depth;	     /* entries in the deep matching test */
	int elements;	     /* of the lists of pieces, a multiple of 4; 0: as many as 32 MiB hold */
	struct {	     /* of the all-to-all between hosts */
		int ranks;   /* 0: 8 */
		int rounds;  /* 0: 15 */
		int lengths; /* how many of length there are: one of all slices, or one for each two ranks */
		uint32_t length[MAX_RANKS * MAX_RANKS]; /* bytes from each rank to each, those from rank 0 first */
		uint32_t late[MAX_RANKS];		/* ms by which ranks come late, another one in each round */
	} exchange;
	enum fi_progress progress; /* to ask for; FI_PROGRESS_UNSPEC: any */
};

struct shared {
	struct {
		uint8_t bytes[256];
		size_t size;
	} address[MAX_RANKS];
	struct {
		uint8_t bytes[256];
		size_t size;
	} link[2][SCALE_THREADS]; /* addresses of the scaling tests */
	struct {
		uint8_t bytes[256];
		size_t size;
	} crowd[MANY_PEERS]; /* addresses of rank 1's endpoints, in the tests of many peers */
	struct {
		uint8_t bytes[WEFT_TOKEN_MAX];
		size_t size;
		pid_t owner; /* in its own namespace */
	} token[2];	     /* of memory of ranks 0 and 1 */
	_Atomic int arrived; /* all-time arrivals at meet() */
	_Alignas(128) _Atomic uint64_t hop;
	_Alignas(128) _Atomic uint64_t turn; /* of a test's own protocol */
	_Atomic uint64_t answer;
	_Atomic int turns[TURNS]; /* answers of agree() */
	_Atomic uint64_t taken;	  /* the last turn whose answer rank 1 has read */
	_Atomic int stop;
	_Atomic uint64_t ended[MAX_RANKS];    /* ns at which each rank has done its part */
	_Atomic uint32_t sent[SCALE_THREADS]; /* messages of each flow; written by rank 0 before stop */
	pthread_barrier_t sleepers;	      /* of all ranks, blocking */
	uint32_t picks[WINDOW];
	struct {
		_Atomic uint64_t addr, key;
	} region; /* rank 1's, of the one-sided tests */
};

/* A rank's endpoint and what it has completed. */
struct node {
	const struct options *opt;
	struct shared *shared;
	pthread_barrier_t *edge; /* of the ranks of all providers, between time slices */
	int provider;		 /* its index in the options */
	int turns;		 /* that all providers have had */
	const char *provider_name;
	int rank, ranks, met;
	bool yields;	    /* its core, where it finds nothing: the core's other ranks are hosts of their own */
	uint64_t last_turn; /* see agree() */

	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq; /* of a node with collective operations */
	struct fid_ep *ep;
	fi_addr_t peer[MAX_RANKS];

	uint8_t *tx, *rx; /* BUFFER_BYTES each, or as many as roomy_buffers was asked for */
	struct fi_context2 *contexts;
	size_t context_count, context_next;
	uint64_t sent, tx_done, rx_done; /* posted sends that complete, completions */
	uint64_t rx_want;		 /* receives that wait_received has waited for */
	uint64_t last_tag;		 /* of the receive that completed last */
};

/* What to ask of fi_getinfo. */
struct wish {
	enum fi_threading threading;
	size_t rx_size;	 /* receives posted at a time */
	bool one_sided;	 /* reads, writes and atomics too */
	bool collective; /* collective operations too */
	bool device;	 /* memory of GPUs too */
};

double resident(void);

typedef void test_fn(struct node *n);

/* node.c */
void die(const char *what, int error) __attribute__((noreturn));
void must(int ret, const char *what);
/* Makes the token of this rank's region known to the other of two ranks, and opens the other's. */
void share_token(struct node *n, struct weft_token_ops *t, struct fid_mr *mr);
struct weft_remote *open_token(struct node *n, struct weft_token_ops *t);
bool has_provider(const struct node *n, const struct wish *wish);
struct fi_info *find_provider(const struct node *n, const struct wish *wish);
void node_open(struct node *n, const struct wish *wish);
struct fid_ep *open_endpoint(struct node *n);
void roomy_buffers(struct node *n, size_t bytes);
void node_connect(struct node *n);
void meet(struct node *n);

/* transfer.c */
void poll_cq(struct node *n);
void *next_context(struct node *n);
void post_recv(struct node *n, size_t bytes, uint64_t tag);
bool try_post_recv(struct node *n, size_t bytes, uint64_t tag);
void send_to(struct node *n, int rank, size_t bytes, uint64_t tag);
void wait_sent(struct node *n);
void wait_received(struct node *n, uint64_t more);

/* stream.c: between ranks 0 and 1. Figures of the name median and, unless it is
 * NULL, of tail with the percentile behind it. */
void pingpong(struct node *n, size_t bytes, const char *median, const char *tail);
void stream_open(struct node *n);
void stream_figures(struct node *n, size_t bytes, int batch, double per, const char *name);
int agree(struct node *n, int count);
void rate(struct node *n, int batch, const char *name);

/* onesided.c: of rank 0, on the receive buffer of rank 1, which open_region
 * registers and reports. fetch_adds does count of them, one after the other. */
struct region {
	fi_addr_t peer;
	uint64_t addr, key;
};
enum { FETCHES = 50 }; /* of a sample */
struct region open_region(struct node *n);
void fetch_adds(struct node *n, const struct region *to, int count);

/* slices.c: providers that are measured together take time slices in turn, and the
 * ranks of the others sleep. */
enum { SLICE_MS = 20 };
void begin_slice(struct node *n);
void end_slice(struct node *n);

/* threads.c */

/* Prints on standard error what each thread of a process is at. */
void print_threads(int pid);

/* stats.c */
uint64_t ticks(void);
uint64_t clock_ns(void); /* CLOCK_MONOTONIC */
double tick_ns(void);
void sample(double value); /* keeps up to MAX_SAMPLES */
double quantile(double q); /* of the samples; NAN without any */
void clear_samples(void);
void report(const char *name, double value); /* one line: name value; none for NAN */
void report_for(const char *provider);	     /* is what the lines to come begin with */
const char *reporting_for(void);	     /* the same, with a space behind it, or "" */
struct deadline {
	uint64_t end;
};
struct deadline deadline_in(double seconds);
bool passed(struct deadline d);

/* post.c: threads that post at most, each to a rank of its own */
int requesters(void);

/* the tests */
test_fn test_hop, test_pingpong, test_rate, test_bandwidth, test_cq_read, test_enter;
test_fn test_write_rate, test_one_sided, test_fetch_add, test_token, test_note, test_gpu;
test_fn test_post_safe, test_post_domain;
test_fn test_posted, test_unexpected;
test_fn test_memory;
test_fn test_one_core_manual, test_one_core_auto, test_apart, test_served, test_idle;
test_fn test_sizes, test_streams;
test_fn test_peers_out, test_peers_in;
test_fn test_scale_own, test_scale_shared, test_scale_readers;
test_fn test_shared, test_fair, test_goodput, test_million;
test_fn test_alltoall;

#endif
