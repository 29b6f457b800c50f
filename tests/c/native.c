/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: a NIC of Slingshot matches their messages. Hints of FI_ADDR_CXI get them. Without such a
 * NIC, or its model (tests/clients/cxi.sh), everything is skipped. */
#include "counts.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV)
#define LARGE (1 << 20)

static struct node_opts opts = { .caps = CAPS, .addr_format = FI_ADDR_CXI };
static struct node n;

static void open_node(struct node_opts o)
{
	node_need(&opts);
	o.caps = o.caps ? o.caps : CAPS;
	o.addr_format = FI_ADDR_CXI;
	node_open(&n, &o);
	node_connect(&n);
}

/* What is offered, field by field, as far as libfabric's provider fixes it. */
static void test_offer(long arg)
{
	struct fi_info *hints, *info;

	(void)arg;
	node_need(&opts);
	for (int by = 0; by < 2; by++) { /* by the format, by the protocol */
		hints = node_hints(&opts);
		if (by) {
			hints->addr_format = FI_FORMAT_UNSPEC;
			hints->ep_attr->protocol = FI_PROTO_CXI;
		}
		info = node_offered(hints);
		CHECK(info);
		CHECK(info->addr_format == FI_ADDR_CXI && info->src_addrlen == 8 && info->src_addr);
		CHECK(info->ep_attr->protocol == FI_PROTO_CXI && info->ep_attr->protocol_version == 1);
		CHECK(info->ep_attr->type == FI_EP_RDM);
		CHECK(info->ep_attr->max_msg_size == 4294967295u);
		CHECK(info->ep_attr->mem_tag_format == 0x0000aaaaaaaaaaaaull);
		CHECK(info->tx_attr->inject_size == 192);
		CHECK(info->tx_attr->iov_limit == 1 && info->rx_attr->iov_limit == 1);
		CHECK(info->rx_attr->msg_order & FI_ORDER_SAS); /* whatever was asked for */
		CHECK(info->domain_attr->cq_data_size == 8);
		CHECK(!strncmp(info->domain_attr->name, "cxi", 3));
		CHECK(!strcmp(info->fabric_attr->name, "cxi"));
		CHECK(!(info->caps & (FI_RMA | FI_ATOMIC)));
		CHECK(info->domain_attr->control_progress == FI_PROGRESS_MANUAL);
		CHECK(info->domain_attr->data_progress == FI_PROGRESS_MANUAL);
		fi_freeinfo(info);
	}
}

static void change(struct fi_info *h, int what)
{
	switch (what) {
	case 0:
		h->ep_attr->protocol = 29; /* FI_PROTO_CXI_RNR */
		break;
	case 1:
		h->caps |= FI_RMA;
		break;
	case 2:
		h->ep_attr->type = FI_EP_MSG;
		break;
	case 3:
		h->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaaull;
		break;
	case 4:
		h->tx_attr->msg_order = FI_ORDER_RAW;
		break;
	case 5:
		h->tx_attr->inject_size = 193;
		break;
	case 6:
		h->caps |= FI_NAMED_RX_CTX;
		break;
	case 7:
		h->domain_attr->name = strdup("cxi77");
		break;
	case 8:
		h->src_addr = calloc(1, 7);
		h->src_addrlen = 7;
		break;
	}
}

/* What is not there is not offered. */
static void test_refused(long arg)
{
	(void)arg;
	node_need(&opts);
	for (int what = 0; what < 9; what++) {
		struct fi_info *hints = node_hints(&opts);

		change(hints, what);
		CHECKF(!node_offered(hints), "hint %d is met", what);
	}
}

