/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Windows of messages from one rank to another, with the receives posted in several ways.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_bench.h"

void stream_open(struct stream *s, MPI_Comm comm, int peer, bool sends, int bytes)
{
	*s = (struct stream){ .comm = comm, .peer = peer, .sends = sends, .bytes = bytes };
	s->room = aligned_alloc(4096, ROOM);
	if (!s->room)
		fail("no memory");
	memset(s->room, 1, ROOM);
}

void stream_close(struct stream *s)
{
	free(s->room);
}

/* Where message i of a window lies: apart from the others, as far as there is room. */
static char *place(const struct stream *s, int i)
{
	return s->room + (size_t)i * s->bytes % ROOM;
}

/* What message i of a window begins and ends with; those that share a place have the same. */
static char mark(const struct stream *s, int i)
{
	return (char)(s->round + (size_t)i * s->bytes % ROOM / s->bytes);
}

static void fill(const struct stream *s)
{
	for (int i = 0; i < WINDOW; i++)
		place(s, i)[0] = place(s, i)[s->bytes - 1] = mark(s, i);
}

static void check(const struct stream *s, const MPI_Status *status, enum order order)
{
	for (int i = 0; i < WINDOW; i++) {
		int count, sent = order == REVERSED ? WINDOW - 1 - i : i;
		const char *got = place(s, i);

		MPI_Get_count(&status[i], MPI_CHAR, &count);
		if (count != s->bytes || status[i].MPI_SOURCE != s->peer || status[i].MPI_TAG != sent)
			fail("a message is not the one that it should be");
		if (got[0] != mark(s, sent) || got[s->bytes - 1] != mark(s, sent))
			fail("a message has other bytes");
	}
}

/* A receiver that posts after the messages waits for one more. */
static void send_window(struct stream *s, enum order order)
{
	MPI_Request requests[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(place(s, i), s->bytes, MPI_CHAR, s->peer, i, s->comm, &requests[i]);
	if (order == AFTER)
		MPI_Send(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm);
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void post(struct stream *s, enum order order, MPI_Request *requests)
{
	for (int i = 0; i < WINDOW; i++) {
		int source = order == WILDCARDS ? MPI_ANY_SOURCE : s->peer;
		int tag = order == WILDCARDS ? MPI_ANY_TAG : order == REVERSED ? WINDOW - 1 - i : i;

		MPI_Irecv(place(s, i), s->bytes, MPI_CHAR, source, tag, s->comm, &requests[i]);
	}
}

/* A receiver that has posted says so before the sender begins, unless it posts while messages come, or after
 * the last. */
static void receive_window(struct stream *s, enum order order)
{
	MPI_Request requests[WINDOW];
	MPI_Status status[WINDOW];

	if (order == AFTER)
		MPI_Recv(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm, MPI_STATUS_IGNORE);
	post(s, order, requests);
	if (order != AFTER && order != STREAMED)
		MPI_Send(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm);
	MPI_Waitall(WINDOW, requests, job.check ? status : MPI_STATUSES_IGNORE);
	if (job.check)
		check(s, status, order);
}

void window(struct stream *s, enum order order)
{
	s->round++;
	if (!s->sends) {
		receive_window(s, order);
		MPI_Send(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm);
		return;
	}
	if (job.check)
		fill(s);
	if (order != AFTER && order != STREAMED)
		MPI_Recv(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm, MPI_STATUS_IGNORE);
	send_window(s, order);
	MPI_Recv(NULL, 0, MPI_CHAR, s->peer, LAST, s->comm, MPI_STATUS_IGNORE);
}
