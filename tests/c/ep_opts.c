/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint options that came after libfabric 1.17: sizes, FI_OPT_SHARED_MEMORY_PERMITTED and
 * FI_OPT_CUDA_API_PERMITTED. */
#include <dlfcn.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

enum { /* fi_endpoint.h of 2.x */
       OPT_CUDA_API = 10,
       OPT_SHARED_MEMORY,
       OPT_MAX_MSG,
       OPT_MAX_TAGGED,
       OPT_MAX_RMA,
       OPT_MAX_ATOMIC,
       OPT_INJECT_MSG,
       OPT_INJECT_TAGGED,
       OPT_INJECT_RMA,
       OPT_INJECT_ATOMIC,
};

#define LEN ((size_t)100000)
#define KEY 0x0B

static size_t get(struct node *n, int name)
{
	size_t v = 0, len = sizeof(v);

	OK(fi_getopt(&n->ep->fid, FI_OPT_ENDPOINT, name, &v, &len));
	CHECK(len == sizeof(v));
	return v;
}

/* One call of each kind with len bytes; injected or not. 0: it was taken, else its error. */
static ssize_t call(struct node *n, int name, const char *buf, size_t len)
{
	fi_addr_t to = n->peer[0];

	switch (name) {
	case OPT_MAX_MSG:
		return fi_send(n->ep, buf, len, NULL, to, NULL);
	case OPT_MAX_TAGGED:
		return fi_tsend(n->ep, buf, len, NULL, to, 1, NULL);
	case OPT_MAX_RMA:
		return fi_write(n->ep, buf, len, NULL, to, 0, KEY, NULL);
	case OPT_MAX_ATOMIC:
		return fi_atomic(n->ep, buf, len, NULL, to, 0, KEY, FI_UINT8, FI_SUM, NULL);
	case OPT_INJECT_MSG:
		return fi_inject(n->ep, buf, len, to);
	case OPT_INJECT_TAGGED:
		return fi_tinject(n->ep, buf, len, to, 1);
	case OPT_INJECT_RMA:
		return fi_inject_write(n->ep, buf, len, to, 0, KEY);
	default:
		return fi_inject_atomic(n->ep, buf, len, to, 0, KEY, FI_UINT8, FI_SUM);
	}
}

static void test_sizes(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC };
	static char mem[8192], buf[8192];
	struct fid_mr *mr;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	n.peer[0] = node_insert(&n, &n);
	OK(fi_mr_reg(n.domain, mem, sizeof(mem), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	for (int name = OPT_MAX_MSG; name <= OPT_INJECT_ATOMIC; name++) {
		bool inject = name >= OPT_INJECT_MSG;
		size_t own = get(&n, name), more = own + 1, less = 100, none = 0;
		ssize_t rc;

		CHECK(own <= (inject ? n.info->tx_attr->inject_size : n.info->ep_attr->max_msg_size) && own > less);
		EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, name, &more, sizeof(more)), -FI_EINVAL);
		EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, name, &none, sizeof(none)), -FI_EINVAL);
		EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, name, &less, 4), -FI_EINVAL);
		while ((rc = call(&n, name, buf, less + 1)) == -FI_EAGAIN)
			progress(&n);
		CHECKF(rc == 0, "option %d: %zd", name, rc);
		OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, name, &less, sizeof(less)));
		CHECK(get(&n, name) == less);
		EXPECT_RC((int)call(&n, name, buf, less + 1), inject ? -FI_EINVAL : -FI_EMSGSIZE);
		while ((rc = call(&n, name, buf, less)) == -FI_EAGAIN)
			progress(&n);
		CHECKF(rc == 0, "option %d: %zd", name, rc);
		OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, name, &own, sizeof(own)));
	}
	OK(fi_close(&n.ep->fid));
	n.ep = NULL;
	OK(fi_close(&mr->fid));
	node_close(&n);
}

/* Two processes of one host that share no memory: what they do is the same. */
static void test_apart(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA,
			       .disabled = true,
			       .tx_flags = FI_DELIVERY_COMPLETE };
	char *mem = guard_alloc(LEN), *in = guard_alloc(LEN);
	struct fid_mr *mr = NULL;
	bool no = false;
	struct node n;
	size_t len = 1;
	ssize_t rc;

	(void)arg;
	node_open(&n, &o);
	EXPECT_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_SHARED_MEMORY, &no, &len), -FI_ENOPROTOOPT);
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_SHARED_MEMORY, &no, sizeof(no)));
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_SHARED_MEMORY, &(bool){ true }, sizeof(no)),
		  -FI_EOPBADSTATE);
	node_connect(&n);
	fill(mem, LEN, test_rank);
	if (test_rank == 1) {
		OK(fi_mr_reg(n.domain, mem, LEN, FI_REMOTE_READ, 0, KEY, 0, &mr, NULL));
		trecv(&n, in, LEN, n.peer[0], 1, 0, in);
	}
	barrier(&n);
	if (test_rank == 0) {
		tsend(&n, mem, LEN, n.peer[1], 1, mem);
		wait_ctx(&n, n.txcq, mem);
		while ((rc = fi_read(n.ep, in, LEN, NULL, n.peer[1], 0, KEY, in)) == -FI_EAGAIN)
			progress(&n);
		CHECKF(rc == 0, "fi_read: %zd", rc);
		wait_ctx(&n, n.txcq, in);
		verify(in, LEN, 1);
	} else {
		wait_ctx(&n, n.rxcq, in);
		verify(in, LEN, 0);
	}
	barrier(&n);
	if (mr)
		OK(fi_close(&mr->fid));
	node_close(&n);
	guard_free(mem, LEN);
	guard_free(in, LEN);
}

/* Only set. Where there is no CUDA -FI_EINVAL; tests/c/hmem.c has one. */
static void test_cuda(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED };
	size_t len = sizeof(bool);
	bool permitted;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	CHECK_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API, &permitted, &len), -FI_ENOPROTOOPT);
	if (dlopen("libcuda.so.1", RTLD_LAZY))
		SKIP("there is CUDA");
	for (int i = 0; i < 2; i++) {
		permitted = i;
		CHECK_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API, &permitted, len), -FI_EINVAL);
		CHECK_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API, &permitted, len + 1), -FI_EINVAL);
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "sizes", test_sizes, 0, 0, 0 },
	{ "no shared memory", test_apart, 2, 0, 0 },
	{ "CUDA", test_cuda, 0, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
