/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes named calls of libfabric's own CXI provider over the model of the NIC and prints what it put into its command
 * queues and what events it took, with what is known of each call without reading them: arguments, addresses as the
 * NIC has them, numbers of queues. tests/cxi/vectors.sh builds and runs it; hw/cxi/internal/nic compares.
 */
#include "vectors.h"

static struct fid_cq *cq;

/* completed waits for n completions and prints their lengths, data and tags. */
static void completed(int n)
{
	struct fi_cq_tagged_entry e;
	long rc;

	while (n > 0) {
		rc = fi_cq_read(cq, &e, 1);
		if (rc == -FI_EAGAIN)
			continue;
		must(rc);
		if (e.flags & FI_RECV) {
			value("completed.length", e.len);
			value("completed.data", e.flags & FI_REMOTE_CQ_DATA ? e.data : 0);
			value("completed.tag", e.tag);
		}
		n--;
	}
	cassini_record(print_record, NULL);
	cassini_set("record", 0);
}

static struct fid_domain *domain;
static struct fid_ep *ep;
static fi_addr_t self;

/* open_endpoint opens one endpoint, which sends to itself, and notes its opening under a name. */
static void open_endpoint(const char *call, const char *pid, int mode, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 16 };
	struct fid_fabric *fabric;
	struct fid_av *av;
	uint64_t name[8] = {};
	size_t n = sizeof name;

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | mode;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("cxi");
	must(fi_getinfo(FI_VERSION(1, 15), "cxi0", pid, FI_SOURCE, hints, &info));
	must(fi_fabric(info->fabric_attr, &fabric, NULL));
	must(fi_domain(fabric, info, &domain, NULL));
	must(fi_endpoint(domain, info, &ep, NULL));
	must(fi_cq_open(domain, &cq_attr, &cq, NULL));
	must(fi_av_open(domain, &av_attr, &av, NULL));
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_ep_bind(ep, &av->fid, 0));
	begin(call);
	must(fi_enable(ep));
	must(fi_getname(&ep->fid, name, &n));
	value("pid", name[0] & 0x1ff);
	value("nid", name[0] >> 9 & 0xfffff);
	completed(0);
	must(fi_av_insert(av, name, 1, &self, 0, NULL));
}

enum { LONG = 4096, LONGER = 100000, TAG = 0x123456789abc, OTHER = 0x0cba98765432 };
static unsigned char from[LONG] __attribute__((aligned(4096))), to[LONG] __attribute__((aligned(4096)));
static int context[4];

/* posted begins a call that finds a receive of n bytes. */
static void posted(const char *name, void *buffer, size_t n, uint64_t tag)
{
	must(fi_trecv(ep, buffer, n, NULL, self, tag, 0, context));
	begin(name);
	value("tag", tag);
}

static void messages(void)
{
	begin("fi_trecv");
	must(fi_trecv(ep, to, 1000, NULL, FI_ADDR_UNSPEC, TAG, 0xff00, context));
	completed(0); /* nothing to read yet */
	value("tag", TAG);
	value("ignore", 0xff00);
	value("length", 1000);
	memory("local", to, 1000);

	begin("fi_tsend of 1000 bytes");
	value("tag", TAG);
	value("length", 1000);
	must(fi_tsend(ep, from, 1000, NULL, self, TAG, context));
	completed(2);
	memory("local", from, 1000);
	memory("target", to, 1000);

	posted("fi_tinject of 8 bytes", to + 64, 8, OTHER);
	value("length", 8);
	payload(from, 8);
	must(fi_tinject(ep, from, 8, self, OTHER));
	completed(1);
	memory("target", to + 64, 8);

	posted("fi_tsenddata of 100 bytes", to, 200, TAG);
	value("length", 100);
	value("data", 0x1122334455667788);
	payload(from + 256, 100);
	must(fi_tsenddata(ep, from + 256, 100, NULL, 0x1122334455667788, self, TAG, context));
	completed(2);
	memory("target", to, 200);

	must(fi_trecv(ep, to, 10, NULL, self, TAG + 1, 0, context));
	begin("fi_cancel");
	must(fi_cancel(&ep->fid, context));
	struct fi_cq_err_entry err = {};

	while (fi_cq_readerr(cq, &err, 0) != 1)
		fi_cq_read(cq, NULL, 0);
	completed(0);
}

