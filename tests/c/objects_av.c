/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: indices, removal, lookup, printing, and addresses that cannot be inserted. */
#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define PEERS 6

static struct node nodes[PEERS]; /* live endpoints, whose names are inserted */

static void open_peers(struct name names[PEERS], enum fi_av_type type)
{
	struct node_opts o = { .av_type = type };

	node_open(&nodes[0], &o);
	for (int i = 1; i < PEERS; i++)
		node_open_on(&nodes[i], &nodes[0], &o);
	for (int i = 0; i < PEERS; i++)
		node_name(&nodes[i], &names[i]);
}

static void close_peers(void)
{
	for (int i = PEERS - 1; i >= 0; i--)
		node_close(&nodes[i]);
}

static void test_table(long arg)
{
	struct fid_av *av = NULL;
	struct name names[PEERS];
	char packed[PEERS * NODE_NAME_MAX];
	fi_addr_t addr[PEERS], hole = 1;

	(void)arg;
	open_peers(names, FI_AV_TABLE);
	av = nodes[0].av;
	CHECK_RC(fi_av_insert(av, names[0].bytes, 1, &addr[0], 0, NULL), 1);
	CHECK(addr[0] == 0);
	CHECK_RC(fi_av_insert(av, names[1].bytes, 1, NULL, 0, NULL), 1); /* no output wanted */
	for (int i = 2; i < 5; i++)
		memcpy(packed + (size_t)(i - 2) * names[i].len, names[i].bytes, names[i].len);
	CHECK_RC(fi_av_insert(av, packed, 3, &addr[2], FI_MORE, NULL), 3);
	for (fi_addr_t i = 2; i < 5; i++)
		CHECKF(addr[i] == i, "index %llu, want %llu", (unsigned long long)addr[i], (unsigned long long)i);
	OK(fi_av_remove(av, &hole, 1, 0));
	CHECK_RC(fi_av_insert(av, names[5].bytes, 1, &addr[5], 0, NULL), 1);
	CHECKF(addr[5] == 1, "the lowest free index is 1, not %llu", (unsigned long long)addr[5]);
	CHECK_RC(fi_av_insert(av, names[1].bytes, 1, &addr[1], 0, NULL), 1); /* it may come back */
	CHECK(addr[1] == 5);
	close_peers();
}

/* Messages go to which the index stands for, also after others were removed. */
static void test_use(long type)
{
	struct name names[PEERS];
	fi_addr_t addr[PEERS];

	open_peers(names, (enum fi_av_type)type);
	for (int i = 0; i < PEERS; i++)
		addr[i] = node_insert_name(&nodes[0], &names[i]);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PEERS; i++) {
			uint64_t in = 0, out = (uint64_t)(round * 100 + i);

			if (addr[i] == FI_ADDR_NOTAVAIL)
				continue;
			trecv(&nodes[i], &in, 8, FI_ADDR_UNSPEC, 1, 0, &in);
			tsend(&nodes[0], &out, 8, addr[i], 1, &out);
			wait_ctx(&nodes[i], nodes[i].rxcq, &in);
			wait_ctx(&nodes[0], nodes[0].txcq, &out);
			CHECK(in == out);
		}
		if (round == 0) {
			fi_addr_t gone[2] = { addr[2], addr[4] };

			OK(fi_av_remove(nodes[0].av, gone, 2, 0));
			addr[2] = addr[4] = FI_ADDR_NOTAVAIL;
		} else {
			addr[2] = node_insert_name(&nodes[0], &names[2]);
			round = 2;
			continue;
		}
	}
	close_peers();
}

static void test_lookup(long arg)
{
	struct name names[PEERS];
	char buf[NODE_NAME_MAX];
	fi_addr_t addr, unset = 77;
	size_t len;

	(void)arg;
	open_peers(names, FI_AV_TABLE);
	addr = node_insert_name(&nodes[0], &names[3]);
	len = sizeof(buf);
	OK(fi_av_lookup(nodes[0].av, addr, buf, &len));
	CHECK(len == names[3].len && memcmp(buf, names[3].bytes, len) == 0);
	memset(buf, 0x4e, sizeof(buf));
	len = 3;
	OK(fi_av_lookup(nodes[0].av, addr, buf, &len));
	CHECK(len == names[3].len);
	CHECK(memcmp(buf, names[3].bytes, 3) == 0 && buf[3] == 0x4e);
	len = sizeof(buf);
	EXPECT_RC(fi_av_lookup(nodes[0].av, unset, buf, &len), -FI_EINVAL);
	EXPECT_RC(fi_av_remove(nodes[0].av, &unset, 1, 0), -FI_EINVAL);
	OK(fi_av_remove(nodes[0].av, &addr, 1, 0));
	EXPECT_RC(fi_av_lookup(nodes[0].av, addr, buf, &len), -FI_EINVAL);
	EXPECT_RC(fi_av_remove(nodes[0].av, &addr, 1, 0), -FI_EINVAL);
	close_peers();
}

