/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that uses another provider, on a host where weft is installed, has nothing of it: the
 * same threads, signals, limits and descriptors as without, and at most 200 KiB more. Each use runs
 * twice as a process of its own, with weft's folder in FI_PROVIDER_PATH and with an empty one. */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#define MOST_BYTES (200 << 10)
#define USE "WEFT_TEST_USE" /* set in those processes: the use's name */

/* ---- the uses ---- */

/* An endpoint of another provider, open and enabled; as far as the provider goes. */
static void open_endpoint(const char *provider, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = type;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	CHECK(strcmp(info->fabric_attr->prov_name, "weft") != 0);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
}

static void use_rxm(void)
{
	open_endpoint("tcp;ofi_rxm", FI_EP_RDM);
}
static void use_shm(void)
{
	open_endpoint("shm", FI_EP_RDM);
}
static void use_udp(void)
{
	open_endpoint("udp", FI_EP_DGRAM);
}

/* The hints name nothing, and the variable of whatever runs the program does. */
static void use_filter(void)
{
	setenv("FI_PROVIDER", "udp", 1);
	open_endpoint(NULL, FI_EP_DGRAM);
}

static void use_without(void)
{
	setenv("FI_PROVIDER", "^weft", 1);
	open_endpoint(NULL, FI_EP_RDM);
}

/* Hints without a name that weft never meets; whatever does may answer. */
static void ask(uint64_t caps, uint32_t format, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int rc;

	hints->caps = caps;
	hints->addr_format = format;
	hints->ep_attr->type = type;
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	CHECK(rc == 0 || rc == -FI_ENODATA);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void use_unmet(void)
{
	ask(FI_MSG | FI_MULTICAST, FI_FORMAT_UNSPEC, FI_EP_DGRAM);
	ask(FI_MSG | FI_VARIABLE_MSG, FI_FORMAT_UNSPEC, FI_EP_UNSPEC);
	ask(FI_MSG, FI_SOCKADDR_IB, FI_EP_RDM);
	ask(FI_MSG | FI_COLLECTIVE, FI_FORMAT_UNSPEC, FI_EP_MSG);
	ask(FI_MSG, FI_FORMAT_UNSPEC, FI_EP_SOCK_STREAM);
}

/* What libfabric and the loader know by themselves: providers' versions, the variables. */
static void use_lists(void)
{
	struct fi_info *info = NULL;
	struct fi_param *params = NULL;
	bool listed = false;
	int n = 0, variables = 0;

	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info));
	for (struct fi_info *i = info; i; i = i->next)
		listed |= !strcmp(i->fabric_attr->prov_name, "weft") && i->fabric_attr->prov_version;
	fi_freeinfo(info);
	OK(fi_getparams(&params, &n));
	for (int i = 0; i < n; i++)
		variables += !strncmp(params[i].name, "FI_WEFT_", 8);
	fi_freeparams(params);
	if (!getenv("WEFT_TEST_EMPTY")) {
		CHECK(listed);
		CHECK(variables > 50);
	}
}

/* These may be met: the core has to be there. */
static void use_all(void)
{
	struct fi_info *info = NULL;

	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	fi_freeinfo(info);
}

static void use_any(void)
{
	ask(FI_MSG, FI_FORMAT_UNSPEC, FI_EP_RDM);
}

static void use_named(void)
{
	struct fi_info *info = node_info(NULL);

	CHECK(info != NULL);
	fi_freeinfo(info);
}

static const struct use {
	const char *name;
	void (*run)(void);
} uses[] = {
	{ "tcp_rxm", use_rxm },	    { "shm", use_shm },	    { "udp", use_udp },	    { "filter", use_filter },
	{ "without", use_without }, { "unmet", use_unmet }, { "lists", use_lists }, { "all", use_all },
	{ "any", use_any },	    { "named", use_named },
};

/* ---- what a process has ---- */

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Copies the lines of a file that begin with one of the words, "" for all. */
static void show(const char *path, const char *const *words)
{
	char line[512];
	FILE *f = fopen(path, "r");

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		for (const char *const *w = words; *w; w++)
			if (!strncmp(line, *w, strlen(*w)))
				fputs(line, stdout);
	fclose(f);
}

