/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorisation keys in address vectors (FI_AV_AUTH_KEY): an endpoint with several keys, and others
 * with one each, of one process. provider/avkeys_test.go has what the calls have to do; this is
 * that they get there.
 */
#include <rdma/fi_rma.h>

#include "common.h"
#include "tokens.h"

#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20

static void test_skipped(long unused)
{
	(void)unused;
	SKIP("these headers are of libfabric %d.%d, FI_AV_AUTH_KEY came with 1.20", FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

static const struct test tests[] = { { "avkeys", test_skipped, 1, 0, 0 } };

#else

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV)

static struct fi_info *keyed_hints(const struct node_opts *o, size_t keys)
{
	struct fi_info *hints = node_hints(o);

	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	hints->domain_attr->max_ep_auth_key = keys;
	return hints;
}

static void test_getinfo(long unused)
{
	struct fi_info *hints = keyed_hints(NULL, 3), *info;

	(void)unused;
	OK(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	for (struct fi_info *p = info; p; p = p->next)
		CHECK(p->domain_attr->auth_key_size == FI_AV_AUTH_KEY && !p->domain_attr->auth_key &&
		      p->domain_attr->max_ep_auth_key == 3 && !p->ep_attr->auth_key_size);
	fi_freeinfo(info);
	CHECK_RC(fi_getinfo(FI_VERSION(1, 19), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_ep_auth_key = 100000;
	CHECK_RC(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_ep_auth_key = 0;
	hints->ep_attr->type = FI_EP_MSG;
	CHECK_RC(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->auth_key = calloc(1, 8); /* it has to be NULL */
	CHECK_RC(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	hints = keyed_hints(NULL, 0);
	OK(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	CHECK(info->domain_attr->max_ep_auth_key > 1);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static const char *const keys[] = { "one", "two" };

/* An endpoint with both keys. */
static void open_hub(struct node *n, fi_addr_t handles[2])
{
	struct node_opts o = { .caps = CAPS, .disabled = true };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_info *hints = keyed_hints(&o, 2);
	fi_addr_t none;
	char key[2];
	size_t len = sizeof(key);

	memset(n, 0, sizeof(*n));
	n->o = o;
	OK(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &n->info));
	fi_freeinfo(hints);
	OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	n->rxcq = n->txcq;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_RC(fi_enable(n->ep), -FI_EINVAL); /* no key */
	for (int k = 0; k < 2; k++)
		OK(fi_av_insert_auth_key(n->av, keys[k], strlen(keys[k]), &handles[k], 0));
	CHECK_RC(fi_av_insert_auth_key(n->av, "more", 4, &none, 0), -FI_ENOSPC);
	CHECK_RC(fi_av_insert_auth_key(n->av, NULL, 4, &none, 0), -FI_EINVAL);
	CHECK_RC(fi_av_insert_auth_key(n->av, "more", 4, NULL, 0), -FI_EINVAL);
	OK(fi_av_lookup_auth_key(n->av, handles[1], key, &len));
	CHECK(len == 3 && !memcmp(key, "tw", 2));
	CHECK_RC(fi_av_lookup_auth_key(n->av, handles[1], key, NULL), -FI_EINVAL);
	OK(fi_enable(n->ep));
	CHECK_RC(fi_av_remove(n->av, handles, 1, FI_AUTH_KEY), -FI_EBUSY);
}

static void close_hub(struct node *hub, fi_addr_t handles[2], fi_addr_t spokes[2])
{
	OK(fi_av_remove(hub->av, spokes, 2, 0));
	OK(fi_close(&hub->ep->fid));
	OK(fi_av_remove(hub->av, handles, 2, FI_AUTH_KEY));
	OK(fi_close(&hub->av->fid));
	OK(fi_close(&hub->txcq->fid));
	OK(fi_close(&hub->domain->fid));
	OK(fi_close(&hub->fabric->fid));
	fi_freeinfo(hub->info);
}

static fi_addr_t know(struct node *n, struct node *other, fi_addr_t handle)
{
	struct name name;

	node_name(other, &name);
	CHECK_RC(fi_av_insert(n->av, name.bytes, 1, &handle, FI_AUTH_KEY, NULL), 1);
	return handle;
}

/* What a receive of to completes with, the source, when from has sent to it. */
static fi_addr_t pass(struct node *from, fi_addr_t dest, struct node *to, void *ctx)
{
	static char out[3000], in[3000];
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	ssize_t rc;

	tsend(from, out, sizeof(out), dest, 1, out);
	if (!ctx)
		trecv(to, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
	while ((rc = fi_cq_readfrom(to->rxcq, &e, 1, &src)) == -FI_EAGAIN) {
		progress(from);
		progress(to);
	}
	if (rc == -FI_EAVAIL) {
		CHECK_RC(fi_cq_readerr(to->rxcq, &to->err, 0), 1);
		CHECK(to->err.err == FI_EADDRNOTAVAIL);
		src = to->err.src_addr;
	} else {
		CHECKF(rc == 1 && e.op_context == (ctx ? ctx : in), "%zd, %p", rc, e.op_context);
	}
	wait_ctx(from, from->txcq, out);
	return src;
}

static void test_keys(long unused)
{
	struct node hub, spoke[3];
	fi_addr_t handles[2], to_hub[3], spokes[2];
	static uint64_t word, mem;
	struct iovec iov = { &mem, sizeof(mem) };
	struct fi_mr_auth_key auth;
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_WRITE,
				   .requested_key = 5,
				   .auth_key = (uint8_t *)&auth,
				   .auth_key_size = sizeof(auth) };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 0, .tag = 1, .context = &msg };
	struct fid_mr *mr;

	(void)unused;
	open_hub(&hub, handles);
	for (int i = 0; i < 3; i++) { /* the third is not in the hub's address vector */
		struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .ep_auth = keys[i > 0] };

		node_open(&spoke[i], &o);
		to_hub[i] = node_insert(&spoke[i], &hub);
		if (i < 2)
			spokes[i] = know(&hub, &spoke[i], handles[i]);
	}
	for (int i = 0; i < 2; i++) {
		CHECK(pass(&spoke[i], to_hub[i], &hub, NULL) == spokes[i]);
		pass(&hub, spokes[i], &spoke[i], NULL);
	}
	CHECK(pass(&spoke[2], to_hub[2], &hub, NULL) == handles[1]);
	msg.addr = handles[0];
	OK(fi_trecvmsg(hub.ep, &msg, FI_AUTH_KEY)); /* of no bytes: the error says what took it */
	pass(&spoke[1], to_hub[1], &hub, NULL);
	OK(fi_cancel(&hub.ep->fid, &msg));
	wait_err(&hub, hub.rxcq, FI_ECANCELED);
	msg.addr = FI_ADDR_UNSPEC;
	CHECK_RC(fi_trecvmsg(spoke[0].ep, &msg, FI_AUTH_KEY), -FI_EINVAL);

	CHECK_RC(fi_mr_reg(hub.domain, &mem, sizeof(mem), FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL), -FI_EINVAL);
	auth.av = hub.av;
	auth.src_addr = handles[1];
	OK(fi_mr_regattr(hub.domain, &attr, FI_AUTH_KEY, &mr));
	for (int i = 0; i < 2; i++) {
		word = 7 + (uint64_t)i;
		OK(fi_write(spoke[i].ep, &word, sizeof(word), NULL, to_hub[i], 0, 5, &word));
		for (int n = 0; n < 1000; n++)
			progress(&hub);
		if (i)
			wait_ctx(&spoke[i], spoke[i].txcq, &word);
		else
			wait_err(&spoke[i], spoke[i].txcq, FI_EACCES);
		for (int n = 0; n < 1000; n++)
			progress(&hub);
		CHECK(mem == (i ? 8 : 0));
	}
	OK(fi_close(&mr->fid));
	for (int i = 0; i < 3; i++)
		node_close(&spoke[i]);
	CHECK_RC(fi_av_remove(hub.av, handles, 1, FI_AUTH_KEY), -FI_EBUSY);
	close_hub(&hub, handles, spokes);
}

static void write_noted(struct node *from, struct weft_remote *remote, struct node *to, char *mem, fi_addr_t src)
{
	struct weft_token_ops *t = token_ops(&from->ep->fid);
	char here[300], room[8];
	struct weft_local_piece local = { .addr = here, .len = sizeof(here) };
	struct weft_remote_piece there = { .remote = remote, .len = sizeof(here) };
	struct weft_note e = { .data = room, .size = sizeof(room) };
	struct weft_list *list;
	ssize_t rc;

	fill(here, sizeof(here), (unsigned)src);
	OK(t->list(from->ep, &local, &there, 1, 0, &list));
	while ((rc = t->post(list, WEFT_WRITE, NULL, 0, "note", 4, 0, here)) == -FI_EAGAIN) {
		progress(from);
		progress(to);
	}
	CHECKF(rc == 0, "post: %zd", rc);
	while ((rc = t->notes(to->ep, &e, 1)) == 0)
		progress(from);
	CHECKF(rc == 1 && e.len == 4 && !memcmp(room, "note", 4) && e.src == src, "notes: %zd, from %lu, want %lu", rc,
	       (unsigned long)e.src, (unsigned long)src);
	verify(mem, sizeof(here), (unsigned)src);
	wait_ctx(from, from->txcq, here);
	OK(fi_close(&list->fid));
}

/* A token is for endpoints with one of the region's keys, and its owner's and a sender's addresses are under that. */
static void test_tokens(long unused)
{
	static char mem[300];
	struct node hub, spoke[2];
	fi_addr_t handles[2], spokes[2];
	struct iovec iov = { mem, sizeof(mem) };
	struct fi_mr_auth_key auth = { .src_addr = FI_ADDR_UNSPEC };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_WRITE,
				   .auth_key = (uint8_t *)&auth,
				   .auth_key_size = sizeof(auth) };
	struct weft_remote *remote;
	struct weft_remote_info info[2]; /* of the hub's regions */
	struct weft_token_ops *t;
	char token[WEFT_TOKEN_MAX];
	struct fid_mr *mr;
	size_t len;

	(void)unused;
	open_hub(&hub, handles);
	t = token_ops(&hub.ep->fid);
	auth.av = hub.av;
	for (int i = 0; i < 2; i++) {
		struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .auth = keys[i] };

		node_open(&spoke[i], &o);
		spokes[i] = know(&hub, &spoke[i], handles[i]);
	}
	for (int only = 0; only < 2; only++) { /* a region for both keys, and one for the second alone */
		attr.requested_key = only;
		auth.src_addr = only ? handles[1] : FI_ADDR_UNSPEC;
		OK(fi_mr_regattr(hub.domain, &attr, only ? FI_AUTH_KEY : 0, &mr));
		len = sizeof(token);
		OK(t->pack(mr, NULL, token, &len));
		for (int i = 0; i < 2; i++) {
			if (i < only) {
				CHECK_RC(t->open(spoke[i].ep, token, len, &remote), -FI_EINVAL);
				continue;
			}
			OK(t->open(spoke[i].ep, token, len, &remote));
			OK(t->info(remote, &info[i], sizeof(info[i])));
			write_noted(&spoke[i], remote, &hub, mem, spokes[i]);
			OK(fi_close(&remote->fid));
		}
		OK(fi_close(&mr->fid));
	}
	for (int i = 0; i < 2; i++) {
		OK(fi_mr_reg(spoke[i].domain, mem, sizeof(mem), FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
		len = sizeof(token);
		OK(t->pack(mr, NULL, token, &len));
		OK(t->open(hub.ep, token, len, &remote));
		write_noted(&hub, remote, &spoke[i], mem, info[i].addr);
		OK(fi_close(&remote->fid));
		OK(fi_close(&mr->fid));
	}
	for (int i = 0; i < 2; i++)
		node_close(&spoke[i]);
	close_hub(&hub, handles, spokes);
}

static const struct test tests[] = {
	{ "getinfo", test_getinfo, 1, 0, 0 },
	{ "keys", test_keys, 1, 30, 0 },
	{ "tokens", test_tokens, 1, 30, 0 },
};

#endif

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
