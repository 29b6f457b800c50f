/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo: versions, names, addresses, flags; every answer opens and prints. */
#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct fi_info *plain(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup(test_provider());
	hints->ep_attr->type = FI_EP_RDM;
	return hints;
}

/* Every version of the interface from 1.5 on is answered in its own terms, and opens. */
static void test_versions(long arg)
{
	(void)arg;
	for (uint32_t minor = 5; minor <= 17; minor++) {
		uint32_t version = FI_VERSION(1, minor);
		struct fi_info *h = plain(), *info = NULL;
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fid_ep *ep;

		h->caps = FI_MSG | FI_TAGGED;
		OK(fi_getinfo(version, NULL, NULL, 0, h, &info));
		EXPECTF(info->fabric_attr->api_version == version, "1.%u: api_version %#x", minor,
			info->fabric_attr->api_version);
		OK(fi_fabric(info->fabric_attr, &fabric, NULL));
		OK(fi_domain(fabric, info, &domain, NULL));
		OK(fi_endpoint(domain, info, &ep, NULL));
		OK(fi_close(&ep->fid));
		OK(fi_close(&domain->fid));
		OK(fi_close(&fabric->fid));
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* Opens whatever is offered; offers it back as hints; prints all of it. */
static void test_round_trip(long arg)
{
	struct fi_info *h = plain(), *info = NULL;
	int count = 0;

	(void)arg;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info));
	for (struct fi_info *p = info; p; p = p->next, count++) {
		struct fi_info *again = NULL, *copy = fi_dupinfo(p);
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fid_ep *ep;
		char buf[16384];

		CHECK(copy != NULL);
		CHECK(p->fabric_attr->name && p->domain_attr->name && p->fabric_attr->prov_name);
		EXPECT((p->tx_attr->caps & ~p->caps) == 0);
		EXPECT((p->rx_attr->caps & ~p->caps) == 0);
		/* Clients keep it in an int. */
		EXPECTF((int)p->ep_attr->protocol > 0, "answer %d: protocol %#x", count, p->ep_attr->protocol);
		copy->handle = NULL;
		EXPECTF(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, copy, &again) == 0,
			"answer %d is refused as a hint", count);
		fi_freeinfo(again);
		memset(buf, 0, sizeof(buf));
		fi_tostr_r(buf, sizeof(buf), p, FI_TYPE_INFO);
		CHECK(strlen(buf) > 200 && strstr(buf, p->fabric_attr->prov_name));
		OK(fi_fabric(p->fabric_attr, &fabric, NULL));
		OK(fi_domain(fabric, p, &domain, NULL));
		OK(fi_endpoint(domain, p, &ep, NULL));
		OK(fi_close(&ep->fid));
		OK(fi_close(&domain->fid));
		OK(fi_close(&fabric->fid));
		fi_freeinfo(copy);
	}
	note("%d answers", count);
	CHECK(count > 0);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* Takes the one value out of a text that libfabric's list does not have: weft's own protocol. */
static void forget_protocol(char *text)
{
	char *own = strstr(text, "protocol: Unknown");

	if (own)
		memset(own, ' ', strlen("protocol: Unknown"));
}