/* Bytes mapped of files whose name has the word. */
static unsigned long mapped(const char *word)
{
	unsigned long from, to, sum = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, word) && sscanf(line, "%lx-%lx", &from, &to) == 2)
			sum += to - from;
	fclose(f);
	return sum;
}

static unsigned long address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f != NULL && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

/* The first line is measured, the others must be the same. */
static void notify(void)
{
	static const char *const status[] = { "SigBlk", "SigIgn", "SigCgt", "Threads", "NoNewPrivs", NULL };
	static const char *const everything[] = { "", NULL };
	stack_t stack;
	int descriptors = entries("/proc/self/fd");

	printf("%lu %lu %lu\n", address_space(), mapped("weft-fi"), mapped("weft-core"));
	CHECK(sigaltstack(NULL, &stack) == 0);
	printf("descriptors %d, timer slack %d, signal stack %#x\n", descriptors, prctl(PR_GET_TIMERSLACK),
	       (unsigned)stack.ss_flags);
	show("/proc/self/status", status);
	show("/proc/self/limits", everything);
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction now;

		if (!sigaction(sig, NULL, &now))
			printf("signal %d: flags %#x\n", sig, (unsigned)now.sa_flags);
	}
}

struct process {
	unsigned long space, loader, core;
	char rest[16384];
};

/* Runs one use as a process of its own, with or without weft's folder. */
static void run_use(const char *name, bool with, struct process *p)
{
	char command[512];
	size_t n;
	FILE *f;

	/* The harness names weft in FI_PROVIDER. */
	snprintf(command, sizeof(command), "unset FI_PROVIDER; " USE "=%s %s /proc/%d/exe", name,
		 with ? "" : "WEFT_TEST_EMPTY=1 FI_PROVIDER_PATH=/var/empty", (int)getpid());
	f = popen(command, "r");
	CHECK(f != NULL);
	CHECKF(fscanf(f, "%lu %lu %lu\n", &p->space, &p->loader, &p->core) == 3, "%s",
	       fgets(p->rest, sizeof(p->rest), f));
	n = fread(p->rest, 1, sizeof(p->rest) - 1, f);
	p->rest[n] = 0;
	CHECK(n > 100 && pclose(f) == 0);
}

static void test_nothing(long arg)
{
	static struct process with, without;
	const struct use *u = &uses[arg];

	if (!test_is_weft())
		SKIP("it is about weft");
	run_use(u->name, false, &without);
	run_use(u->name, true, &with);
	note("%lu bytes of the loader, %ld more in all", with.loader, (long)(with.space - without.space));
	CHECK(without.loader == 0 && without.core == 0 && with.core == 0);
	CHECK(with.loader > 0 && with.loader <= MOST_BYTES);
	CHECK(with.space <= without.space + MOST_BYTES);
	CHECKF(!strcmp(with.rest, without.rest), "without:\n%s\nwith:\n%s", without.rest, with.rest);
}

static void test_started(long arg)
{
	static struct process p;

	if (!test_is_weft())
		SKIP("it is about weft");
	run_use(uses[arg].name, true, &p);
	CHECK(p.loader > 0 && p.core > MOST_BYTES);
}

static const struct test tests[] = {
	{ "tcp_rxm", test_nothing, 0, 0, 0 }, { "shm", test_nothing, 0, 0, 1 },	    { "udp", test_nothing, 0, 0, 2 },
	{ "filter", test_nothing, 0, 0, 3 },  { "without", test_nothing, 0, 0, 4 }, { "unmet", test_nothing, 0, 0, 5 },
	{ "lists", test_nothing, 0, 0, 6 },   { "all", test_started, 0, 0, 7 },	    { "any", test_started, 0, 0, 8 },
	{ "named", test_started, 0, 0, 9 },
};

int main(int argc, char **argv)
{
	const char *use = getenv(USE);

	for (size_t i = 0; use && i < ARRAY_LEN(uses); i++)
		if (!strcmp(uses[i].name, use)) {
			uses[i].run();
			notify();
			return 0;
		}
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
