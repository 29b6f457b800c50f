/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of a GPU's memory (weft/token.h), which rank 0 writes from memory of its own GPU and reads into that of
 * the host, beside copies within one process, in turn; and what a mapping costs at its first use and at later ones.
 * Rank 1, which owns the memory, only polls. The ranks have a GPU each if there are two that reach each other, else
 * one together, and the copies are between the same ones. Without a CUDA driver there are no figures. With
 * FI_WEFT_TOKEN_WAYS=message they are those of messages.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/weft/ext.h"
#include "bench.h"

enum {
	GPU_BYTES = 16 << 20,
	SHORT = 8,     /* bytes of what shows a mapping's cost */
	USES = 200,    /* of a mapping */
	PATTERN = 251, /* of the owner's memory, a prime */
	OTHER = 7,     /* what rank 0 writes is so far from it */
};

static struct {
	int (*alloc)(uint64_t *, size_t);
	int (*from_host)(uint64_t, const void *, size_t);
	int (*stream)(void **, unsigned);
	int (*to_host)(void *, uint64_t, size_t, void *);
	int (*within)(uint64_t, uint64_t, size_t, void *);
	int (*wait)(void *);
	int (*current)(void *);
	void *lib, *queue;
	void *own, *other; /* contexts of this rank's device and of the other rank's */
	int devices;	   /* that are used: 1 or 2 */
	int device;	   /* this rank's */
} cu;

struct gpu {
	struct weft_token_ops *t;
	struct weft_remote *remote;
	struct weft_remote_info info;
	struct fid_mr *mr;
	uint64_t here, spare; /* memory of this process on its GPU and on that of the other one */
	uint8_t *host;
	struct weft_stats_ops *stats;
	int expected, other; /* counters: elements by the way that all are to take, and by the other one */
	uint64_t posts;	     /* of lists, of one element each */
};

#define FIND(f, name) (*(void **)&(f) = dlsym(cu.lib, (name)))

/* The first two devices reach each other's memory. */
static bool within_reach(void)
{
	int (*can)(int *, int, int), to = 0, from = 0;

	return FIND(can, "cuDeviceCanAccessPeer") && !can(&to, 0, 1) && !can(&from, 1, 0) && to && from;
}

/* False: there is no driver, or it has no device. */
static bool open_driver(int rank)
{
	int (*init)(unsigned), (*count)(int *), (*retain)(void **, int), all = 0;

	cu.lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cu.lib)
		return false;
	if (!FIND(init, "cuInit") || !FIND(count, "cuDeviceGetCount") || !FIND(retain, "cuDevicePrimaryCtxRetain") ||
	    !FIND(cu.current, "cuCtxSetCurrent") || !FIND(cu.alloc, "cuMemAlloc_v2") ||
	    !FIND(cu.from_host, "cuMemcpyHtoD_v2") || !FIND(cu.stream, "cuStreamCreate") ||
	    !FIND(cu.to_host, "cuMemcpyDtoHAsync_v2") || !FIND(cu.within, "cuMemcpyDtoDAsync_v2") ||
	    !FIND(cu.wait, "cuStreamSynchronize"))
		return false;
	if (init(0) || count(&all) || all < 1)
		return false;
	cu.devices = all > 1 && within_reach() ? 2 : 1;
	cu.device = rank % cu.devices;
	return !retain(&cu.own, cu.device) && !retain(&cu.other, cu.devices - 1 - cu.device) && !cu.current(cu.own) &&
	       !cu.stream(&cu.queue, 1);
}

/* A call of the driver that must go well. */
static void driver(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "weft_bench: %s: CUDA error %d\n", what, ret);
		exit(1);
	}
}

/* Memory of this rank's device, and of the other rank's, which copies reach as the library's do. */
static void allocate(struct gpu *g)
{
	enum { ENABLED_ALREADY = 704 };
	int (*enable)(void *, unsigned);

	driver(cu.current(cu.other), "cuCtxSetCurrent");
	driver(cu.alloc(&g->spare, GPU_BYTES), "cuMemAlloc");
	driver(cu.current(cu.own), "cuCtxSetCurrent");
	driver(cu.alloc(&g->here, GPU_BYTES), "cuMemAlloc");
	if (cu.devices == 2 && FIND(enable, "cuCtxEnablePeerAccess")) {
		int ret = enable(cu.other, 0);

		driver(ret == ENABLED_ALREADY ? 0 : ret, "cuCtxEnablePeerAccess");
	}
}