static void test_straddr(long arg)
{
	struct name names[PEERS];
	char buf[256], part[256];
	size_t len = sizeof(buf), need;

	(void)arg;
	open_peers(names, FI_AV_TABLE);
	CHECK(fi_av_straddr(nodes[0].av, names[2].bytes, buf, &len) == buf);
	CHECKF(len == strlen(buf) + 1, "len %zu for \"%s\"", len, buf);
	note("%s", buf);
	need = len;
	for (size_t room = 1; room < need; room++) {
		memset(part, 0x4e, sizeof(part));
		len = room;
		CHECK(fi_av_straddr(nodes[0].av, names[2].bytes, part, &len) == part);
		CHECK(len == need && part[room] == 0x4e);
		CHECK(strnlen(part, room) < room && strncmp(part, buf, room - 1) == 0);
	}
	close_peers();
}

/* What cannot be reached is refused, one by one, with its reason. */
static void test_bad_address(long arg)
{
	struct sockaddr_in bad[2], names_in;
	fi_addr_t addr[2] = { 5, 5 };
	int errors[2] = { -1, -1 };
	struct name names[PEERS];

	(void)arg;
	setenv("FI_WEFT_UDP", "no", 1); /* what reaches other hosts */
	setenv("FI_WEFT_VERBS", "no", 1);
	setenv("FI_WEFT_CXI", "no", 1);
	open_peers(names, FI_AV_TABLE);
	NEED(nodes[0].info->addr_format == FI_SOCKADDR_IN, "FI_SOCKADDR_IN");
	memcpy(&names_in, names[1].bytes, sizeof(names_in));
	bad[0] = names_in;
	bad[1] = names_in;
	bad[1].sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1: documentation, no one's */
	CHECK_RC(fi_av_insert(nodes[0].av, bad, 2, addr, FI_SYNC_ERR, errors), 1);
	CHECK(addr[0] == 0 && errors[0] == 0);
	CHECK(addr[1] == FI_ADDR_NOTAVAIL);
	CHECKF(errors[1] == FI_EHOSTUNREACH, "error %d (%s)", errors[1], fi_strerror(errors[1]));
	bad[1].sin_family = 12345;
	CHECK_RC(fi_av_insert(nodes[0].av, &bad[1], 1, addr, FI_SYNC_ERR, errors), 0);
	CHECK(addr[0] == FI_ADDR_NOTAVAIL && errors[0] > 0);
	CHECK_RC(fi_av_insert(nodes[0].av, &bad[1], 1, addr, 0, NULL), 0);
	CHECK(addr[0] == FI_ADDR_NOTAVAIL);
	close_peers();
}

/* The same endpoint named by node and service. */
static void test_insertsvc(long arg)
{
	char node[64], service[16], in[8], out[8] = "svc";
	struct name names[PEERS];
	struct sockaddr_in sin;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	(void)arg;
	open_peers(names, FI_AV_TABLE);
	NEED(nodes[0].info->addr_format == FI_SOCKADDR_IN, "FI_SOCKADDR_IN");
	memcpy(&sin, names[1].bytes, sizeof(sin));
	inet_ntop(AF_INET, &sin.sin_addr, node, sizeof(node));
	snprintf(service, sizeof(service), "%u", ntohs(sin.sin_port));
	CHECK_RC(fi_av_insertsvc(nodes[0].av, node, service, &addr, 0, NULL), 1);
	CHECK(addr == 0);
	trecv(&nodes[1], in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&nodes[0], out, 8, addr, 1, out);
	wait_ctx(&nodes[1], nodes[1].rxcq, in);
	EXPECT(fi_av_insertsvc(nodes[0].av, node, "not a port", &addr, 0, NULL) <= 0);
	wait_ctx(&nodes[0], nodes[0].txcq, out);
	close_peers();
}

