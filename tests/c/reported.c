/* SPDX-License-Identifier: BSD-2-Clause */
/* What users of other providers have reported, as docs/compare.md lists it, where no other test has it. */
#include "common.h"

#define LIMIT_MS 30000
#define LATE_ROUNDS 4
#define UNEXPECTED 300
#define CLIENTS 4

/* A send that is under way, or a receive. */
struct post {
	char *buf;
	size_t len;
};

static struct post post_open(size_t len, uint64_t seed)
{
	struct post p = { .buf = malloc(len), .len = len };

	CHECK(p.buf != NULL);
	fill(p.buf, len, seed);
	return p;
}

/* A long send of which nothing wants anything holds up no send behind it. */
static void test_long_without_receive(long len)
{
	struct fi_cq_tagged_entry e;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank) {
		struct post first = post_open(8, 1), kept = post_open((size_t)len, 2), last = post_open(8, 3);

		tsend(&n, first.buf, first.len, n.peer[0], 0, &first);
		tsend(&n, kept.buf, kept.len, n.peer[0], 1, &kept);
		tsend(&n, last.buf, last.len, n.peer[0], 0, &last);
		for (int i = 0; i < 3; i++)
			wait_ok(&n, n.txcq, &e);
		free(first.buf), free(kept.buf), free(last.buf);
	} else {
		char in[2][8];
		struct post kept = post_open((size_t)len, 0);

		trecv(&n, in[0], 8, n.peer[1], 0, 0, in[0]);
		trecv(&n, in[1], 8, n.peer[1], 0, 0, in[1]);
		wait_ctx(&n, n.rxcq, in[0]);
		wait_ctx(&n, n.rxcq, in[1]);
		verify(in[0], 8, 1);
		verify(in[1], 8, 3);
		trecv(&n, kept.buf, kept.len, n.peer[1], 1, 0, &kept);
		wait_ctx(&n, n.rxcq, &kept);
		verify(kept.buf, kept.len, 2);
		free(kept.buf);
	}
	barrier(&n);
	node_close(&n);
}

/* Many messages longer than what is injected arrive before their receives, where the kernel refuses to
 * read the sender's memory. */
static void test_unexpected(long len)
{
	struct fi_cq_tagged_entry e;
	struct node n;

	setenv("FI_WEFT_USE_CMA", "no", 1);
	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank) {
		struct post out[UNEXPECTED];

		for (int i = 0; i < UNEXPECTED; i++) {
			out[i] = post_open((size_t)len, (uint64_t)i);
			tsend(&n, out[i].buf, out[i].len, n.peer[0], (uint64_t)i, &out[i]);
		}
		barrier(&n); /* nothing is received before */
		for (int i = 0; i < UNEXPECTED; i++)
			wait_ok(&n, n.txcq, &e);
		for (int i = 0; i < UNEXPECTED; i++)
			free(out[i].buf);
	} else {
		struct post in = post_open((size_t)len, 0);

		barrier(&n);
		for (int i = UNEXPECTED - 1; i >= 0; i--) {
			trecv(&n, in.buf, in.len, n.peer[1], (uint64_t)i, 0, &in);
			wait_ctx(&n, n.rxcq, &in);
			verify(in.buf, in.len, (uint64_t)i);
		}
		free(in.buf);
	}
	barrier(&n);
	node_close(&n);
}

/* All ranks send to all as soon as they have their names, to endpoints that have not polled yet. */
static void test_all_at_once(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };

	(void)arg;
	for (int round = 0; round < LATE_ROUNDS; round++) {
		struct fi_cq_tagged_entry e;
		uint64_t in[NODE_PEERS], out = (uint64_t)(round * NODE_PEERS + test_rank);
		struct node n;

		node_open(&n, &o);
		node_connect(&n);
		if (test_rank % 2)
			usleep(20000);
		for (int r = 0; r < test_procs; r++) {
			trecv(&n, &in[r], sizeof(in[r]), n.peer[r], (uint64_t)round, 0, &in[r]);
			tsend(&n, &out, sizeof(out), n.peer[r], (uint64_t)round, &out);
		}
		for (int r = 0; r < test_procs; r++) {
			wait_ok(&n, n.txcq, &e);
			wait_ok(&n, n.rxcq, &e);
		}
		for (int r = 0; r < test_procs; r++)
			CHECKF(in[r] == (uint64_t)(round * NODE_PEERS + r), "round %d: %llu of rank %d", round,
			       (unsigned long long)in[r], r);
		barrier(&n);
		node_close(&n);
	}
}