/* Messages of every way on which they travel, that come after their receive or (1) before it; 2 times a threading. */
static void test_messages(long arg)
{
	static const size_t sizes[] = { 0, 1, 192, 193, 2048, 16384, 18433, 18434, LARGE };
	static unsigned char in[LARGE], out[LARGE];
	struct fi_cq_tagged_entry e;
	struct node_opts wanted = opts;
	bool unexpected = arg % 2;

	wanted.threading = (enum fi_threading)(arg / 2);
	open_node(wanted);
	CHECK(!wanted.threading || n.info->domain_attr->threading == wanted.threading);
	for (size_t k = 0; k < 2 * ARRAY_LEN(sizes); k++) {
		size_t len = sizes[k / 2];
		struct op o = { .form = k % 3 ? F_PLAIN : F_DATA,
				.tagged = k % 2,
				.len = len,
				.tag = 0xabcd00000000ull + k,
				.data = ~k };

		if (test_rank == 0) {
			if (!unexpected)
				barrier(&n);
			o.buf = o.ctx = out;
			o.addr = n.peer[1];
			fill(out, len, k);
			post_send(&n, &o);
			if (unexpected)
				barrier(&n);
			wait_ctx(&n, n.txcq, out);
			continue;
		}
		if (unexpected)
			barrier(&n);
		o.buf = o.ctx = in;
		o.form = F_PLAIN;
		o.addr = k % 4 ? n.peer[0] : FI_ADDR_UNSPEC;
		memset(in, 0, len);
		post_recv(&n, &o);
		if (!unexpected)
			barrier(&n);
		wait_ok(&n, n.rxcq, &e);
		verify(in, len, k);
		CHECK(e.op_context == in && e.len == len && e.tag == (o.tagged ? o.tag : 0));
		CHECK(e.flags == (FI_RECV | (o.tagged ? FI_TAGGED : FI_MSG) | (k % 3 ? 0 : FI_REMOTE_CQ_DATA)));
		CHECK(k % 3 || e.data == ~k);
	}
	barrier(&n);
	node_close(&n);
}

/* Posts a receive or search of a message of tag 7, or of one without a tag. */
static void post_search(bool tagged, uint64_t flags, void *buf, size_t len, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 7, .context = context
	};
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context };
	ssize_t rc;

	do {
		rc = tagged ? fi_trecvmsg(n.ep, &t, flags) : fi_recvmsg(n.ep, &m, flags);
		if (rc == -FI_EAGAIN)
			progress(&n);
	} while (rc == -FI_EAGAIN);
	CHECK_RC(rc, 0);
}

/* A search that is to find a message of so many bytes with data, or none (data 0). */
static void search(bool tagged, uint64_t flags, size_t len, uint64_t data, void *context)
{
	struct fi_cq_tagged_entry e;

	post_search(tagged, flags | FI_PEEK, NULL, 0, context);
	if (!data) {
		wait_err(&n, n.rxcq, FI_ENOMSG);
		CHECK(n.err.op_context == context);
		return;
	}
	wait_ok(&n, n.rxcq, &e);
	CHECK(e.op_context == context && e.len == len && e.data == data && e.tag == (tagged ? 7 : 0));
	CHECK(e.flags == (FI_RECV | FI_REMOTE_CQ_DATA | (tagged ? FI_TAGGED : FI_MSG)));
}

/* The receive of the message with data. */
static void received(uint64_t data, void *context, const void *buf, size_t len)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&n, n.rxcq, &e);
	CHECKF(e.op_context == context && e.len == len && e.data == data, "message %d of %zu bytes, not %d",
	       (int)e.data, e.len, (int)data);
	if (buf)
		verify(buf, len, data);
}

/* What the page of counters says of messages that were received, and of claims for which the NIC stopped. */
static void counted(uint64_t messages)
{
	const char *match = getenv("FI_WEFT_CXI_MATCH");
	bool hardware = !match || !strcmp(match, "hardware");
	struct weft_stats_ops *ops;
	struct fid *fid = &n.ep->fid;

	if (!test_is_weft())
		return;
	ops = open_stats(fid);
	CHECK(value(ops, fid, "matched_received") == messages);
	if (hardware) {
		CHECK(value(ops, fid, "matched_by_software") > 0);
		CHECK(value(ops, fid, "matched_onloaded") > 0);
	}
	CHECK(value(ops, fid, "matched_software") > 0);
	CHECK(!hardware || value(ops, fid, "matched_software") <= value(ops, fid, "matched_onloaded"));
	CHECK(value(ops, fid, "matched_doorbells") > 0);
	CHECK(value(ops, fid, "matched_state") != 0);
	CHECK(value(ops, fid, "matched_refused") == 0);
	CHECK(value(ops, fid, "errors_truncated") == 0);
	CHECK(value(ops, fid, "malformed") == 0);
}

/* Messages are set aside, received in another order or thrown away, and others go by; counters count what is received,
 * no search. */
