/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The harness of tests/c. One idea per layer:
 *
 *   common.c      checks and the runner: every test is one or more child processes of its own
 *   link.c        the sideband between the processes of one test: bytes, barrier
 *   deviation.c   the one table of what other providers do differently, with the reason
 *   node.c        fabric, domain, AV, CQs and one endpoint, opened and closed together
 *   xfer.c        messages: every form of send and receive, waiting for completions, patterns
 *   shmdir.c      a folder of the test's own for segment files
 *
 * The runner never calls libfabric itself: it forks and executes itself once per process of a test,
 * so a crash, a hang or a leak stays inside that test.
 */
#ifndef WEFT_TESTS_COMMON_H
#define WEFT_TESTS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "node.h"
#include "xfer.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- tests and the runner ---- */

/* One test. run is called once in each of procs processes (rank 0 .. procs-1); 0 means 1. */
struct test {
	const char *name;
	void (*run)(long arg);
	int procs;
	unsigned seconds; /* time limit, 0: 120 */
	long arg;	  /* passed to run */
};

/* Runs the tests whose name contains argv[1] (all without it), prints "ok N - name" for each and
 * "N passed, N failed, N skipped" at the end; -l lists them. Returns the exit status of main. */
int tests_main(int argc, char **argv, const struct test *tests, size_t count);

extern int test_rank;  /* this process within its test */
extern int test_procs; /* processes of this test */
extern const char *test_name;

/* The provider under test: WEFT_TEST_PROV, "weft" when unset. */
const char *test_provider(void);

/* True when the provider under test is weft itself, perhaps under the name of
 * FI_WEFT_NAME: then nothing may be missing. */
bool test_is_weft(void);

/* ---- checks ---- */

/* CHECK ends the process (and the test) when it fails, EXPECT notes the failure and goes on. */
#define CHECK(cond) \
	do { \
		if (!(cond)) \
			test_fail(true, __FILE__, __LINE__, "%s", #cond); \
	} while (0)
#define CHECKF(cond, ...) \
	do { \
		if (!(cond)) \
			test_fail(true, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
#define EXPECT(cond) \
	do { \
		if (!(cond)) \
			test_fail(false, __FILE__, __LINE__, "%s", #cond); \
	} while (0)
#define EXPECTF(cond, ...) \
	do { \
		if (!(cond)) \
			test_fail(false, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* A call that returns 0 or a negative fabric errno. */
#define OK(call) test_rc(true, __FILE__, __LINE__, #call, (call), 0)
#define CHECK_RC(call, want) test_rc(true, __FILE__, __LINE__, #call, (call), (want))
#define EXPECT_RC(call, want) test_rc(false, __FILE__, __LINE__, #call, (call), (want))

/* Ends the test as skipped. */
#define SKIP(...) test_skip(__VA_ARGS__)

/* Ends the test when the provider lacks a feature: as skipped, but as failed when it is weft. */
#define NEED(cond, feature) \
	do { \
		if (!(cond)) \
			test_missing(__FILE__, __LINE__, (feature)); \
	} while (0)

/* What leads from one process of a test to another: some runs take ways away (WEFT_TEST_APART, WEFT_TEST_NETNS,
 * FI_WEFT_UDP=no), so that what is left, a NIC, carries all. */
enum way { WAY_MEMORY, WAY_UDP };

/* True if this run has the way. */
bool way_exists(enum way way);

/* True if the NIC of this run is a model, whose threads need processors. */
bool nic_computes(void);

/* Ends the test as skipped where this run has taken away the one way by which something goes. */
#define NEED_WAY(way, what) \
	do { \
		if (!way_exists(way)) \
			test_no_way((way), (what)); \
	} while (0)

void test_no_way(enum way way, const char *what) __attribute__((noreturn));
void test_fail(bool fatal, const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void test_rc(bool fatal, const char *file, int line, const char *call, long got, long want);
void test_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void test_missing(const char *file, int line, const char *feature);

/* A line of the log: "# [rank] ...". */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* True when deviation.c says that the provider under test differs in this; the first time it
 * prints the reason. */
bool deviates(const char *key);

/* The reason, or NULL; prints nothing. Used by the runner for "program.test" keys. */
const char *deviation_reason(const char *key);

/* ---- a test's own processes ---- */

/* Executes this process anew as a child of it, with the same rank, sideband and group; role is what
 * test_role returns there. To be called before the test's threads matter. */
pid_t respawn(const char *role);

/* The role given to respawn, "" in the processes that the runner started. */
const char *test_role(void);

/* ---- the sideband ---- */

/* The seed of a random program, WEFT_TEST_SEED or another. What fails from then on prints it. */
uint64_t test_seed(uint64_t otherwise);

void link_send(int rank, const void *buf, size_t len);
void link_recv(int rank, void *buf, size_t len);
int link_fd(int rank); /* -1: no direct link; every rank has one to rank 0 */

/* Waits until every rank of the test is here; progresses n's endpoint (NULL: none) meanwhile. */
void barrier(struct node *n);

/* ---- small tools ---- */

/* An IPv4 address that endpoints of this run may have: of the interface that FI_WEFT_IFACE names, else 127.0.0.1. */
const char *host_address(void);

uint64_t now_ms(void);
uint64_t now_us(void);

/* A deterministic random generator: next value of *state. */
uint64_t rnd(uint64_t *state);

#endif
