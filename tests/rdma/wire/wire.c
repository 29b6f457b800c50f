/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wire BATCHES LATENCY RATE BANDWIDTH PROVIDER...: figures of libfabric providers between
 * two hosts, on one of which NODE is 0. OWN and OTHER are their IP addresses. The
 * numbers are of messages for each figure in each batch. All providers are open at once and have their
 * batches in turn, so that what the machine does meanwhile happens to all of them. The processes find
 * each other over TCP, which is also how they wait for each other. Node 1 prints
 * "provider name value" lines.
 *
 * wire BATCHES ELEMENTS BYTES: weft's lists of elements, every other block of memory on both sides, in turn with one
 * write as long as all of them. The lines are of "list" and "write".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../../../include/weft/token.h"

enum { PORT = 7099, WINDOW = 64, RECEIVES = 256, LONG_WINDOW = 4, LONG = 1 << 20, SLOTS = 2 * RECEIVES, LIMIT = 60 };

/* A provider, opened. */
struct side {
	const char *provider;
	uint64_t caps; /* beside FI_TAGGED */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct fi_context2 contexts[SLOTS];
	unsigned next_context;
	uint64_t sent, received;
};

static char *tx, *rx;
static int tcp;
static bool first;

static void die(const char *what, int error)
{
	fprintf(stderr, "wire: %s: %s\n", what, fi_strerror(error));
	exit(1);
}

static void must(int ret, const char *what)
{
	if (ret)
		die(what, ret);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void join_hosts(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	double end = now() + LIMIT;
	int one = 1;

	inet_pton(AF_INET, getenv(first ? "OWN" : "OTHER"), &a.sin_addr);
	for (;;) {
		int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (first) {
			if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 1))
				die("listen", -errno);
			tcp = accept(s, NULL, NULL);
			close(s);
			return;
		}
		if (!connect(s, (struct sockaddr *)&a, sizeof(a))) {
			tcp = s;
			return;
		}
		close(s);
		if (now() > end)
			die("connect", -FI_ETIMEDOUT);
		usleep(50000);
	}
}

/* swap sends n bytes and gets the other side's. */
static void swap(const void *out, void *in, size_t n)
{
	if (send(tcp, out, n, 0) != (ssize_t)n || recv(tcp, in, n, MSG_WAITALL) != (ssize_t)n)
		die("the other host", -FI_ECONNRESET);
}

static void open_side(struct side *s)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 2 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 2 * SLOTS };
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	char own[64] = { 0 }, other[64];
	size_t n = sizeof(own);

	hints->caps = FI_TAGGED | s->caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(s->provider);
	must(fi_getinfo(FI_VERSION(1, 11), getenv("OWN"), NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &s->fabric, NULL), "fi_fabric");
	must(fi_domain(s->fabric, info, &s->domain, NULL), "fi_domain");
	must(fi_av_open(s->domain, &av_attr, &s->av, NULL), "fi_av_open");
	must(fi_cq_open(s->domain, &cq_attr, &s->cq, NULL), "fi_cq_open");
	must(fi_endpoint(s->domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &s->av->fid, 0), "bind av");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	must(fi_enable(s->ep), "fi_enable");
	must(fi_getname(&s->ep->fid, own, &n), "fi_getname");
	swap(own, other, sizeof(own));
	if (fi_av_insert(s->av, other, 1, &s->peer, 0, NULL) != 1)
		die("fi_av_insert", -FI_EADDRNOTAVAIL);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void poll_cq(struct side *s)
{
	static unsigned calls;
	static double began; /* when something came last */
	struct fi_cq_tagged_entry e[16];
	ssize_t n = fi_cq_read(s->cq, e, 16);

	if (began == 0)
		began = now();
	if (n == -FI_EAGAIN) {
		if (++calls % 1024 == 0 && now() - began > LIMIT)
			die("nothing moves", -FI_ETIMEDOUT);
		return;
	}
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(s->cq, &err, 0);
		die("completion", -err.err);
	}
	must(n < 0 ? (int)n : 0, "fi_cq_read");
	began = now();
	for (ssize_t i = 0; i < n; i++)
		*(e[i].flags & FI_RECV ? &s->received : &s->sent) += 1;
}

static void post(struct side *s, bool send, size_t bytes, char *buffer)
{
	void *context = &s->contexts[s->next_context++ % SLOTS];
	ssize_t ret;

	while ((ret = send ? fi_tsend(s->ep, buffer, bytes, NULL, s->peer, 1, context)
			   : fi_trecv(s->ep, buffer, bytes, NULL, FI_ADDR_UNSPEC, 1, 0, context)) == -FI_EAGAIN)
		poll_cq(s);
	must((int)ret, send ? "fi_tsend" : "fi_trecv");
}