static void test_claims(long len)
{
	static struct fi_context2 ctx[4];
	static unsigned char in[LARGE], out[4][LARGE];
	struct node_opts o = opts;
	struct fi_cq_tagged_entry e;

	o.counters = true;
	open_node(o);
	for (int tagged = 0; tagged < 2; tagged++) {
		for (uint64_t k = 1; k <= 4 && test_rank == 0; k++) {
			struct op p = { .form = F_DATA,
					.tagged = tagged,
					.len = (size_t)len,
					.tag = 7,
					.data = k,
					.addr = n.peer[1],
					.buf = out[k - 1],
					.ctx = out[k - 1] };

			fill(out[k - 1], (size_t)len, k);
			post_send(&n, &p);
		}
		if (test_rank == 0) { /* what comes behind them says that they are there */
			tsend(&n, NULL, 0, n.peer[1], 8, out);
			for (int k = 0; k < 5; k++)
				wait_ok(&n, n.txcq, &e);
			continue;
		}
		trecv(&n, NULL, 0, n.peer[0], 8, 0, in);
		wait_ctx(&n, n.rxcq, in);
		search(tagged, FI_CLAIM, (size_t)len, 1, &ctx[0]);
		search(tagged, FI_CLAIM, (size_t)len, 2, &ctx[1]);
		search(tagged, FI_DISCARD, (size_t)len, 3, &ctx[2]);
		post_search(tagged, 0, in, (size_t)len, &ctx[2]);
		received(4, &ctx[2], in, (size_t)len);
		search(tagged, FI_CLAIM, 0, 0, &ctx[2]);
		post_search(tagged, FI_CLAIM, in, (size_t)len, &ctx[1]);
		received(2, &ctx[1], in, (size_t)len);
		post_search(tagged, FI_CLAIM | FI_DISCARD, NULL, 0, &ctx[0]);
		received(1, &ctx[0], NULL, (size_t)len);
		CHECK(fi_cntr_read(n.rxcntr) == 4 * ((uint64_t)tagged + 1));
	}
	if (test_rank == 1)
		counted(8);
	barrier(&n);
	node_close(&n);
}

/* What the NIC cannot do, and what is no call's argument, is refused, and the endpoint goes on. */
static void test_bad(long arg)
{
	char in[8] = "", out[512] = "well";
	struct iovec iov[2] = { { out, 4 }, { out + 4, 4 } };
	struct fi_msg_tagged m = { .msg_iov = iov, .iov_count = 2, .tag = 1, .context = in };
	size_t many = 1 << 24, size = sizeof(many);

	(void)arg;
	open_node(opts);
	m.addr = n.peer[0];
	EXPECT_RC(fi_tsend(n.ep, out, 4, NULL, n.peer[0], 1ull << 48, out), -FI_EINVAL);
	EXPECT_RC(fi_trecv(n.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1ull << 63, 0, in), -FI_EINVAL);
	EXPECT_RC(fi_tinject(n.ep, out, 193, n.peer[0], 1), -FI_EINVAL);
	EXPECT_RC(fi_tsend(n.ep, out, 4, NULL, 99, 1, out), -FI_EINVAL);
	EXPECT_RC(fi_trecv(n.ep, in, 8, NULL, 99, 1, 0, in), -FI_EINVAL);
	EXPECT_RC(fi_tsendmsg(n.ep, &m, 0), -FI_EINVAL);
	EXPECT_RC(fi_trecvmsg(n.ep, &m, 0), -FI_EINVAL);
	m.iov_count = 1;
	EXPECT_RC(fi_tsendmsg(n.ep, &m, FI_FENCE), -FI_EINVAL); /* without the capability */
	EXPECT_RC(fi_tsendmsg(n.ep, &m, FI_MULTI_RECV), -FI_EBADFLAGS);
	EXPECT_RC(fi_trecvmsg(n.ep, &m, FI_PEEK | FI_CLAIM | FI_DISCARD), -FI_EBADFLAGS);
	EXPECT_RC(fi_trecvmsg(n.ep, &m, FI_DISCARD), -FI_EBADFLAGS);
	OK(fi_trecvmsg(n.ep, &m, FI_CLAIM));
	wait_err(&n, n.rxcq, FI_ENOMSG); /* nothing is claimed */
	CHECK(n.err.op_context == in && n.err.tag == 1 && n.err.flags == (FI_RECV | FI_TAGGED));
	EXPECT_RC(fi_tsend(n.ep, NULL, 4, NULL, n.peer[0], 1, out), -FI_EINVAL);
	EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &many, sizeof(many)), -FI_EINVAL);
	EXPECT_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &many, &size), 0);
	EXPECT(many == 64);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, ~0ull, ~0ull, in); /* bits that are ignored may be any */
	OK(fi_tinject(n.ep, out, 5, n.peer[0], 1));
	wait_ctx(&n, n.rxcq, in);
	CHECK(!strcmp(in, "well"));
	node_close(&n);
}