/* Clients come one after the other, each new to the server, which learns their names by messages. */
static void test_clients_in_turn(long arg)
{
	struct name server, its;
	struct node n;
	char answer[16] = "answer";

	(void)arg;
	if (test_rank == 0) {
		node_open(&n, NULL);
		node_name(&n, &server);
		link_send(1, &server, sizeof(server));
		for (int i = 0; i < CLIENTS; i++) {
			trecv(&n, &its, sizeof(its), FI_ADDR_UNSPEC, 1, 0, &its);
			wait_ctx(&n, n.rxcq, &its);
			tsend(&n, answer, sizeof(answer), node_insert_name(&n, &its), 2, answer);
			wait_ctx(&n, n.txcq, answer);
		}
		barrier(&n);
		node_close(&n);
		return;
	}
	link_recv(0, &server, sizeof(server));
	for (int i = 0; i < CLIENTS; i++) {
		fi_addr_t to;

		memset(answer, 0, sizeof(answer));
		node_open(&n, NULL);
		to = node_insert_name(&n, &server);
		node_name(&n, &its);
		trecv(&n, answer, sizeof(answer), to, 2, 0, answer);
		tsend(&n, &its, sizeof(its), to, 1, &its);
		wait_ctx(&n, n.txcq, &its);
		wait_ctx(&n, n.rxcq, answer);
		CHECK(strcmp(answer, "answer") == 0);
		node_close(&n);
	}
	barrier(NULL);
}

/* Sends word to an address until one arrives; each that does not ends with an error. Returns how many. */
static int insist(struct node *n, fi_addr_t to, const char *word, size_t len, bool once)
{
	uint64_t end = now_ms() + LIMIT_MS;
	struct fi_cq_tagged_entry e;

	for (int failed = 0;; failed++) {
		ssize_t rc;

		CHECKF(now_ms() < end, "%d sends have failed", failed);
		while ((rc = fi_tsend(n->ep, word, len, NULL, to, 5, (void *)(uintptr_t)word)) == -FI_EAGAIN) {
			CHECKF(now_ms() < end, "-FI_EAGAIN for %d ms", LIMIT_MS);
			progress(n);
		}
		if (rc == 0) {
			int got = wait_for(n, n->txcq, &e, LIMIT_MS);

			CHECKF(got != 0, "the send has no end");
			if (got == 1)
				return failed;
		}
		if (once)
			return failed + 1;
		usleep(10000);
	}
}

/* A client that begins before its server gets errors, and reaches the server once it is there. */
static void test_client_first(long arg)
{
	struct node_opts o = { .tx_flags = FI_DELIVERY_COMPLETE, .service = "0" };
	struct node n;
	struct name name;
	char word[16] = "word", in[16] = "";
	const void *at;

	(void)arg;
	node_open(&n, &o);
	NEED(node_has_sockaddr(&n), "socket addresses");
	if (test_rank == 0) {
		char port[16];

		node_name(&n, &name);
		at = name.bytes;
		snprintf(port, sizeof(port), "%u",
			 (unsigned)((uint8_t)((const char *)at)[2] << 8 | (uint8_t)((const char *)at)[3]));
		node_close(&n);
		link_send(1, &name, sizeof(name));
		barrier(NULL); /* the client has failed */
		o.service = port;
		node_open(&n, &o);
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 5, 0, in);
		barrier(NULL); /* the client may try again */
		wait_ctx(&n, n.rxcq, in);
		CHECK(strcmp(in, word) == 0);
	} else {
		fi_addr_t to;

		link_recv(0, &name, sizeof(name));
		to = node_insert_name(&n, &name);
		CHECK(insist(&n, to, word, sizeof(word), true) == 1);
		barrier(NULL);
		barrier(NULL);
		note("%d sends failed after the server had begun", insist(&n, to, word, sizeof(word), false));
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "long_without_receive_8k", test_long_without_receive, 2, 0, 8192 },
	{ "long_without_receive_1m", test_long_without_receive, 2, 0, 1 << 20 },
	{ "unexpected_4097", test_unexpected, 2, 0, 4097 },
	{ "unexpected_70000", test_unexpected, 2, 0, 70000 },
	{ "all_at_once", test_all_at_once, 8, 0, 0 },
	{ "clients_in_turn", test_clients_in_turn, 2, 0, 0 },
	{ "client_first", test_client_first, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
