/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic classes: the code point of differentiated services in what an endpoint sends. The peer is
 * a bare UDP socket, which sees the first packets of a connection.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sys/socket.h>

#include "common.h"

/* A UDP socket on the loopback interface that is notified of the type of service. */
static int open_socket(int family, struct sockaddr_storage *name)
{
	struct sockaddr_in *in = (void *)name;
	struct sockaddr_in6 *in6 = (void *)name;
	socklen_t len = family == AF_INET ? sizeof(*in) : sizeof(*in6);
	int fd = socket(family, SOCK_DGRAM, 0), one = 1;

	memset(name, 0, sizeof(*name));
	name->ss_family = (sa_family_t)family;
	if (family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		in6->sin6_addr = in6addr_loopback;
	if (fd < 0 || bind(fd, (struct sockaddr *)name, len) || getsockname(fd, (struct sockaddr *)name, &len))
		return -1;
	if (family == AF_INET)
		CHECK(!setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)));
	else
		CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one)));
	return fd;
}

/* The code point of the next packet, or -1: none has come. */
static int code_point(int fd)
{
	char packet[2048], control[256];
	struct iovec iov = { packet, sizeof(packet) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};

	if (recvmsg(fd, &msg, MSG_DONTWAIT) < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			return *(uint8_t *)CMSG_DATA(c) >> 2;
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
			return (*(int *)(void *)CMSG_DATA(c) & 0xff) >> 2;
	}
	CHECKF(false, "a packet without its type of service");
	return -1;
}

/* What the endpoint ep of n sends to fd carries the code point want. */
static void sends(struct node *n, struct fid_ep *ep, int fd, const struct sockaddr_storage *name, int want)
{
	uint64_t end = now_ms() + 20000;
	char buf[8] = "";
	fi_addr_t to;
	int got = -1;

	CHECK_RC(fi_av_insert(n->av, name, 1, &to, 0, NULL), 1);
	while (got < 0 && now_ms() < end) {
		struct pollfd p = { fd, POLLIN, 0 };

		(void)fi_inject(ep, buf, sizeof(buf), to); /* -FI_EAGAIN once the ring is full */
		fi_cq_read(n->txcq, NULL, 0);
		poll(&p, 1, 1);
		got = code_point(fd);
	}
	EXPECTF(got == want, "code point %d, want %d", got, want);
}

/* An endpoint of one class in a domain of another. */
static void one(int family, uint32_t domain_class, uint32_t class, int want)
{
	struct node_opts o = { .caps = FI_MSG,
			       .one_cq = true,
			       .addr_format = family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6 };
	struct fi_info *hints = node_hints(&o);
	struct fi_av_attr av = { 0 };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct sockaddr_storage name;
	struct node n = { 0 };
	int fd = open_socket(family, &name);

	if (fd < 0)
		SKIP("no loopback address of the family");
	NEED_WAY(WAY_UDP, "traffic classes of packets");
	setenv("FI_WEFT_UDP", "yes", 1); /* for the loopback interface alone there is none */
	hints->tx_attr->tclass = class;
	hints->domain_attr->tclass = domain_class;
	OK(fi_getinfo(FI_VERSION(1, 17), family == AF_INET ? "127.0.0.1" : "::1", "0", FI_SOURCE, hints, &n.info));
	CHECK(n.info->tx_attr->tclass == class && n.info->domain_attr->tclass == domain_class);
	OK(fi_fabric(n.info->fabric_attr, &n.fabric, NULL));
	OK(fi_domain(n.fabric, n.info, &n.domain, NULL));
	OK(fi_av_open(n.domain, &av, &n.av, NULL));
	OK(fi_cq_open(n.domain, &cq, &n.txcq, NULL));
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(n.ep));
	sends(&n, n.ep, fd, &name, want);
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&n.txcq->fid));
	OK(fi_close(&n.av->fid));
	OK(fi_close(&n.domain->fid));
	OK(fi_close(&n.fabric->fid));
	fi_freeinfo(n.info);
	fi_freeinfo(hints);
	close(fd);
}

static void test_labels(long family)
{
	one((int)family, FI_TC_UNSPEC, FI_TC_UNSPEC, 0);
	one((int)family, FI_TC_UNSPEC, FI_TC_BEST_EFFORT, 0);
	one((int)family, FI_TC_UNSPEC, FI_TC_LOW_LATENCY, 18);
	one((int)family, FI_TC_UNSPEC, FI_TC_DEDICATED_ACCESS, 46);
	one((int)family, FI_TC_UNSPEC, FI_TC_BULK_DATA, 10);
	one((int)family, FI_TC_UNSPEC, FI_TC_SCAVENGER, 1);
	one((int)family, FI_TC_UNSPEC, FI_TC_NETWORK_CTRL, 48);
}

static void test_dscp(long family)
{
	one((int)family, FI_TC_UNSPEC, fi_tc_dscp_set(63), 63);
	one((int)family, FI_TC_UNSPEC, fi_tc_dscp_set(26), 26);
	one((int)family, fi_tc_dscp_set(26), FI_TC_UNSPEC, 26);
	one((int)family, fi_tc_dscp_set(26), fi_tc_dscp_set(0), 0);
	one((int)family, FI_TC_BULK_DATA, FI_TC_LOW_LATENCY, 18);
}

/* What is no class is refused, in hints and where an application writes it itself. */
static void test_refused(long unused)
{
	static const uint32_t bad[] = { 1, FI_TC_DSCP | 64, 0x180, FI_TC_NETWORK_CTRL + 1, 1u << 31 };

	(void)unused;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fi_info *hints = node_hints(NULL), *info = NULL;
		struct fid_domain *domain;
		struct fid_ep *ep;
		struct node n;

		hints->tx_attr->tclass = bad[i];
		CHECK_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
		hints->tx_attr->tclass = 0;
		hints->domain_attr->tclass = bad[i];
		CHECK_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
		fi_freeinfo(hints);
		node_open_domain(&n, NULL);
		n.info->domain_attr->tclass = bad[i];
		CHECK_RC(fi_domain(n.fabric, n.info, &domain, NULL), -FI_EINVAL);
		n.info->domain_attr->tclass = 0;
		n.info->tx_attr->tclass = bad[i];
		CHECK_RC(fi_endpoint(n.domain, n.info, &ep, NULL), -FI_EINVAL);
		node_close_domain(&n);
	}
}

static const struct test tests[] = {
	{ "labels", test_labels, 1, 0, AF_INET }, { "labels_6", test_labels, 1, 0, AF_INET6 },
	{ "dscp", test_dscp, 1, 0, AF_INET },	  { "dscp_6", test_dscp, 1, 0, AF_INET6 },
	{ "refused", test_refused, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