/* A name is chosen before the endpoint is enabled, and another endpoint cannot have it. */
static void test_names(long arg)
{
	struct node_opts o = opts;
	struct node other;
	struct fi_info *info;
	uint64_t name = 0, got = 0;
	size_t len = 8;

	(void)arg;
	node_need(&opts);
	o.disabled = true;
	node_open(&n, &o);
	EXPECT_RC(fi_getname(&n.ep->fid, &got, &len), -FI_EOPBADSTATE);
	memcpy(&name, n.info->src_addr, 8);
	name = (name & ~0x1ffull) | 123; /* the PID */
	EXPECT_RC(fi_setname(&n.ep->fid, &name, 7), -FI_EINVAL);
	OK(fi_setname(&n.ep->fid, &name, 8));
	OK(fi_enable(n.ep));
	len = 4;
	EXPECT_RC(fi_getname(&n.ep->fid, &got, &len), -FI_ETOOSMALL);
	CHECK(len == 8);
	OK(fi_getname(&n.ep->fid, &got, &len));
	CHECKF(got == name, "named %#llx, not %#llx", (unsigned long long)got, (unsigned long long)name);
	EXPECT_RC(fi_setname(&n.ep->fid, &name, 8), -FI_EOPBADSTATE);
	node_open_on(&other, &n, &o);
	OK(fi_setname(&other.ep->fid, &name, 8));
	EXPECT_RC(fi_enable(other.ep), -FI_EADDRINUSE);
	info = node_hints(&opts);
	info->src_addr = malloc(8);
	info->src_addrlen = 8;
	memcpy(info->src_addr, &name, 8);
	info = node_offered(info);
	CHECK(info && !memcmp(info->src_addr, &name, 8));
	fi_freeinfo(info);
	node_close(&other);
	node_close(&n);
}

/* Peers sleep in fi_cq_sread until messages come, and counters count them. */
static void test_sleep(long arg)
{
	struct node_opts o = opts;
	char b[64];

	(void)arg;
	o.wait = FI_WAIT_FD;
	o.counters = true;
	open_node(o);
	for (int k = 0; k < 20; k++) {
		struct fi_cq_tagged_entry e;

		if (test_rank == k % 2) {
			usleep(20000);
			tsend(&n, b, sizeof(b), n.peer[!test_rank], 1, b);
		} else {
			trecv(&n, b, sizeof(b), n.peer[!test_rank], 1, 0, b);
			CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 60000), 1);
			CHECK(e.op_context == b);
		}
		if (test_rank == k % 2)
			CHECK_RC(fi_cq_sread(n.txcq, &e, 1, NULL, 60000), 1);
	}
	OK(fi_cntr_wait(n.txcntr, 10, 60000));
	OK(fi_cntr_wait(n.rxcntr, 10, 60000));
	barrier(&n);
	node_close(&n);
}

/* An endpoint is closed with receives, messages to it and long messages from it under way, again and again. */
static void test_close(long arg)
{
	static unsigned char in[8][LARGE], out[LARGE];
	struct node_opts o = opts;

	(void)arg;
	node_need(&opts);
	for (int round = 0; round < 5; round++) {
		node_open(&n, &o);
		node_connect(&n);
		for (int k = 0; k < 8; k++) {
			trecv(&n, in[k], LARGE, FI_ADDR_UNSPEC, (uint64_t)k, 0, in[k]);
			tsend(&n, out, LARGE, n.peer[!test_rank], (uint64_t)(k + 4), out);
		}
		if (round % 2)
			barrier(NULL);
		node_close(&n);
		barrier(NULL);
	}
}