static void wait_for(struct side *s, const uint64_t *count, uint64_t want)
{
	while (*count < want)
		poll_cq(s);
}

static void ready(void)
{
	char a = 1, b;

	swap(&a, &b, 1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of n half round trips in us. */
static double latency(struct side *s, int n)
{
	double *times = calloc((size_t)n, sizeof(*times)), median;
	uint64_t sent = s->sent, received = s->received;

	ready();
	for (int i = 0; i < n; i++) {
		double t = now();

		post(s, false, 8, rx);
		if (first)
			wait_for(s, &s->received, received + (uint64_t)i + 1);
		post(s, true, 8, tx);
		wait_for(s, &s->sent, sent + (uint64_t)i + 1);
		if (!first)
			wait_for(s, &s->received, received + (uint64_t)i + 1);
		times[i] = (now() - t) * 5e5;
	}
	qsort(times, (size_t)n, sizeof(*times), ascending);
	median = times[n / 2];
	free(times);
	return median;
}

/* Node 0's half of a stream. */
static void sink(struct side *s, int n, size_t bytes, int receives)
{
	size_t step = bytes == LONG ? LONG : 8;
	uint64_t sent = s->sent, received = s->received;
	int posted = 0;

	for (; posted < n && posted < receives; posted++)
		post(s, false, bytes, rx + (size_t)(posted % LONG_WINDOW) * step);
	ready();
	while (s->received < received + (uint64_t)n) {
		poll_cq(s);
		for (; posted < n && (uint64_t)posted < s->received - received + (uint64_t)receives; posted++)
			post(s, false, bytes, rx + (size_t)(posted % LONG_WINDOW) * step);
	}
	post(s, true, 8, tx);
	wait_for(s, &s->sent, sent + 1);
}

/* The time of n messages of some bytes from node 1, until node 0 has them and has
 * said so, in seconds. */
static double stream(struct side *s, int n, size_t bytes, int window, int receives)
{
	uint64_t sent = s->sent, received = s->received;
	double t;

	if (first) {
		sink(s, n, bytes, receives);
		return 1;
	}
	post(s, false, 8, rx);
	ready();
	t = now();
	for (int i = 0; i < n; i++) {
		post(s, true, bytes, tx);
		if (i >= window)
			wait_for(s, &s->sent, sent + (uint64_t)(i - window) + 1);
	}
	wait_for(s, &s->received, received + 1);
	t = now() - t;
	wait_for(s, &s->sent, sent + (uint64_t)n);
	return t;
}

static double rate(struct side *s, int n)
{
	return n / stream(s, n, 8, WINDOW, RECEIVES);
}

static double bandwidth(struct side *s, int n)
{
	return n * (LONG / 1e6) / stream(s, n, LONG, LONG_WINDOW, LONG_WINDOW);
}

static const struct {
	const char *name;
	double (*of)(struct side *s, int n);
} figures[] = { { "latency_us", latency }, { "rate_per_s", rate }, { "bandwidth_MB_per_s", bandwidth } };

enum { FIGURES = sizeof(figures) / sizeof(figures[0]) };

/* One batch of a figure. */
static void batch(struct side *s, int figure, int n)
{
	double value = figures[figure].of(s, n);

	if (!first)
		printf("%s %s %.3f\n", s->provider, figures[figure].name, value);
}

/* Waits for the other side, and makes progress meanwhile: it connects. */
static void serve(struct side *s)
{
	struct pollfd p = { .fd = tcp, .events = POLLIN };
	char a = 1, b;

	if (send(tcp, &a, 1, 0) != 1)
		die("the other host", -FI_ECONNRESET);
	while (poll(&p, 1, 0) == 0)
		fi_cq_read(s->cq, NULL, 0);
	if (recv(tcp, &b, 1, 0) != 1)
		die("the other host", -FI_ECONNRESET);
}

/* The MB/s of a list, or of a write as long. */
static double moved(struct side *s, struct weft_token_ops *t, struct weft_list *list, struct weft_remote_info *there,
		    char *memory, size_t bytes)
{
	uint64_t sent = s->sent;
	double began = now();
	ssize_t ret;

	do {
		ret = list ? t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, NULL)
			   : fi_write(s->ep, memory, bytes, NULL, there->addr, there->base, there->key, NULL);
		if (ret == -FI_EAGAIN)
			poll_cq(s);
	} while (ret == -FI_EAGAIN);
	must((int)ret, "post");
	wait_for(s, &s->sent, sent + 1);
	return (double)bytes / 1e6 / (now() - began);
}

/* Node 1's half, with the token of node 0's memory. */
static void write_lists(struct side *s, struct weft_token_ops *t, char *token, size_t len, char *memory, int batches,
			size_t count, size_t bytes)
{
	struct weft_local_piece here = { .addr = memory, .len = bytes, .stride = 2 * bytes, .count = count };
	struct weft_remote_piece there = { .len = bytes, .stride = 2 * bytes, .count = count };
	struct weft_remote_info info;
	struct weft_list *list;

	must(t->open(s->ep, token, len, &there.remote), "open");
	must(t->info(there.remote, &info, sizeof(info)), "info");
	there.addr = info.base;
	must(t->list(s->ep, &here, &there, 1, 0, &list), "list");
	moved(s, t, list, &info, memory, count * bytes); /* connects, registers */
	moved(s, t, NULL, &info, memory, count * bytes);
	for (int b = 0; b < batches; b++) {
		printf("list lists_%zu_MB_per_s %.3f\n", bytes, moved(s, t, list, &info, memory, count * bytes));
		printf("write lists_%zu_MB_per_s %.3f\n", bytes, moved(s, t, NULL, &info, memory, count * bytes));
	}
	must(fi_close(&list->fid), "close list");
	must(fi_close(&there.remote->fid), "close remote");
}

static int lists(int batches, size_t count, size_t bytes)
{
	struct side s = { .provider = "weft", .caps = FI_RMA };
	char out[WEFT_TOKEN_MAX + 8] = { 0 }, in[sizeof(out)];
	size_t len = WEFT_TOKEN_MAX, size = 2 * count * bytes;
	struct weft_token_ops *t;
	char *memory = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	struct fid_mr *mr;

	if (!memory)
		die("memory", -FI_ENOMEM);
	memset(memory, 1, size);
	open_side(&s);
	must(fi_open_ops(&s.ep->fid, WEFT_TOKEN_OPS, 0, (void **)&t, NULL), "fi_open_ops");
	must(fi_mr_reg(s.domain, memory, size, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	must(t->pack(mr, NULL, out, &len), "pack");
	memcpy(out + WEFT_TOKEN_MAX, &len, sizeof(len));
	swap(out, in, sizeof(out));
	memcpy(&len, in + WEFT_TOKEN_MAX, sizeof(len));
	if (!first)
		write_lists(&s, t, in, len, memory, batches, count, bytes);
	serve(&s);
	must(fi_close(&mr->fid), "close mr");
	return 0;
}

int main(int argc, char **argv)
{
	int count[1 + FIGURES], providers = argc - 5;
	struct side *sides;

	if ((providers < 1 && argc != 4) || !getenv("NODE") || !getenv("OWN") || !getenv("OTHER")) {
		fprintf(stderr, "usage: NODE=0|1 OWN=IP OTHER=IP wire BATCHES LATENCY RATE BANDWIDTH PROVIDER...\n"
				"       or wire BATCHES ELEMENTS BYTES\n");
		return 2;
	}
	first = !strcmp(getenv("NODE"), "0");
	if (argc == 4) {
		join_hosts();
		return lists(atoi(argv[1]), (size_t)atol(argv[2]), (size_t)atol(argv[3]));
	}
	for (int i = 0; i < 1 + FIGURES; i++)
		count[i] = atoi(argv[1 + i]) > 0 ? atoi(argv[1 + i]) : 1;
	join_hosts();
	tx = aligned_alloc(4096, LONG);
	rx = aligned_alloc(4096, (size_t)LONG * LONG_WINDOW);
	memset(tx, 1, LONG);
	memset(rx, 2, (size_t)LONG * LONG_WINDOW);
	sides = calloc((size_t)providers, sizeof(*sides));
	for (int p = 0; p < providers; p++) {
		sides[p].provider = argv[5 + p];
		open_side(&sides[p]);
		latency(&sides[p], 10); /* connects */
		stream(&sides[p], WINDOW, 8, WINDOW, RECEIVES);
		stream(&sides[p], 2, LONG, LONG_WINDOW, LONG_WINDOW);
	}
	for (int f = 0; f < FIGURES; f++)
		for (int b = 0; b < count[0]; b++)
			for (int p = 0; p < providers; p++)
				batch(&sides[p], f, count[1 + f]);
	ready();
	return 0;
}
