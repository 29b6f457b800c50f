/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The versions of libweft.so's entry points, as a program that was linked with some libfabric finds
 * them: structures that end where that version's end are not read beyond (a page that cannot be read
 * follows), and what later versions have is given. Then every API from 1.5 to the present one.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

static int passed, failed;

#define CHECK(cond, ...) \
	do { \
		if (cond) { \
			passed++; \
		} else { \
			failed++; \
			printf("abi.c:%d: %s: ", __LINE__, #cond); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

typedef int getinfo_fn(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
typedef struct fi_info *dupinfo_fn(const struct fi_info *);
typedef void freeinfo_fn(struct fi_info *);
typedef int fabric_fn(struct fi_fabric_attr *, struct fid_fabric **, void *);
typedef int fabric2_fn(struct fi_info *, struct fid_fabric **, uint64_t, void *);

/* Where struct fi_domain_attr of 1.17 ends, and what later versions append. */
enum { END = offsetof(struct fi_domain_attr, tclass) + 8 };

struct later {
	size_t max_ep_auth_key;
	uint32_t max_group_id;
	uint64_t max_cntr_value, max_err_cntr_value;
};

static struct later *later(struct fi_info *info)
{
	return (struct later *)((char *)info->domain_attr + END);
}

static const struct {
	const char *name;
	uint32_t api; /* that came with it */
	size_t info, ep, domain, fabric;
} abis[] = {
	{ "FABRIC_1.0", FI_VERSION(1, 4), offsetof(struct fi_info, nic), offsetof(struct fi_ep_attr, auth_key_size),
	  offsetof(struct fi_domain_attr, cntr_cnt), 28 },
	{ "FABRIC_1.1", FI_VERSION(1, 5), offsetof(struct fi_info, nic), 96, offsetof(struct fi_domain_attr, tclass),
	  32 },
	{ "FABRIC_1.2", FI_VERSION(1, 8), sizeof(struct fi_info), 96, offsetof(struct fi_domain_attr, tclass), 32 },
	{ "FABRIC_1.3", FI_VERSION(1, 17), sizeof(struct fi_info), 96, END, 32 },
	{ "FABRIC_1.7", FI_VERSION(1, 20), sizeof(struct fi_info), 96, END + 8, 32 },
	{ "FABRIC_1.8", FI_VERSION(2, 0), sizeof(struct fi_info), 96, END + 16, 32 },
	{ "FABRIC_1.9", FI_VERSION(2, 5), sizeof(struct fi_info), 96, END + 32, 32 },
	{ "FABRIC_1.10", FI_VERSION(2, 6), sizeof(struct fi_info), 104, END + 40, 32 },
};

/* at_end returns size zeroed bytes before a page that cannot be read. */
static void *at_end(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
		abort();
	return p + page - size;
}

/* find returns a version of a symbol. */
static void *find(void *lib, const char *name, const char *version)
{
	void *f = dlvsym(lib, name, version);

	CHECK(f, "%s@%s", name, version);
	if (!f)
		exit(1);
	return f;
}

static void test_version(void *lib, size_t n)
{
	getinfo_fn *getinfo = (getinfo_fn *)find(lib, "fi_getinfo", abis[n].name);
	dupinfo_fn *dupinfo = (dupinfo_fn *)find(lib, "fi_dupinfo", abis[n].name);
	freeinfo_fn *freeinfo = (freeinfo_fn *)find(lib, "fi_freeinfo", abis[n].name);
	fabric_fn *fabric = (fabric_fn *)find(lib, "fi_fabric", n ? "FABRIC_1.1" : "FABRIC_1.0");
	struct fi_info *hints = at_end(abis[n].info), *info = NULL, *dup;
	struct fid_fabric *f = NULL;
	char weft[] = "weft";

	hints->ep_attr = at_end(abis[n].ep);
	hints->domain_attr = at_end(abis[n].domain);
	hints->fabric_attr = at_end(abis[n].fabric);
	hints->tx_attr = at_end(n < 3 ? offsetof(struct fi_tx_attr, tclass) : sizeof(struct fi_tx_attr));
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = weft;
	hints->domain_attr->max_ep_srx_ctx = 7;
	if (n >= 4)
		later(hints)->max_ep_auth_key = 3;
	CHECK(!getinfo(abis[n].api, NULL, NULL, 0, hints, &info) && info, "%s", abis[n].name);
	CHECK(info->fabric_attr->api_version == abis[n].api, "%s", abis[n].name);
	CHECK(later(info)->max_ep_auth_key == (n >= 4 ? 3 : 0), "%s", abis[n].name);
	CHECK(later(info)->max_cntr_value == UINT64_MAX, "%s", abis[n].name);
	CHECK(info->nic != NULL, "%s", abis[n].name);
	dup = dupinfo(hints);
	CHECK(dup && dup->domain_attr->max_ep_srx_ctx == 7 && dup->ep_attr->type == FI_EP_RDM, "%s", abis[n].name);
	CHECK(later(dup)->max_ep_auth_key == (n >= 4 ? 3 : 0), "%s", abis[n].name);
	freeinfo(dup);
	if (n >= 2) { /* before, programs do not know of nic, and may have copied the rest */
		dup = dupinfo(info);
		CHECK(dup->nic && dup->nic != info->nic, "%s", abis[n].name);
		freeinfo(dup);
	}
	CHECK(!fabric(info->fabric_attr, &f, NULL), "%s", abis[n].name);
	CHECK(f->api_version == (n ? abis[n].api : FI_VERSION(1, 0)), "%s: %#x", abis[n].name, f->api_version);
	fi_close(&f->fid);
	freeinfo(info);
}

static void test_apis(void *lib)
{
	fabric2_fn *fabric2 = (fabric2_fn *)find(lib, "fi_fabric2", "FABRIC_1.8");
	struct fi_info *info = NULL;

	for (uint32_t major = 1; major <= 2; major++)
		for (uint32_t minor = major == 1 ? 5 : 0; minor <= (major == 1 ? 22 : 6); minor++) {
			struct fid_fabric *f = NULL;
			struct fid_domain *d = NULL;
			struct fid_ep *ep = NULL;

			CHECK(!fi_getinfo(FI_VERSION(major, minor), NULL, NULL, 0, NULL, &info), "%u.%u", major, minor);
			CHECK(!fabric2(info, &f, 0, NULL), "%u.%u", major, minor);
			CHECK(!fi_domain(f, info, &d, NULL), "%u.%u", major, minor);
			CHECK(!fi_endpoint(d, info, &ep, NULL), "%u.%u", major, minor);
			fi_close(&ep->fid);
			fi_close(&d->fid);
			fi_close(&f->fid);
			CHECK(fabric2(info, &f, 1, NULL) == -FI_EINVAL, "flags");
			fi_freeinfo(info);
		}
	CHECK(fabric2(NULL, NULL, 0, NULL) == -FI_EINVAL, "no info");
	CHECK(fi_getinfo(FI_VERSION(2, 7), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS, "later");
	CHECK(fi_version() == FI_VERSION(2, 6), "%#x", fi_version());
}

/* FI_ADDR_FORMAT leaves the offers of one format. */
static void test_format(void)
{
	static const struct {
		const char *name;
		int rc;
		uint32_t format;
	} formats[] = {
		{ "FI_SOCKADDR_IN", 0, FI_SOCKADDR_IN },
		{ "fi_addr_str", -FI_ENODATA, 0 },
		{ "FI_SOCKADDR_IB", -FI_ENODATA, 0 },
		{ "FI_NO_SUCH", 0, FI_FORMAT_UNSPEC },
	};

	for (size_t n = 0; n < sizeof(formats) / sizeof(*formats); n++) {
		struct fi_info *info = NULL;
		int rc;

		setenv("FI_ADDR_FORMAT", formats[n].name, 1);
		rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
		CHECK(rc == formats[n].rc && !info == !!rc, "%s: %d", formats[n].name, rc);
		for (struct fi_info *i = info; i; i = i->next)
			CHECK(!formats[n].format || i->addr_format == formats[n].format, "%s: %u", formats[n].name,
			      i->addr_format);
		if (info)
			fi_freeinfo(info);
	}
	unsetenv("FI_ADDR_FORMAT");
}

int main(void)
{
	void *lib = dlopen("libweft.so.0", RTLD_NOW);

	CHECK(lib, "%s", dlerror());
	if (!lib)
		return 1;
	for (size_t n = 0; n < sizeof(abis) / sizeof(*abis); n++)
		test_version(lib, n);
	test_apis(lib);
	test_format();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