/* Objects of other endpoints are not there. */
static void test_others(long arg)
{
	struct node_opts o = opts;
	struct fid_ep *ep = NULL;
	struct fid_stx *stx = NULL;

	(void)arg;
	node_need(&opts);
	node_open_domain(&n, &o);
	EXPECT_RC(fi_srx_context(n.domain, n.info->rx_attr, &ep, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_stx_context(n.domain, n.info->tx_attr, &stx, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_scalable_ep(n.domain, n.info, &ep, NULL), -FI_EOPNOTSUPP);
	n.info->caps |= FI_RMA;
	EXPECT_RC(fi_endpoint(n.domain, n.info, &ep, NULL), -FI_EINVAL);
	node_close_domain(&n);
}

/* Reads of a queue that find nothing do not enter Go, once all that was under way is taken in: messages, a receive
 * that is cancelled, commands that FI_MORE has left without a doorbell. */
static void test_idle(long arg)
{
	const char *direct = getenv("FI_WEFT_DIRECT");
	struct op o = { .form = F_MSG, .tagged = true, .tag = 2, .flags = FI_MORE | FI_COMPLETION, .ctx = &n };
	struct fi_cq_tagged_entry e;
	char in[8], out[8] = "idle";
	uint64_t before;

	(void)arg;
	if (direct && !strcmp(direct, "no"))
		SKIP("the data plane is called by callbacks");
	open_node((struct node_opts){ 0 });
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, sizeof(out), n.peer[0], 1, out);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 2, 0, in);
	o.addr = n.peer[0];
	op_split(&o, out, sizeof(out), 1, false);
	post_send(&n, &o);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, &n);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 3, 0, in);
	CHECK_RC(fi_cancel(&n.ep->fid, in), 0);
	wait_err(&n, n.rxcq, FI_ECANCELED);
	wait_none(&n, n.rxcq, 1);
	before = node_counter(&n, "matched_progress");
	CHECK(before > 0);
	for (int i = 0; i < 100000; i++) {
		CHECK(fi_cq_read(n.rxcq, &e, 1) == -FI_EAGAIN);
		CHECK(fi_cq_read(n.txcq, &e, 1) == -FI_EAGAIN);
	}
	CHECKF(node_counter(&n, "matched_progress") == before, "%llu entries into Go",
	       (unsigned long long)(node_counter(&n, "matched_progress") - before));
	node_close(&n);
}

/* In an address vector that is the same at every rank, messages are received from one rank or any, and completions name
 * their sender. */
static void test_symmetric(long arg)
{
	struct node_opts o = opts;
	char in[8], out[8] = "same";

	(void)arg;
	o.av_flags = FI_SYMMETRIC;
	open_node(o);
	CHECK(n.peer[0] == 0 && n.peer[1] == 1);
	for (int k = 0; k < 6; k++) {
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		struct fi_cq_tagged_entry e;

		if (test_rank == 0) {
			tsend(&n, out, sizeof(out), n.peer[1], (uint64_t)k, out);
			wait_ctx(&n, n.txcq, out);
			continue;
		}
		trecv(&n, in, sizeof(in), n.peer[1], (uint64_t)k, 0, out); /* not for this one */
		trecv(&n, in, sizeof(in), k % 2 ? n.peer[0] : FI_ADDR_UNSPEC, (uint64_t)k, 0, in);
		while (fi_cq_readfrom(n.rxcq, &e, 1, &src) != 1)
			;
		CHECK(e.op_context == in && src == n.peer[0]);
	}
	barrier(&n);
	node_close(&n);
}

/* Messages that go at once, to receives that are there, are taken in without progress of Go's. An unexpected one is
 * not. */
