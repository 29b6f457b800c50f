/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that have all their memory locked (mlockall): what is reserved and not used must not become resident.
 * LEAST is what the Go runtime takes (fi_weft(7), LIMITATIONS) and half as much again.
 */
#include "common.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define LEAST (180l << 10) /* kB */

/* kB that are resident. */
static long resident(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kb = atol(line + 6);
	fclose(f);
	CHECK(kb > 0);
	return kb;
}

static void lock_all(int flags)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all); /* without the right to, the limit may do */
	if (mlockall(flags))
		SKIP("memory cannot be locked");
}

/* Later: memory is locked when the endpoint is there already. */
static void test_all(long later)
{
	long before = resident(), after;
	struct fi_cq_tagged_entry e;
	char out[64], in[64];
	struct node n;

	if (!later)
		lock_all(MCL_CURRENT | MCL_FUTURE);
	node_open(&n, NULL);
	node_connect(&n);
	if (later)
		lock_all(MCL_CURRENT);
	fill(out, sizeof(out), 1);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, sizeof(out), n.peer[0], 1, out);
	wait_ok(&n, n.rxcq, &e);
	wait_ctx(&n, n.txcq, out);
	verify(in, sizeof(in), 1);
	after = resident();
	note("%ld MB more are resident", (after - before) >> 10);
	if (test_is_weft())
		EXPECTF(after - before < LEAST, "%ld kB", after - before);
	node_close(&n);
}

/* Addresses beyond those that there is memory for at first, used from the last on. */
static void test_many(long count)
{
	struct fi_cq_tagged_entry e;
	struct name own, other;
	fi_addr_t *at = calloc(count, sizeof(*at));
	struct node n;

	CHECK(at);
	node_open(&n, NULL);
	NEED(node_has_sockaddr(&n), "addresses of sockets");
	node_name(&n, &own);
	for (long i = 0; i < count; i++) {
		other = own;
		if (i % 1000 != 999) { /* the other ones are this endpoint's */
			other.bytes[2] = (char)((i + 1) >> 8);
			other.bytes[3] = (char)(i + 1);
		}
		at[i] = node_insert_name(&n, &other);
	}
	for (long i = count - 1; i > 0; i -= 1000) {
		char in = 0, out = (char)(i / 1000);

		CHECK(i % 1000 == 999);
		trecv(&n, &in, 1, FI_ADDR_UNSPEC, i, 0, &in);
		tsend(&n, &out, 1, at[i], i, &out);
		wait_ok(&n, n.rxcq, &e);
		wait_ctx(&n, n.txcq, &out);
		CHECK(in == out);
	}
	for (long i = 0; i < count; i++)
		OK(fi_av_remove(n.av, &at[i], 1, 0));
	free(at);
	node_close(&n);
}

static const struct test tests[] = {
	{ "future", test_all, 1, 0, false },
	{ "current", test_all, 1, 0, true },
	{ "many", test_many, 1, 0, 20000 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
