/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Latency and bandwidth over the size of messages, for curves.
 */
#include <stdio.h>

#include "bench.h"

/* 1 byte to 1 MiB in steps of 4. */
void test_sizes(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	node_connect(n);
	post_recv(n, BUFFER_BYTES, 1);
	for (size_t bytes = 1; bytes <= BUFFER_BYTES; bytes *= 4) {
		char name[32];

		snprintf(name, sizeof(name), "size_%zu_us", bytes);
		pingpong(n, bytes, name, NULL);
	}
}

void test_streams(struct node *n)
{
	stream_open(n);
	for (size_t bytes = 1; bytes <= BUFFER_BYTES; bytes *= 4) {
		char name[32];

		snprintf(name, sizeof(name), "size_%zu_mbps", bytes);
		stream_figures(n, bytes, bytes < 4096 ? 10 : 1, (double)bytes * 1e3, name);
	}
}