static void test_steady(long len)
{
	static char in[2048], out[2048];
	const char *direct = getenv("FI_WEFT_DIRECT"), *match = getenv("FI_WEFT_CXI_MATCH");
	bool hardware = !match || !strcmp(match, "hardware"); /* software's matching is Go's */
	uint64_t before = 0;

	if (direct && !strcmp(direct, "no"))
		SKIP("the data plane is called by callbacks");
	open_node((struct node_opts){ 0 });
	for (uint64_t k = 0; k < 5000; k++) {
		if (k == 2) /* names are known */
			before = node_counter(&n, "matched_progress");
		fill(out, (size_t)len, k);
		trecv(&n, in, (size_t)len, k % 2 ? n.peer[0] : FI_ADDR_UNSPEC, k, 0, in);
		tsend(&n, out, (size_t)len, n.peer[0], k, out);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
		verify(in, (size_t)len, k);
	}
	CHECK(before > 0);
	CHECKF(!hardware || node_counter(&n, "matched_progress") == before, "%llu entries into Go",
	       (unsigned long long)(node_counter(&n, "matched_progress") - before));
	CHECK(node_counter(&n, "matched_received") == 5000 && node_counter(&n, "matched_sent") == 5000);
	tsend(&n, out, (size_t)len, n.peer[0], 7, out);
	wait_ctx(&n, n.txcq, out);
	trecv(&n, in, (size_t)len, FI_ADDR_UNSPEC, 7, 0, in);
	wait_ctx(&n, n.rxcq, in);
	CHECK(node_counter(&n, "matched_progress") > before);
	node_close(&n);
}

/* A pair of posts of which the first leaves the doorbell to the second (FI_MORE) has one, and needs nothing of Go's. */
static void test_steady_more(long arg)
{
	const char *direct = getenv("FI_WEFT_DIRECT"), *match = getenv("FI_WEFT_CXI_MATCH");
	static char in[16], out[16];
	uint64_t before = 0, bells = 0, entered;

	(void)arg;
	if (direct && !strcmp(direct, "no"))
		SKIP("the data plane is called by callbacks");
	open_node((struct node_opts){ 0 });
	for (uint64_t k = 0; k < 5000; k++) {
		if (k == 2) { /* names are known */
			before = node_counter(&n, "matched_posts") + node_counter(&n, "matched_progress");
			bells = node_counter(&n, "matched_doorbells");
		}
		fill(out, sizeof(out), k);
		for (int i = 0; i < 4; i++) { /* two receives, two sends */
			struct op o = { .form = F_MSG,
					.tagged = true,
					.addr = i < 2 ? FI_ADDR_UNSPEC : n.peer[0],
					.tag = k,
					.flags = FI_COMPLETION | (i % 2 ? 0 : FI_MORE),
					.ctx = i < 2 ? in : out };

			op_split(&o, (i < 2 ? in : out) + 8 * (i % 2), 8, 1, false);
			(i < 2 ? post_recv : post_send)(&n, &o);
		}
		for (int i = 0; i < 2; i++) {
			wait_ctx(&n, n.rxcq, in);
			wait_ctx(&n, n.txcq, out);
		}
		verify(in, sizeof(in), k);
	}
	entered = node_counter(&n, "matched_posts") + node_counter(&n, "matched_progress") - before;
	bells = node_counter(&n, "matched_doorbells") - bells;
	CHECK(before > 0);
	CHECKF((match && strcmp(match, "hardware")) || entered == 0, "%llu entries into Go",
	       (unsigned long long)entered);
	CHECKF((match && strcmp(match, "hardware")) || bells == 9996, "%llu doorbells", (unsigned long long)bells);
	node_close(&n);
}

static const struct test tests[] = {
	{ "offer", test_offer, 0, 0, 0 },
	{ "refused", test_refused, 0, 0, 0 },
	{ "messages_expected", test_messages, 2, 0, 0 },
	{ "messages_unexpected", test_messages, 2, 0, 1 },
	{ "messages_endpoint", test_messages, 2, 0, 2 * FI_THREAD_ENDPOINT },
	{ "messages_fid", test_messages, 2, 0, 2 * FI_THREAD_FID + 1 },
	{ "claims_inline", test_claims, 2, 0, 192 },
	{ "claims_eager", test_claims, 2, 0, 5000 },
	{ "claims_rendezvous", test_claims, 2, 0, 300000 },
	{ "bad", test_bad, 0, 0, 0 },
	{ "names", test_names, 0, 0, 0 },
	{ "sleep", test_sleep, 2, 0, 0 },
	{ "close", test_close, 2, 0, 0 },
	{ "others", test_others, 0, 0, 0 },
	{ "idle", test_idle, 1, 0, 0 },
	{ "symmetric", test_symmetric, 2, 0, 0 },
	{ "steady_inline", test_steady, 1, 0, 8 },
	{ "steady_copied", test_steady, 1, 0, 1024 },
	{ "steady_more", test_steady_more, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