static struct fid_mr *region_of(struct node *n, uint64_t at)
{
	struct iovec iov = { (void *)(uintptr_t)at, GPU_BYTES };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.requested_key = 1,
		.iface = FI_HMEM_CUDA,
		.device.cuda = cu.device,
	};
	struct fid_mr *mr;

	must(fi_mr_regattr(n->domain, &attr, 0, &mr), "fi_mr_regattr");
	return mr;
}

/* Fills this process's memory of the GPU with a pattern. */
static void fill(struct gpu *g, size_t from)
{
	for (size_t i = 0; i < GPU_BYTES; i++)
		g->host[i] = (uint8_t)((i + from) % PATTERN);
	driver(cu.from_host(g->here, g->host, GPU_BYTES), "cuMemcpyHtoD");
}

/* That memory of the host has the pattern. */
static void compare_bytes(const struct gpu *g, size_t from, const char *what)
{
	for (size_t i = 0; i < GPU_BYTES; i++)
		if (g->host[i] != (i + from) % PATTERN)
			die(what, -FI_EIO);
}

/* Lists go as messages where they are to, else by a mapping. */
static void expect_way(struct node *n, struct gpu *g)
{
	const char *ways = getenv("FI_WEFT_TOKEN_WAYS");
	bool message = ways && !strcmp(ways, "message");

	must(fi_open_ops(&n->ep->fid, WEFT_STATS_OPS, 0, (void **)&g->stats, NULL), "counters");
	g->expected = g->stats->find(message ? "list_message" : "list_ipc");
	g->other = g->stats->find(message ? "list_ipc" : "list_message");
	if (g->expected < 0 || g->other < 0)
		die("counters of lists", -FI_ENOENT);
}

/* All lists so far have gone by the expected way. Between hosts that may be any. */
static void check_way(struct node *n, struct gpu *g)
{
	uint64_t expected, other;

	if (n->opt->host_count)
		return;
	must(g->stats->read(&n->ep->fid, g->expected, 1, &expected), "counters");
	must(g->stats->read(&n->ep->fid, g->other, 1, &other), "counters");
	if (expected == g->posts && !other)
		return;
	fprintf(stderr, "weft_bench: of %llu lists %llu went by %s and %llu by %s; not mapped: %s\n",
		(unsigned long long)g->posts, (unsigned long long)expected, g->stats->counters[g->expected].name,
		(unsigned long long)other, g->stats->counters[g->other].name, g->info.why[WEFT_WAY_IPC]);
	exit(1);
}

/* False: the provider has no tokens, or no memory of GPUs. */
static bool open_gpu(struct node *n, struct gpu *g)
{
	const struct wish wish = { .threading = FI_THREAD_DOMAIN, .one_sided = true, .device = true };

	if (!has_provider(n, &wish))
		return false;
	node_open(n, &wish);
	if (fi_open_ops(&n->ep->fid, WEFT_TOKEN_OPS, 0, (void **)&g->t, NULL))
		return false;
	if (n->rank == 0)
		report("gpu_devices", cu.devices);
	allocate(g);
	g->host = calloc(1, GPU_BYTES);
	if (!g->host)
		die("calloc", -FI_ENOMEM);
	g->mr = region_of(n, g->here);
	node_connect(n);
	if (n->rank == 1) {
		fill(g, 0);
		share_token(n, g->t, g->mr);
	}
	meet(n);
	if (n->rank == 1)
		return true;
	g->remote = open_token(n, g->t);
	must(g->t->info(g->remote, &g->info, sizeof(g->info)), "info");
	expect_way(n, g);
	return true;
}

/* A list of one element, of memory of this process's GPU or of the host. */
static struct weft_list *list_of(struct node *n, struct gpu *g, size_t bytes, bool device)
{
	struct weft_local_piece here = { .addr = device ? (void *)(uintptr_t)g->here : g->host,
					 .desc = device ? fi_mr_desc(g->mr) : NULL,
					 .len = bytes };
	struct weft_remote_piece there = { .remote = g->remote, .addr = g->info.base, .len = bytes };
	struct weft_list *list;

