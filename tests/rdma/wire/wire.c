/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wire PROVIDER LATENCY RATE BANDWIDTH: figures of a libfabric provider between
 * two hosts, on one of which NODE is 0. OWN and OTHER are their IP addresses. The
 * numbers are of messages for each figure. The processes find each other over TCP,
 * which is also how they wait for each other. Node 1 prints "name value" lines.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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
#include <rdma/fi_tagged.h>

enum { PORT = 7099, WINDOW = 64, RECEIVES = 256, LONG_WINDOW = 4, LONG = 1 << 20, SLOTS = 2 * RECEIVES, LIMIT = 60 };

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t peer;
static struct fi_context2 contexts[SLOTS];
static unsigned next_context;
static uint64_t sent, received;
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
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
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

static void open_all(const char *provider)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = 2};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 2 * SLOTS};
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	char own[64] = {0}, other[64];
	size_t n = sizeof(own);

	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 11), getenv("OWN"), NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "bind av");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, own, &n), "fi_getname");
	swap(own, other, sizeof(own));
	if (fi_av_insert(av, other, 1, &peer, 0, NULL) != 1)
		die("fi_av_insert", -FI_EADDRNOTAVAIL);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	tx = aligned_alloc(4096, LONG);
	rx = aligned_alloc(4096, (size_t)LONG * LONG_WINDOW);
	memset(tx, 1, LONG);
	memset(rx, 2, (size_t)LONG * LONG_WINDOW);
}

static void poll_cq(void)
{
	static unsigned calls;
	static double began; /* when something came last */
	struct fi_cq_tagged_entry e[16];
	ssize_t n = fi_cq_read(cq, e, 16);

	if (began == 0)
		began = now();
	if (n == -FI_EAGAIN) {
		if (++calls % 1024 == 0 && now() - began > LIMIT)
			die("nothing moves", -FI_ETIMEDOUT);
		return;
	}
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = {0};

		fi_cq_readerr(cq, &err, 0);
		die("completion", -err.err);
	}
	must(n < 0 ? (int)n : 0, "fi_cq_read");
	began = now();
	for (ssize_t i = 0; i < n; i++)
		*(e[i].flags & FI_RECV ? &received : &sent) += 1;
}

static void post(bool send, size_t bytes, char *buffer)
{
	void *context = &contexts[next_context++ % SLOTS];
	ssize_t ret;

	while ((ret = send ? fi_tsend(ep, buffer, bytes, NULL, peer, 1, context)
			   : fi_trecv(ep, buffer, bytes, NULL, FI_ADDR_UNSPEC, 1, 0, context)) == -FI_EAGAIN)
		poll_cq();
	must((int)ret, send ? "fi_tsend" : "fi_trecv");
}

static void wait_for(const uint64_t *count, uint64_t want)
{
	while (*count < want)
		poll_cq();
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

/* The median of n half round trips in us, which is printed if it is to be told. */
static void latency(int n, bool tell)
{
	double *times = calloc((size_t)n, sizeof(*times));
	uint64_t s = sent, r = received;

	ready();
	for (int i = 0; i < n; i++) {
		double t = now();

		post(false, 8, rx);
		if (first)
			wait_for(&received, r + (uint64_t)i + 1);
		post(true, 8, tx);
		wait_for(&sent, s + (uint64_t)i + 1);
		if (!first)
			wait_for(&received, r + (uint64_t)i + 1);
		times[i] = (now() - t) * 5e5;
	}
	qsort(times, (size_t)n, sizeof(*times), ascending);
	if (tell && !first)
		printf("latency_us %.3f\n", times[n / 2]);
	free(times);
}

/* The time of n messages of some bytes from node 1, until node 0 has them and has
 * said so, in seconds. */
static double stream(int n, size_t bytes, int window, int receives)
{
	uint64_t s = sent, r = received;
	double t;

	if (first) {
		int posted = 0;

		for (; posted < n && posted < receives; posted++)
			post(false, bytes, rx + (size_t)(posted % LONG_WINDOW) * (bytes == LONG ? LONG : 8));
		ready();
		while (received < r + (uint64_t)n) {
			poll_cq();
			for (; posted < n && (uint64_t)posted < received - r + (uint64_t)receives; posted++)
				post(false, bytes, rx + (size_t)(posted % LONG_WINDOW) * (bytes == LONG ? LONG : 8));
		}
		post(true, 8, tx);
		wait_for(&sent, s + 1);
		return 0;
	}
	post(false, 8, rx);
	ready();
	t = now();
	for (int i = 0; i < n; i++) {
		post(true, bytes, tx);
		if (i >= window)
			wait_for(&sent, s + (uint64_t)(i - window) + 1);
	}
	wait_for(&received, r + 1);
	t = now() - t;
	wait_for(&sent, s + (uint64_t)n);
	return t;
}

int main(int argc, char **argv)
{
	int count[3];
	double t;

	if (argc != 5 || !getenv("NODE") || !getenv("OWN") || !getenv("OTHER")) {
		fprintf(stderr, "usage: NODE=0|1 OWN=IP OTHER=IP wire PROVIDER LATENCY RATE BANDWIDTH\n");
		return 2;
	}
	for (int i = 0; i < 3; i++)
		count[i] = atoi(argv[2 + i]) > 0 ? atoi(argv[2 + i]) : 1;
	first = !strcmp(getenv("NODE"), "0");
	join_hosts();
	open_all(argv[1]);
	latency(10, false); /* connects */
	latency(count[0], true);
	stream(WINDOW, 8, WINDOW, RECEIVES);
	t = stream(count[1], 8, WINDOW, RECEIVES);
	if (!first)
		printf("rate_per_s %.1f\n", count[1] / t);
	stream(2, LONG, LONG_WINDOW, LONG_WINDOW);
	t = stream(count[2], LONG, LONG_WINDOW, LONG_WINDOW);
	if (!first)
		printf("bandwidth_MB_per_s %.2f\n", count[2] * (double)LONG / t / 1e6);
	ready();
	return 0;
}