/* node x services, in the order that fi_av(3) gives. */
static void test_insertsym(long arg)
{
	enum { COUNT = 4 };
	struct node_opts o = { .addr_format = FI_SOCKADDR_IN };
	struct node base, peer[COUNT];
	fi_addr_t addr[COUNT];
	char service[16];
	unsigned port = 0, tries;
	struct fi_info *info = node_info(&o);

	(void)arg;
	NEED(info != NULL, "FI_SOCKADDR_IN");
	fi_freeinfo(info);
	node_open(&base, NULL);
	for (tries = 0; tries < 50; tries++) { /* COUNT free ports in a row */
		int got = 0;

		port = 20000 + (unsigned)(getpid() * 7 + (int)tries * 64) % 20000;
		for (; got < COUNT; got++) {
			struct fi_info *src = NULL, *hints = node_hints(&o);
			int rc;

			snprintf(service, sizeof(service), "%u", port + (unsigned)got);
			rc = fi_getinfo(FI_VERSION(1, 17), host_address(), service, FI_SOURCE, hints, &src);
			fi_freeinfo(hints);
			if (rc)
				break;
			fi_freeinfo(src);
		}
		if (got == COUNT)
			break;
	}
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(service, sizeof(service), "%u", port + i);
		o.service = service;
		node_open(&peer[i], &o);
	}
	snprintf(service, sizeof(service), "%u", port);
	CHECK_RC(fi_av_insertsym(base.av, host_address(), 1, service, COUNT, addr, 0, NULL), COUNT);
	for (fi_addr_t i = 0; i < COUNT; i++) {
		uint64_t in = 0, out = i + 1;

		CHECK(addr[i] == i);
		trecv(&peer[i], &in, 8, FI_ADDR_UNSPEC, 1, 0, &in);
		tsend(&base, &out, 8, i, 1, &out);
		wait_ctx(&peer[i], peer[i].rxcq, &in);
		wait_ctx(&base, base.txcq, &out);
		CHECK(in == i + 1);
	}
	for (int i = 0; i < COUNT; i++)
		node_close(&peer[i]);
	node_close(&base);
}

/* A large AV, so that growing it moves nothing under those that use it. */
static void test_grow(long arg)
{
	enum { MANY = 300 };
	struct node base, *peer = calloc(MANY, sizeof(*peer));
	fi_addr_t addr[MANY];

	(void)arg;
	CHECK(peer != NULL);
	node_open(&base, NULL);
	for (int i = 0; i < MANY; i++) {
		uint64_t in = 0, out = (uint64_t)i;

		node_open_on(&peer[i], &base, NULL);
		addr[i] = node_insert(&base, &peer[i]);
		CHECK(addr[i] == (fi_addr_t)i);
		trecv(&peer[i / 2], &in, 8, FI_ADDR_UNSPEC, 1, 0, &in);
		tsend(&base, &out, 8, addr[i / 2], 1, &out);
		wait_ctx(&peer[i / 2], peer[i / 2].rxcq, &in);
		wait_ctx(&base, base.txcq, &out);
		CHECK(in == (uint64_t)i);
	}
	for (int i = 0; i < MANY; i++)
		node_close(&peer[i]);
	node_close(&base);
	free(peer);
}

/* The port of an endpoint's name. */
static unsigned port_of(const struct name *name)
{
	struct sockaddr_in sin;

	memcpy(&sin, name->bytes, sizeof(sin));
	return ntohs(sin.sin_port);
}

/* A peer that is gone stays in the AV, and another takes its address, which is inserted once more: it is reached by
 * either index. */
static void test_taken_over(long rounds)
{
	struct node_opts o = { .addr_format = FI_SOCKADDR_IN };
	struct name names[NODE_PEERS];
	char service[16] = "0";
	struct node n;

	if (test_rank == 1)
		o.service = service;
	node_open(&n, &o);
	NEED(n.info->addr_format == FI_SOCKADDR_IN, "FI_SOCKADDR_IN");
	for (long i = 0; i < rounds; i++) {
		uint64_t in = 0, out = (uint64_t)i;
		fi_addr_t peer;

		node_names(&n, names);
		peer = node_insert_name(&n, &names[!test_rank]);
		if (test_rank == 0) {
			CHECK(peer == (fi_addr_t)i);
			tsend(&n, &out, 8, peer, 1, &out);
			wait_ctx(&n, n.txcq, &out);
			tsend(&n, &out, 8, 0, 2, &out);
			wait_ctx(&n, n.txcq, &out);
		} else {
			for (uint64_t tag = 1; tag <= 2; tag++) {
				trecv(&n, &in, 8, FI_ADDR_UNSPEC, tag, 0, &in);
				wait_ctx(&n, n.rxcq, &in);
				CHECK(in == out);
			}
		}
		barrier(&n);
		if (test_rank == 1 && i + 1 < rounds) {
			snprintf(service, sizeof(service), "%u", port_of(&names[1]));
			node_close(&n);
			node_open(&n, &o);
		}
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "table", test_table, 1, 0, 0 },	  { "use_table", test_use, 1, 0, FI_AV_TABLE },
	{ "use_map", test_use, 1, 0, FI_AV_MAP }, { "lookup", test_lookup, 1, 0, 0 },
	{ "straddr", test_straddr, 1, 0, 0 },	  { "bad_address", test_bad_address, 1, 0, 0 },
	{ "insertsvc", test_insertsvc, 1, 0, 0 }, { "insertsym", test_insertsym, 1, 0, 0 },
	{ "grow", test_grow, 1, 0, 0 },		  { "taken_over", test_taken_over, 2, 0, 20 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
