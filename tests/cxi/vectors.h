/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What vectors.c prints: commands and events that the model records, and what the library gives to the provider, by
 * functions that stand in front of the library's. It is included once, by a program.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../cassini/abi.h"
#include "../cassini/cassini.h"

/* must fails the program where a call of libfabric fails. */
#define must(call) must_be((long)(call), #call)

static void must_be(long rc, const char *call)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %ld\n", call, rc);
	exit(1);
}

/* What the provider gets from the library. */
static struct {
	uint64_t va, len, iova, lac;
} maps[256];
static unsigned int map_count;

static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

/* These stand in front of the library's functions, and note what they give. */
int cxil_map(struct cxil_lni *lni, void *va, size_t len, uint32_t flags, struct md_hints *hints, struct md **md)
{
	int (*real)(struct cxil_lni *, void *, size_t, uint32_t, struct md_hints *, struct md **) = next("cxil_map");
	int rc = real(lni, va, len, flags, hints, md);

	if (!rc && map_count < 256) {
		maps[map_count].va = (*md)->va;
		maps[map_count].len = (*md)->len;
		maps[map_count].iova = (*md)->iova;
		maps[map_count++].lac = (*md)->lac;
	}
	return rc;
}

int cxil_alloc_cmdq(struct cxil_lni *lni, struct eq *eq, const struct cq_opts *opts, struct cq **cmdq)
{
	int (*real)(struct cxil_lni *, struct eq *, const struct cq_opts *, struct cq **) = next("cxil_alloc_cmdq");
	int rc = real(lni, eq, opts, cmdq);

	if (!rc)
		printf("queue %u eq %u\n", (*cmdq)->idx, eq ? eq->eqn : 0);
	return rc;
}

int cxil_map_pte(struct cxil_pte *pte, struct cxil_domain *domain, unsigned int offset, bool multicast,
		 struct cxil_pte_map **map)
{
	int (*real)(struct cxil_pte *, struct cxil_domain *, unsigned int, bool, struct cxil_pte_map **) =
		next("cxil_map_pte");

	printf("ptlte %u index %u\n", pte->ptn, offset);
	return real(pte, domain, offset, multicast, map);
}

static void print_record(void *context, int kind, unsigned int number, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	(void)context;
	printf("%s %u ", kind == 'c' ? "command" : "event", number);
	for (size_t i = 0; i < n; i++)
		printf("%02x", b[i]);
	printf("\n");
}

/* memory prints where n bytes at p are for the NIC. */
static void memory(const char *name, const void *p, size_t n)
{
	uint64_t va = (uint64_t)p;

	for (unsigned int i = map_count; i-- > 0;)
		if (va >= maps[i].va && va + n <= maps[i].va + maps[i].len) {
			printf("%s.iova %#lx\n%s.lac %lu\n", name, maps[i].iova + (va - maps[i].va), name, maps[i].lac);
			return;
		}
	fprintf(stderr, "%s is not mapped\n", name);
	exit(1);
}

static void begin(const char *name)
{
	cassini_set("record", 0);
	cassini_record(print_record, NULL);
	printf("\ncall %s\n", name);
	cassini_set("record", 1);
}

static void value(const char *name, uint64_t v)
{
	printf("%s %#lx\n", name, v);
}

static void payload(const unsigned char *b, size_t n)
{
	printf("payload ");
	for (size_t i = 0; i < n; i++)
		printf("%02x", b[i]);
	printf("\n");
}
