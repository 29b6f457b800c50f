/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams (FI_EP_DGRAM): they come whole and with their source; a peer that does not receive, or
 * is not there, holds nothing up.
 */
#include "common.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

struct dgram {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	fi_addr_t peer;
};

static void open_domain(void)
{
	struct fi_info *hints = node_hints(NULL);

	NEED_WAY(WAY_UDP, "datagrams");
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG | FI_SOURCE;
	NEED(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info) == 0, "FI_EP_DGRAM");
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
}

static void close_domain(void)
{
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void open_dgram(struct dgram *d)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	OK(fi_cq_open(domain, &cq, &d->cq, NULL));
	OK(fi_av_open(domain, &av, &d->av, NULL));
	OK(fi_endpoint(domain, info, &d->ep, NULL));
	OK(fi_ep_bind(d->ep, &d->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(d->ep, &d->av->fid, 0));
	OK(fi_enable(d->ep));
}

static void close_dgram(struct dgram *d)
{
	OK(fi_close(&d->ep->fid));
	OK(fi_close(&d->av->fid));
	OK(fi_close(&d->cq->fid));
}

static void know(struct dgram *d, const struct dgram *peer)
{
	uint8_t name[64];
	size_t len = sizeof(name);

	OK(fi_getname(&peer->ep->fid, name, &len));
	CHECK(fi_av_insert(d->av, name, 1, &d->peer, 0, NULL) == 1);
}

static void wait_one(struct dgram *d, struct fi_cq_msg_entry *e, fi_addr_t *src)
{
	uint64_t end = now_ms() + 20000;
	ssize_t n;

	while ((n = fi_cq_readfrom(d->cq, e, 1, src)) == -FI_EAGAIN && now_ms() < end)
		;
	CHECKF(n == 1, "completion: %zd", n);
}

static void test_sizes(long arg)
{
	struct dgram a, b;
	struct fi_cq_msg_entry e;
	fi_addr_t src;
	size_t max;

	(void)arg;
	open_domain();
	max = info->ep_attr->max_msg_size;
	char *out = malloc(max + 1), *in = malloc(max + 1);
	open_dgram(&a);
	open_dgram(&b);
	know(&a, &b);
	know(&b, &a);
	for (size_t i = 0; i < max; i++)
		out[i] = (char)(i * 13);
	for (size_t len = 0; len <= max; len = len < 64 ? len + 1 : len < max && len * 3 > max ? max : len * 3) {
		OK(fi_recv(b.ep, in, max, NULL, FI_ADDR_UNSPEC, in));
		OK(fi_send(a.ep, out, len, NULL, a.peer, out));
		wait_one(&b, &e, &src);
		CHECKF(e.len == len && src == b.peer && !memcmp(in, out, len), "%zu bytes: %zu", len, e.len);
		wait_one(&a, &e, &src);
		CHECK(e.op_context == out);
		if (len == max)
			break;
	}
	EXPECT_RC(fi_send(a.ep, out, max + 1, NULL, a.peer, out), -FI_EMSGSIZE);
	EXPECT_RC(fi_tsend(a.ep, out, 1, NULL, a.peer, 1, out), -FI_ENOSYS);
	EXPECT_RC(fi_send(a.ep, out, 1, NULL, 77, out), -FI_EINVAL);
	close_dgram(&a);
	close_dgram(&b);
	close_domain();
	free(in);
	free(out);
}

/* Every form of send to a peer that never polls: each ends, and the first ones come. */
static void test_deaf(long arg)
{
	struct dgram a, b;
	struct fi_cq_msg_entry e;
	fi_addr_t src;
	uint64_t end, got = 0;
	int sent = 0;

	(void)arg;
	open_domain();
	open_dgram(&a);
	open_dgram(&b);
	know(&a, &b);
	know(&b, &a);
	end = now_ms() + 60000;
	while (sent < 5000) {
		struct iovec iov = { &sent, sizeof(sent) };
		ssize_t rc;

		switch (sent % 4) {
		case 0:
			rc = fi_inject(a.ep, &sent, sizeof(sent), a.peer);
			break;
		case 1:
			rc = fi_injectdata(a.ep, &sent, sizeof(sent), 1, a.peer);
			break;
		case 2:
			rc = fi_send(a.ep, &sent, sizeof(sent), NULL, a.peer, NULL);
			break;
		default:
			rc = fi_sendv(a.ep, &iov, NULL, 1, a.peer, NULL);
			break;
		}
		CHECKF(rc == 0 || rc == -FI_EAGAIN, "datagram %d: %zd", sent, rc);
		CHECKF(now_ms() < end, "%d datagrams went out", sent);
		sent += rc == 0;
		while (fi_cq_read(a.cq, &e, 1) == 1)
			;
	}
	OK(fi_recv(b.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL));
	wait_one(&b, &e, &src);
	CHECK(got == 0 && e.len == sizeof(sent));
	close_dgram(&b); /* and to nothing */
	end = now_ms() + 60000;
	for (sent = 0; sent < 100;) {
		ssize_t rc = fi_inject(a.ep, &sent, sizeof(sent), a.peer);
		CHECKF(rc == 0 || rc == -FI_EAGAIN, "datagram %d to nothing: %zd", sent, rc);
		CHECK(now_ms() < end);
		sent += rc == 0;
		fi_cq_read(a.cq, &e, 1);
	}
	close_dgram(&a);
	close_domain();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "sizes", test_sizes, .seconds = 120 },
		{ "deaf", test_deaf, .seconds = 150 },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
