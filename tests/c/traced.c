/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Known numbers of calls and operations, for tests/clients/trace.sh to count. With WEFT_TRACED_DIR
 * it writes its id to "pid" there, calls nothing of libfabric until there is "go", makes "done" when
 * it is through, and stays until there is "end".
 */
#include "common.h"
#include "tokens.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { PAIRS = 1000, VECTORS = 100, REFUSED = 50, WAITS = 20, SHARED = 10, LISTS = 30, NOTES = 40 };

static const char *dir;

static void make_file(const char *name, const char *text)
{
	char path[512], temporary[520];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	FILE *f = fopen(temporary, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
	CHECK(rename(temporary, path) == 0); /* never seen half written */
}

static void wait_file(const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	while (stat(path, &st))
		usleep(10000);
}

static void pair(struct node *n, enum form form, uint64_t *out, uint64_t *in, uint64_t tag)
{
	struct op op = { .form = form, .tagged = true, .addr = n->peer[0], .tag = tag, .ctx = out };

	trecv(n, in, 2 * sizeof(*in), FI_ADDR_UNSPEC, tag, 0, in);
	if (form == F_V)
		op_split(&op, out, 2 * sizeof(*out), 2, false);
	else
		op.buf = out, op.len = 2 * sizeof(*out);
	post_send(n, &op);
	wait_ctx(n, n->rxcq, in);
	wait_ctx(n, n->txcq, out);
}

/* Two receives with one context at a time; which of them a completion is of, nothing can say. */
static void share_context(struct node *n, uint64_t *buf)
{
	trecv(n, buf, 8, FI_ADDR_UNSPEC, 7, 0, buf);
	trecv(n, buf, 8, FI_ADDR_UNSPEC, 8, 0, buf);
	OK(fi_tinject(n->ep, buf + 2, 8, n->peer[0], 7));
	OK(fi_tinject(n->ep, buf + 2, 8, n->peer[0], 8));
	wait_ctx(n, n->rxcq, buf);
	wait_ctx(n, n->rxcq, buf);
}

/* Writes to own memory by lists of one element and of two, and notifications of nothing. */
static void lists(struct node *n, uint64_t *mem)
{
	struct weft_token_ops *t = token_ops(&n->ep->fid);
	struct weft_local_piece here = { .addr = mem, .len = 8, .stride = 16 };
	struct weft_remote_piece there = { .len = 8, .stride = 16 };
	struct weft_remote_info info;
	struct weft_list *list;
	char token[WEFT_TOKEN_MAX], got[8];
	struct weft_note e = { .data = got, .size = sizeof(got) };
	size_t len = sizeof(token);
	struct fid_mr *mr;
	ssize_t rc;

	OK(fi_mr_reg(n->domain, mem, 4 * sizeof(*mem), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	OK(t->pack(mr, NULL, token, &len));
	OK(t->open(n->ep, token, len, &there.remote));
	OK(t->info(there.remote, &info, sizeof(info)));
	there.addr = info.base;
	for (here.count = 1; here.count <= 2; here.count++) {
		there.count = here.count;
		OK(t->list(n->ep, &here, &there, 1, 0, &list));
		for (int i = 0; i < LISTS; i++) {
			while ((rc = t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, list)) == -FI_EAGAIN)
				progress(n);
			OK(rc);
			wait_ctx(n, n->txcq, list);
		}
		OK(fi_close(&list->fid));
	}
	for (int i = 0; i < NOTES; i++) {
		while ((rc = t->notify(n->ep, info.addr, 0, mem, 8, 0, mem)) == -FI_EAGAIN)
			progress(n);
		OK(rc);
		wait_ctx(n, n->txcq, mem);
		while (t->notes(n->ep, &e, 1) != 1)
			;
	}
	OK(fi_close(&there.remote->fid));
	OK(fi_close(&mr->fid));
}

static void known_numbers(long arg)
{
	struct node n;
	uint64_t out[4] = { 0 }, in[4];
	struct fi_cq_tagged_entry e;
	char id[32];

	(void)arg;
	dir = getenv("WEFT_TRACED_DIR");
	node_open(&n, &(struct node_opts){ .caps = FI_MSG | FI_TAGGED | FI_RMA, .wait = FI_WAIT_FD });
	node_connect(&n);
	if (dir) {
		snprintf(id, sizeof(id), "%d\n", (int)getpid());
		make_file("pid", id);
		wait_file("go");
	}
	for (uint64_t i = 0; i < PAIRS; i++)
		pair(&n, F_PLAIN, out, in, 100 + i);
	for (uint64_t i = 0; i < VECTORS; i++)
		pair(&n, F_V, out, in, 100 + i);
	for (int i = 0; i < REFUSED; i++)
		EXPECT_RC(fi_tsend(n.ep, out, 8, NULL, 12345, 1, out), -FI_EINVAL);
	for (int i = 0; i < WAITS; i++)
		EXPECT_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 1), -FI_EAGAIN);
	for (int i = 0; i < SHARED; i++)
		share_context(&n, in);
	lists(&n, in);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 9, 0, in);
	OK(fi_cancel(&n.ep->fid, in));
	wait_err(&n, n.rxcq, FI_ECANCELED);
	if (dir) {
		make_file("done", "");
		wait_file("end");
	}
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = { { "known_numbers", known_numbers, .seconds = 120 } };

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
