/* SPDX-License-Identifier: BSD-2-Clause */
/* One message of more than 4 GiB: no length in between is 32 bits wide. */
#include "common.h"

#include <sys/mman.h>

#define LEN ((4ull << 30) + 5)
#define ROOM (10ull << 30) /* two buffers and what a provider copies through */

static uint64_t available(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

static void test_big(long tagged)
{
	struct fi_cq_tagged_entry e;
	struct op o = { .tagged = tagged, .len = LEN, .tag = 1 };
	struct node n;

	if (available() < ROOM)
		SKIP("%llu MiB of memory available, 10240 needed", (unsigned long long)available() >> 20);
	o.buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(o.buf != MAP_FAILED);
	madvise(o.buf, LEN, MADV_HUGEPAGE); /* a fault for 4 KiB each takes longer than the message */
	o.ctx = o.buf;
	node_open(&n, NULL);
	NEED(n.info->ep_attr->max_msg_size >= LEN, "messages of 4 GiB + 5");
	node_connect(&n);
	o.addr = n.peer[!test_rank];
	if (test_rank == 0) {
		fill(o.buf, LEN, 12);
		post_send(&n, &o);
		wait_ctx(&n, n.txcq, o.ctx);
	} else {
		post_recv(&n, &o);
		wait_ok(&n, n.rxcq, &e);
		CHECKF(e.len == LEN, "length %zu", e.len);
		verify(o.buf, LEN, 12);
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "tagged", test_big, 2, 120, true },
	{ "untagged", test_big, 2, 120, false },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