/* fi_tostr of each part of each answer names no other unknown bit or value. */
static void test_tostr(long arg)
{
	struct fi_info *h = plain(), *info = NULL;

	(void)arg;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info));
	for (struct fi_info *p = info; p; p = p->next) {
		const struct {
			const void *data;
			enum fi_type type;
		} parts[] = {
			{ p, FI_TYPE_INFO },
			{ &p->caps, FI_TYPE_CAPS },
			{ &p->mode, FI_TYPE_MODE },
			{ &p->ep_attr->type, FI_TYPE_EP_TYPE },
			{ &p->addr_format, FI_TYPE_ADDR_FORMAT },
			{ p->tx_attr, FI_TYPE_TX_ATTR },
			{ p->rx_attr, FI_TYPE_RX_ATTR },
			{ p->ep_attr, FI_TYPE_EP_ATTR },
			{ p->domain_attr, FI_TYPE_DOMAIN_ATTR },
			{ p->fabric_attr, FI_TYPE_FABRIC_ATTR },
			{ &p->domain_attr->threading, FI_TYPE_THREADING },
			{ &p->domain_attr->data_progress, FI_TYPE_PROGRESS },
			{ &p->tx_attr->msg_order, FI_TYPE_MSG_ORDER },
			{ &p->domain_attr->mr_mode, FI_TYPE_MR_MODE },
			{ &p->domain_attr->av_type, FI_TYPE_AV_TYPE },
			{ &p->tx_attr->op_flags, FI_TYPE_OP_FLAGS },
		};

		for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
			char buf[16384] = "";

			CHECK(fi_tostr_r(buf, sizeof(buf), parts[i].data, parts[i].type) == buf);
			forget_protocol(buf);
			if (strstr(buf, "Unknown") && strcmp(test_provider(), "shm"))
				EXPECTF(false, "part %zu: %s", i, buf);
		}
	}
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static void test_names(long arg)
{
	struct fi_info *h = plain(), *info = NULL, *named = NULL;

	(void)arg;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info));
	free(h->fabric_attr->name);
	h->fabric_attr->name = strdup(info->fabric_attr->name);
	h->domain_attr->name = strdup(info->domain_attr->name);
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &named));
	CHECK(strcmp(named->fabric_attr->name, info->fabric_attr->name) == 0);
	CHECK(strcmp(named->domain_attr->name, info->domain_attr->name) == 0);
	fi_freeinfo(named);
	named = NULL;
	free(h->domain_attr->name);
	h->domain_attr->name = strdup("no_such_domain");
	EXPECT_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &named), -FI_ENODATA);
	free(h->domain_attr->name);
	h->domain_attr->name = NULL;
	free(h->fabric_attr->name);
	h->fabric_attr->name = strdup("no_such_fabric");
	EXPECT_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &named), -FI_ENODATA);
	free(h->fabric_attr->prov_name);
	h->fabric_attr->prov_name = strdup("no_such_provider");
	EXPECT_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &named), -FI_ENODATA);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static uint16_t port_of(const void *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static void test_node_service(long arg)
{
	struct fi_info *h = plain(), *info = NULL;

	(void)arg;
	h->addr_format = FI_SOCKADDR_IN;
	NEED(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == 0, "FI_SOCKADDR_IN");
	fi_freeinfo(info);
	info = NULL;
	OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7777", 0, h, &info));
	CHECK(info->dest_addr && info->dest_addrlen == sizeof(struct sockaddr_in));
	CHECK(port_of(info->dest_addr) == 7777);
	fi_freeinfo(info);
	info = NULL;
	OK(fi_getinfo(FI_VERSION(1, 17), host_address(), "7778", FI_SOURCE, h, &info));
	CHECK(info->src_addr && info->src_addrlen == sizeof(struct sockaddr_in));
	CHECK(port_of(info->src_addr) == 7778);
	fi_freeinfo(info);
	info = NULL;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, "7779", FI_SOURCE, h, &info));
	CHECK(info->src_addr && port_of(info->src_addr) == 7779);
	fi_freeinfo(info);
	info = NULL;
	OK(fi_getinfo(FI_VERSION(1, 17), "localhost", "7780", 0, h, &info));
	fi_freeinfo(info);
	info = NULL;
	EXPECT(fi_getinfo(FI_VERSION(1, 17), "localhost", "7781", FI_NUMERICHOST, h, &info) < 0);
	EXPECT(fi_getinfo(FI_VERSION(1, 17), "no-such-host.invalid", "7782", 0, h, &info) < 0);
	OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7783", FI_NUMERICHOST, h, &info));
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* Addresses in the hints come back. */
static void test_hint_addresses(long arg)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(7790) };
	struct fi_info *h = plain(), *info = NULL;

	(void)arg;
	h->addr_format = FI_SOCKADDR_IN;
	NEED(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == 0, "FI_SOCKADDR_IN");
	fi_freeinfo(info);
	info = NULL;
	CHECK(inet_pton(AF_INET, host_address(), &sin.sin_addr) == 1);
	h->src_addr = malloc(sizeof(sin));
	memcpy(h->src_addr, &sin, sizeof(sin));
	h->src_addrlen = sizeof(sin);
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info));
	CHECK(info->src_addr && port_of(info->src_addr) == 7790);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static void test_flags(long arg)
{
	struct fi_info *h = plain(), *info = NULL;
	int found = 0;

	(void)arg;
	/* Providers by name only, whatever the rest of the hints wants. */
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, h, &info));
	for (struct fi_info *p = info; p; p = p->next) {
		CHECK(p->fabric_attr && p->fabric_attr->prov_name);
		if (strcmp(p->fabric_attr->prov_name, test_provider()) == 0) {
			CHECK(p->fabric_attr->prov_version != 0);
			found++;
		}
	}
	CHECKF(found == 1, "listed %d times", found);
	fi_freeinfo(info);
	info = NULL;
	/* With another flag libfabric has utility providers ask, too. */
	for (int named = 0; named < 2; named++) {
		int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY | FI_SOURCE, named ? h : NULL,
				    &info);

		EXPECTF(rc == 0 || rc == -FI_ENODATA, "fi_getinfo = %d", rc);
		fi_freeinfo(info);
		info = NULL;
	}
	EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_MULTICAST, h, &info) < 0);
	EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_SOURCE, h, &info) <= 0);
	fi_freeinfo(info);
	fi_freeinfo(h);
	info = NULL;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info)); /* no hints at all */
	fi_freeinfo(info);
}

static const struct test tests[] = {
	{ "versions", test_versions, 1, 0, 0 },
	{ "round_trip", test_round_trip, 1, 0, 0 },
	{ "tostr", test_tostr, 1, 0, 0 },
	{ "names", test_names, 1, 0, 0 },
	{ "node_service", test_node_service, 1, 0, 0 },
	{ "hint_addresses", test_hint_addresses, 1, 0, 0 },
	{ "flags", test_flags, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
