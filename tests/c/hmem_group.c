/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_HMEM: weft's alltoallv (weft/coll.h) takes host memory only, also in a group that has joined.
 */
#include "../../include/weft/coll.h"
#include "group.h"
#include "hmem.h"

enum { WORDS = 4 };

/* An alltoallv in a group of one. */
static struct weft_alltoallv vector(struct group *g, const struct buffer *in, const struct buffer *out)
{
	static const uint64_t count = WORDS, at;

	return (struct weft_alltoallv){
		.size = sizeof(struct weft_alltoallv),
		.elem = 8,
		.buf = in ? in->p : WEFT_IN_PLACE,
		.desc = in ? in->desc : NULL,
		.counts = &count,
		.displs = &at,
		.result = out->p,
		.result_desc = out->desc,
		.result_counts = &count,
		.result_displs = &at,
		.coll_addr = g->addr,
		.context = g,
	};
}

static void refused(struct group *g, struct weft_coll_ops *ops, struct buffer *in, struct buffer *out)
{
	struct weft_alltoallv v = vector(g, in, out);
	struct weft_alltoallv_req *req = NULL;

	EXPECT_RC(ops->alltoallv(g->n.ep, &v), -FI_EOPNOTSUPP);
	EXPECT_RC(ops->alltoallv_init(g->n.ep, &v, &req), -FI_EOPNOTSUPP);
	EXPECT(!req);
}

/* Device memory on either side, and in place, is refused and not written; host memory is taken. */
static void test_vector(long unused)
{
	static const uint64_t words[WORDS] = { 1, 2, 3, 4 };
	uint64_t got[WORDS] = { 0 };
	struct weft_coll_ops *ops;
	struct buffer d, h, other;
	struct group g;

	(void)unused;
	if (!test_is_weft())
		SKIP("an extension of weft");
	gpu_open();
	group_open_with(&g, FI_HMEM, FI_MR_HMEM);
	OK(fi_open_ops(&g.n.ep->fid, WEFT_COLL_OPS, 0, (void **)&ops, NULL));
	d = buffer_open(&g.n, 4096, true);
	h = buffer_open(&g.n, 4096, false);
	other = buffer_open(&g.n, 4096, false);
	group_join(&g, 0, 1);
	gpu_put(d.p, words, sizeof(words));
	memcpy(h.p, words, sizeof(words));
	refused(&g, ops, &d, &h);
	refused(&g, ops, &h, &d);
	refused(&g, ops, &d, &d);
	refused(&g, ops, NULL, &d);
	gpu_get(got, d.p, sizeof(got));
	CHECK(!memcmp(got, words, sizeof(words)) && !memcmp(h.p, words, sizeof(words)));

	struct weft_alltoallv v = vector(&g, &h, &other);
	OK(ops->alltoallv(g.n.ep, &v));
	group_done(&g, &g);
	CHECK(!memcmp(other.p, words, sizeof(words)));
	group_leave(&g);
	buffer_close(&d);
	buffer_close(&h);
	buffer_close(&other);
	group_close(&g);
}

static const struct test tests[] = {
	{ "vector", test_vector, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
