/* SPDX-License-Identifier: BSD-2-Clause */
/* The sideband of one test: stream sockets between rank 0 and every other rank. */
#include "common.h"

#include <errno.h>
#include <poll.h>

#include "runner.h"

static int links[NODE_PEERS] = { -1, -1, -1, -1, -1, -1, -1, -1 };

void link_set(int rank, int fd)
{
	links[rank] = fd;
}

int link_fd(int rank)
{
	return links[rank];
}

void link_send(int rank, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(links[rank], p, len);

		if (n < 0 && errno == EINTR)
			continue;
		CHECKF(n > 0, "sideband to rank %d: %s", rank, strerror(errno));
		p += n;
		len -= (size_t)n;
	}
}

void link_recv(int rank, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = read(links[rank], p, len);

		if (n < 0 && errno == EINTR)
			continue;
		CHECKF(n > 0, "sideband to rank %d: %s", rank, n ? strerror(errno) : "closed");
		p += n;
		len -= (size_t)n;
	}
}

/* Takes one byte from rank, progressing n until it is there. */
static void await(struct node *n, int rank)
{
	struct pollfd p = { .fd = links[rank], .events = POLLIN };
	char byte;

	while (n && poll(&p, 1, 0) == 0)
		progress(n);
	link_recv(rank, &byte, 1);
}

void barrier(struct node *n)
{
	if (test_rank) {
		link_send(0, "b", 1);
		await(n, 0);
		return;
	}
	for (int r = 1; r < test_procs; r++)
		await(n, r);
	for (int r = 1; r < test_procs; r++)
		link_send(r, "b", 1);
}