/* rendezvous sends a message that its receiver reads the data of, and waits for it. */
static void rendezvous(const char *name, int tagged)
{
	static unsigned char source[LONGER] __attribute__((aligned(4096))), sink[LONGER] __attribute__((aligned(4096)));

	if (tagged)
		must(fi_trecv(ep, sink, LONGER, NULL, self, TAG, 0, context));
	else
		must(fi_recv(ep, sink, LONGER, NULL, self, context));
	begin(name);
	value("tag", tagged ? TAG : 0);
	value("length", LONGER);
	value("data", 0);
	if (tagged)
		must(fi_tsend(ep, source, LONGER, NULL, self, TAG, context));
	else
		must(fi_send(ep, source, LONGER, NULL, self, context));
	completed(2);
	memory("local", source, LONGER);
	memory("target", sink, LONGER);
}

/* ended waits for the end of what has no completion. */
static void ended(void)
{
	for (int i = 0; i < 100; i++)
		fi_cq_read(cq, NULL, 0);
	completed(0);
}

/* unexpected finds a message before its receive is there, and waits for the match. */
static void unexpected(void)
{
	struct iovec iov = { from, 64 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .addr = self, .tag = TAG, .context = context };
	struct fi_msg_tagged search = { .addr = self, .tag = TAG, .ignore = 0xff, .context = context + 2 };

	begin("fi_tsendmsg with FI_MATCH_COMPLETE");
	value("tag", TAG);
	value("data", 0);
	payload(from, 64);
	must(fi_tsendmsg(ep, &m, FI_COMPLETION | FI_MATCH_COMPLETE));
	completed(0);
	for (int i = 0; i < 100; i++)
		fi_cq_read(cq, NULL, 0);

	begin("fi_trecvmsg with FI_PEEK");
	value("tag", TAG);
	value("ignore", 0xff);
	must(fi_trecvmsg(ep, &search, FI_PEEK | FI_COMPLETION));
	completed(1);

	begin("fi_trecv of what has come");
	value("tag", TAG);
	must(fi_trecv(ep, to, 64, NULL, self, TAG, 0, context + 2));
	completed(2);
}