	must(g->t->list(n->ep, &here, &there, 1, 0, &list), "list");
	return list;
}

/* Posts a list and waits for its end; returns ns. */
static double by_list(struct node *n, struct gpu *g, struct weft_list *list, uint32_t op)
{
	uint64_t t0 = ticks();
	ssize_t ret;

	while ((ret = g->t->post(list, op, NULL, 0, NULL, 0, 0, next_context(n))) == -FI_EAGAIN)
		poll_cq(n);
	if (ret)
		die("post", (int)ret);
	n->sent++;
	g->posts++;
	wait_sent(n);
	return (double)(ticks() - t0) * tick_ns();
}

/* The same bytes within this process; returns ns. */
static double by_copy(struct gpu *g, size_t bytes, bool device)
{
	uint64_t t0 = ticks();

	if (device)
		driver(cu.within(g->spare, g->here, bytes, cu.queue), "cuMemcpyDtoD");
	else
		driver(cu.to_host(g->host, g->spare, bytes, cu.queue), "cuMemcpyDtoH");
	driver(cu.wait(cu.queue), "cuStreamSynchronize");
	return (double)(ticks() - t0) * tick_ns();
}

/* One length: a list that writes from the GPU or reads into the host's memory, and a copy, in turn. */
static void compare(struct node *n, struct gpu *g, size_t bytes, bool device)
{
	enum { MOST = 4096 };
	static double took[2][MOST];
	struct weft_list *list = list_of(n, g, bytes, device);
	const uint32_t op = device ? WEFT_WRITE : WEFT_READ;
	int rounds = 0;

	by_list(n, g, list, op);
	for (struct deadline end = deadline_in(n->opt->seconds); rounds < MOST && (rounds < 3 || !passed(end));
	     rounds++) {
		took[0][rounds] = by_list(n, g, list, op);
		took[1][rounds] = by_copy(g, bytes, device);
	}
	check_way(n, g);
	for (int k = 0; k < 2; k++) {
		char name[64];

		clear_samples();
		for (int i = 0; i < rounds; i++)
			sample((double)bytes / took[k][i] * 1e3);
		snprintf(name, sizeof(name), "gpu_%s%s_%zu_mbps", device ? "gpu" : "host", k ? "_copy" : "", bytes);
		report(name, quantile(0.5));
	}
	must(fi_close(&list->fid), "close list");
}

/* The first list maps the owner's memory, later ones find it mapped. It reads what the owner has. */
static void mapping(struct node *n, struct gpu *g)
{
	struct weft_list *list = list_of(n, g, SHORT, false), *all = list_of(n, g, GPU_BYTES, false);
	double first = by_list(n, g, list, WEFT_READ);

	clear_samples();
	for (int i = 0; i < USES; i++)
		sample(by_list(n, g, list, WEFT_READ) / 1e3);
	by_list(n, g, all, WEFT_READ);
	compare_bytes(g, 0, "bytes that were read");
	check_way(n, g);
	report("gpu_map_first_us", first / 1e3);
	report("gpu_map_again_us", quantile(0.5));
	must(fi_close(&list->fid), "close list");
	must(fi_close(&all->fid), "close list");
}

void test_gpu(struct node *n)
{
	static const size_t sizes[] = { 65536, 1 << 20, GPU_BYTES };
	struct gpu g = { 0 };

	n->yields = true; /* to the thread of the library that copies */
	if (!open_driver(n->rank) || !open_gpu(n, &g))
		return;
	if (n->rank == 0) {
		mapping(n, &g);
		fill(&g, OTHER);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			compare(n, &g, sizes[i], true);
			compare(n, &g, sizes[i], false);
		}
		must(fi_close(&g.remote->fid), "close remote");
		atomic_store(&n->shared->stop, 1);
	} else {
		while (!atomic_load(&n->shared->stop))
			poll_cq(n);
		driver(cu.to_host(g.host, g.here, GPU_BYTES, cu.queue), "cuMemcpyDtoH");
		driver(cu.wait(cu.queue), "cuStreamSynchronize");
		compare_bytes(&g, OTHER, "bytes that were written");
	}
	must(fi_close(&g.mr->fid), "close region");
	meet(n);
}
