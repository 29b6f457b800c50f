/* SPDX-License-Identifier: BSD-2-Clause */
/* struct fid_nic: in every answer, true by what the kernel says, and libfabric's to copy and free. */
#include "common.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Every answer, of every endpoint type. */
static struct fi_info *answers(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup(test_provider());
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static struct ifreq ask(const char *name, unsigned long what)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	CHECKF(ioctl(fd, what, &r) == 0, "ioctl %#lx of %s", what, name);
	close(fd);
	return r;
}

static void check(const struct fid_nic *nic, const char *domain)
{
	struct ifreq flags = ask(domain, SIOCGIFFLAGS), address = ask(domain, SIOCGIFHWADDR);
	const unsigned char *b = (const unsigned char *)address.ifr_hwaddr.sa_data;
	char text[32];

	NEED(nic != NULL, "a description of the interface");
	CHECK(nic->fid.fclass == FI_CLASS_NIC && nic->device_attr && nic->bus_attr && nic->link_attr);
	CHECK(nic->device_attr->name != NULL);
	EXPECT(nic->link_attr->mtu == (size_t)ask(domain, SIOCGIFMTU).ifr_mtu);
	EXPECT(nic->link_attr->state == (flags.ifr_flags & IFF_RUNNING ? FI_LINK_UP : FI_LINK_DOWN));
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
	if (flags.ifr_flags & IFF_LOOPBACK) {
		EXPECT(strcmp(nic->device_attr->name, domain) == 0);
		EXPECT(strcmp(nic->link_attr->network_type, "loopback") == 0);
		EXPECT(!nic->device_attr->driver && nic->bus_attr->bus_type == FI_BUS_UNKNOWN);
	}
	if (address.ifr_hwaddr.sa_family == 1 || flags.ifr_flags & IFF_LOOPBACK)
		EXPECTF(nic->link_attr->address && strcmp(nic->link_attr->address, text) == 0, "address %s, want %s",
			nic->link_attr->address, text);
}

static void test_truth(long arg)
{
	struct fi_info *info = answers();
	int loopbacks = 0;

	(void)arg;
	for (struct fi_info *p = info; p; p = p->next) {
		char buf[8192] = "";

		check(p->nic, p->domain_attr->name);
		loopbacks += strcmp(p->domain_attr->name, "lo") == 0;
		fi_tostr_r(buf, sizeof(buf), p, FI_TYPE_INFO);
		EXPECT(strstr(buf, "network_type: ") && strstr(buf, p->nic->device_attr->name));
	}
	CHECK(loopbacks > 0 || getenv("FI_WEFT_IFACE")); /* else it is not offered */
	fi_freeinfo(info);
}

static bool same(const char *a, const char *b)
{
	return !a == !b && (!a || (a != b && strcmp(a, b) == 0));
}

/* Copies are whole, their own, and outlive what they were made of. */
static void test_copies(long arg)
{
	struct fi_info *info = answers(), *copy, *again;
	const struct fid_nic *a, *b;

	(void)arg;
	copy = fi_dupinfo(info);
	CHECK(copy && copy->nic && copy->nic != info->nic);
	a = info->nic;
	b = copy->nic;
	EXPECT(same(a->device_attr->name, b->device_attr->name));
	EXPECT(same(a->device_attr->device_id, b->device_attr->device_id));
	EXPECT(same(a->device_attr->device_version, b->device_attr->device_version));
	EXPECT(same(a->device_attr->vendor_id, b->device_attr->vendor_id));
	EXPECT(same(a->device_attr->driver, b->device_attr->driver));
	EXPECT(same(a->device_attr->firmware, b->device_attr->firmware));
	EXPECT(same(a->link_attr->address, b->link_attr->address));
	EXPECT(same(a->link_attr->network_type, b->link_attr->network_type));
	EXPECT(a->link_attr->mtu == b->link_attr->mtu && a->link_attr->speed == b->link_attr->speed &&
	       a->link_attr->state == b->link_attr->state);
	EXPECT(memcmp(a->bus_attr, b->bus_attr, sizeof(*a->bus_attr)) == 0);
	fi_freeinfo(info);
	check(copy->nic, copy->domain_attr->name);
	again = fi_dupinfo(copy);
	fi_freeinfo(copy);
	check(again->nic, again->domain_attr->name);
	EXPECT_RC(fi_control(&again->nic->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	fi_freeinfo(again);
}

/* As hints, an answer with its description is taken. */
static void test_hints(long arg)
{
	struct fi_info *info = answers(), *again = NULL;

	(void)arg;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, info, &again));
	check(again->nic, again->domain_attr->name);
	fi_freeinfo(again);
	fi_freeinfo(info);
}

static const struct test tests[] = {
	{ "truth", test_truth, 1, 0, 0 },
	{ "copies", test_copies, 1, 0, 0 },
	{ "hints", test_hints, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