/* many receives several messages by one receive. */
static void many(void)
{
	struct iovec iov = { to, 2048 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context };
	size_t least = 600;

	must(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
	begin("fi_recvmsg with FI_MULTI_RECV");
	must(fi_recvmsg(ep, &m, FI_MULTI_RECV));
	completed(0);
	value("length", 2048);
	value("least", least);
	memory("local", to, 2048);
}

static void onesided(void)
{
	static uint64_t word __attribute__((aligned(4096))), compare, result;
	struct fid_mr *mr, *words;

	must(fi_mr_reg(domain, to, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0x4321, 0, &mr, NULL));
	must(fi_mr_bind(mr, &ep->fid, 0));
	begin("fi_mr_enable");
	must(fi_mr_enable(mr));
	completed(0);
	value("key", 0x4321);
	value("length", LONG);
	memory("local", to, LONG);

	begin("fi_write of 2048 bytes");
	must(fi_write(ep, from + 64, 2048, NULL, self, 1024, 0x4321, context));
	completed(1);
	value("key", 0x4321);
	value("length", 2048);
	value("offset", 1024);
	memory("local", from + 64, 2048);

	begin("fi_read of 1536 bytes");
	must(fi_read(ep, from, 1536, NULL, self, 512, 0x4321, context));
	completed(1);
	value("key", 0x4321);
	value("length", 1536);
	value("offset", 512);
	memory("local", from, 1536);

	begin("fi_close of a region");
	must(fi_close(&mr->fid));
	completed(0);

	must(fi_mr_reg(domain, &word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0x4322, 0, &words, NULL));
	must(fi_mr_bind(words, &ep->fid, 0));
	must(fi_mr_enable(words));
	word = 5;
	begin("fi_atomic");
	uint64_t operand = 0x0102030405060708;

	value("key", 0x4322);
	value("length", 8);
	must(fi_atomic(ep, &operand, 1, NULL, self, 0, 0x4322, FI_UINT64, FI_SUM, context));
	completed(1);

	compare = word;
	begin("fi_compare_atomic");
	value("key", 0x4322);
	value("length", 8);
	value("compare", compare);
	must(fi_compare_atomic(ep, &operand, 1, NULL, &compare, NULL, &result, NULL, self, 0, 0x4322, FI_UINT64,
			       FI_CSWAP, context));
	completed(1);
	memory("result", &result, 8);
	if (word != operand || result != compare)
		abort();
	must(fi_close(&words->fid));
}

/* region lets the endpoint reach memory of its own, by a key or one that it chooses, and returns that. */
static struct fid_mr *region(void *at, size_t n, uint64_t key, uint64_t flags, struct fid_cntr *count)
{
	struct fid_mr *mr;

	must(fi_mr_reg(domain, at, n, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, flags, &mr, NULL));
	if (count)
		must(fi_mr_bind(mr, &count->fid, FI_REMOTE_WRITE));
	must(fi_mr_bind(mr, &ep->fid, 0));
	must(fi_mr_enable(mr));
	return mr;
}

/* described prints what is known of an operation on n bytes of a region. */
static void described(struct fid_mr *mr, int pid, size_t n, uint64_t offset)
{
	value("key", fi_mr_key(mr));
	value("pid", (uint64_t)pid);
	value("length", n);
	value("offset", offset);
}

/* ended_at is completed, and described. */
static void ended_at(int completions, struct fid_mr *mr, int pid, size_t n, uint64_t offset)
{
	completed(completions);
	described(mr, pid, n, offset);
}

/* written writes, flushed or not, and reads a region. */
static void written(struct fid_mr *mr, int pid, const char *by)
{
	struct iovec iov = { from, 1000 };
	struct fi_rma_iov remote = { 256, 1000, fi_mr_key(mr) };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = self,
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = context };
	char name[128];

	snprintf(name, sizeof name, "fi_write by %s", by);
	begin(name);
	must(fi_write(ep, from, 1000, NULL, self, 256, fi_mr_key(mr), context));
	ended_at(1, mr, pid, 1000, 256);
	memory("local", from, 1000);
	snprintf(name, sizeof name, "fi_writemsg with FI_DELIVERY_COMPLETE by %s", by);
	begin(name);
	must(fi_writemsg(ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ended_at(1, mr, pid, 1000, 256);
	memory("local", from, 1000);
	snprintf(name, sizeof name, "fi_read by %s", by);
	begin(name);
	must(fi_read(ep, from, 1000, NULL, self, 256, fi_mr_key(mr), context));
	ended_at(1, mr, pid, 1000, 256);
	memory("local", from, 1000);
}

/* small writes 100 bytes with the command, and adds to a word. */
static void small(struct fid_mr *mr, int pid, const char *by)
{
	static uint64_t operand = 0x0102030405060708, result;
	char name[128];

	snprintf(name, sizeof name, "fi_inject_write by %s", by);
	begin(name);
	must(fi_inject_write(ep, from, 100, self, 512, fi_mr_key(mr)));
	ended();
	described(mr, pid, 100, 512);
	payload(from, 100);
	snprintf(name, sizeof name, "fi_fetch_atomic by %s", by);
	begin(name);
	must(fi_fetch_atomic(ep, &operand, 1, NULL, &result, NULL, self, 64, fi_mr_key(mr), FI_UINT64, FI_SUM,
			     context));
	ended_at(1, mr, pid, 8, 64);
	value("operand", operand);
	memory("result", &result, 8);
}

/* inlined writes, and changes elements, by commands that have the data in them, in each of their sizes. */
static void inlined(struct fid_mr *mr, int pid)
{
	static uint64_t operand[2] = { 0x0102030405060708, 0x1112131415161718 }, compare[2] = { 0xff00, 0 }, result[2];
	struct iovec iov = { from, 24 };
	struct fi_rma_iov remote = { 512, 24, fi_mr_key(mr) };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = self,
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = context };
	struct fi_ioc element = { operand, 1 };
	struct fi_rma_ioc there = { 64, 1, fi_mr_key(mr) };
	struct fi_msg_atomic a = { .msg_iov = &element,
				   .iov_count = 1,
				   .addr = self,
				   .rma_iov = &there,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = FI_SUM,
				   .context = context };

	begin("fi_write of 224 bytes by a key of its own");
	must(fi_write(ep, from, 224, NULL, self, 512, fi_mr_key(mr), context));
	ended_at(1, mr, pid, 224, 512);
	payload(from, 224);

	begin("fi_writemsg of 24 bytes with FI_DELIVERY_COMPLETE by a key of its own");
	must(fi_writemsg(ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ended_at(1, mr, pid, 24, 512);
	payload(from, 24);

	begin("fi_inject_atomic by a key of its own");
	must(fi_inject_atomic(ep, operand, 1, self, 64, fi_mr_key(mr), FI_UINT32, FI_BOR));
	ended();
	described(mr, pid, 4, 64);
	value("operand", (uint32_t)operand[0]);

	begin("fi_atomic of a complex number by a key of its own");
	must(fi_atomic(ep, operand, 1, NULL, self, 128, fi_mr_key(mr), FI_DOUBLE_COMPLEX, FI_SUM, context));
	ended_at(1, mr, pid, 16, 128);
	value("operand", operand[0]);
	value("operand.high", operand[1]);

	begin("fi_compare_atomic with FI_MSWAP by a key of its own");
	must(fi_compare_atomic(ep, operand, 1, NULL, compare, NULL, result, NULL, self, 64, fi_mr_key(mr), FI_UINT64,
			       FI_MSWAP, context));
	ended_at(1, mr, pid, 8, 64);
	value("operand", operand[0] & compare[0]);
	value("compare", compare[0]);
	memory("result", result, 8);

	begin("fi_atomicmsg with FI_DELIVERY_COMPLETE by a key of its own");
	must(fi_atomicmsg(ep, &a, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ended_at(1, mr, pid, 8, 64);
	value("operand", operand[0]);
}

/* keys are those with an index of their own, and those that an endpoint chooses. */
static void keys(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *count;
	struct fid_mr *mr = region(to, LONG, 50, 0, NULL);

	written(mr, 91, "a key of its own");
	small(mr, 91, "a key of its own");
	inlined(mr, 91);
	open_endpoint("fi_enable with FI_MR_PROV_KEY", "92", FI_MR_PROV_KEY, FI_RMA_EVENT);
	mr = region(to, LONG, 0, 0, NULL);
	written(mr, 92, "a kept key");
	small(mr, 92, "a kept key");
	must(fi_cntr_open(domain, &attr, &count, NULL));
	mr = region(to, LONG, 0, 0, count);
	written(mr, 92, "a chosen key with events");
	mr = region(to, LONG, 0, FI_RMA_EVENT, NULL);
	written(mr, 92, "a chosen key that shares an index");
}

/* with_data writes to a region with data. */
static void with_data(void)
{
	struct fid_mr *mr = region(to, LONG, 0, FI_RMA_EVENT, NULL);

	begin("fi_writedata (writedata)");
	must(fi_writedata(ep, from, 1000, NULL, 0x1122334455667788, self, 256, fi_mr_key(mr), context));
	ended_at(2, mr, 91, 1000, 256);
	value("data", 0x1122334455667788);
	memory("local", from, 1000);
}

/* restricted sends a long message of which software gets the rest by restricted gets. */
static void restricted(void)
{
	rendezvous("fi_tsend of 100000 bytes (alt_read)", 1);
}

/* overflow sends more messages than there is room for, and receives them. */
static void overflow(void)
{
	enum { COUNT = 12, SIZE = 16000 };
	static unsigned char in[SIZE], out[SIZE];
	struct fi_cq_tagged_entry e;
	int done = 0;

	begin("messages without room (flow)");
	for (int i = 0; i < COUNT; i++)
		must(fi_tsend(ep, out, SIZE, NULL, self, TAG + (uint64_t)i, context));
	for (int i = 0; i < 1000; i++)
		done += fi_cq_read(cq, &e, 1) == 1;
	for (int i = 0; i < COUNT; i++)
		must(fi_trecv(ep, in, SIZE, NULL, self, TAG + (uint64_t)i, 0, context));
	while (done < 2 * COUNT) {
		long rc = fi_cq_read(cq, &e, 1);

		if (rc != -FI_EAGAIN)
			must(rc);
		done += rc == 1;
	}
	completed(0);
	value("tag", TAG);
	value("length", SIZE);
}

/* by_software sends a message that software matches. */
static void by_software(void)
{
	must(fi_trecv(ep, to, 100, NULL, self, TAG, 0, context));
	begin("fi_tinject of 8 bytes (software)");
	must(fi_tinject(ep, from, 8, self, TAG));
	completed(1);
	value("tag", TAG);
	value("length", 8);
	payload(from, 8);
}

/* settings are calls of endpoints that settings of the environment's make others (vectors.sh). */
static const struct {
	const char *name, *enable;
	void (*calls)(void);
	int mode;
	uint64_t caps;
} settings[] = {
	{ "alt_read", "fi_enable (alt_read)", restricted, 0, 0 },
	{ "flow", "fi_enable (flow)", overflow, 0, 0 },
	{ "software", "fi_enable (software)", by_software, 0, 0 },
	{ "writedata", "fi_enable (writedata)", with_data, FI_MR_PROV_KEY, FI_RMA_EVENT },
};

int main(int argc, char **argv)
{
	for (int i = 0; i < LONG; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t i = 0; argc > 1 && i < sizeof settings / sizeof *settings; i++)
		if (!strcmp(argv[1], settings[i].name)) {
			open_endpoint(settings[i].enable, "91", settings[i].mode, settings[i].caps);
			settings[i].calls();
			return 0;
		}
	open_endpoint("fi_enable", "91", 0, 0); /* the number is the PID */
	messages();
	rendezvous("fi_tsend of 100000 bytes", 1);
	rendezvous("fi_send of 100000 bytes", 0);
	unexpected();
	onesided();
	many();
	keys();
	return 0;
}
