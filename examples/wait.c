/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waiting without spinning: one thread sleeps in poll() until a completion queue
 * has something, as it would for a socket, while another sends now and then.
 *
 *	cc wait.c -pthread $(pkg-config --cflags --libs weft)
 */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

enum { MESSAGES = 5 };

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;

static void must(long ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int)ret));
		exit(1);
	}
}

static struct fi_info *find(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		must(-FI_ENOMEM, "fi_allocinfo");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

/* open_end makes an endpoint and its queue; fd is where to sleep, or NULL. */
static struct fid_ep *open_end(struct fi_info *info, struct fid_cq **cq, int *fd)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = fd ? FI_WAIT_FD : FI_WAIT_NONE };
	struct fid_ep *ep;

	must(fi_cq_open(domain, &attr, cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	if (fd)
		must(fi_control(&(*cq)->fid, FI_GETWAIT, fd), "FI_GETWAIT");
	return ep;
}

struct sender {
	struct fi_info *info;
	fi_addr_t to;
};

/* A message every 50 ms. */
static void *send_some(void *arg)
{
	struct sender *s = arg;
	struct fid_cq *cq;
	struct fid_ep *ep = open_end(s->info, &cq, NULL);

	for (uint64_t n = 1; n <= MESSAGES; n++) {
		ssize_t ret;
		usleep(50000);
		while ((ret = fi_inject(ep, &n, sizeof(n), s->to)) == -FI_EAGAIN)
			fi_cq_read(cq, NULL, 0);
		must(ret, "fi_inject");
	}
	must(fi_close(&ep->fid), "close endpoint");
	must(fi_close(&cq->fid), "close cq");
	return NULL;
}

int main(void)
{
	struct fi_info *info = find();
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_msg_entry entry;
	struct fid_cq *cq;
	struct sender sender = { .info = info };
	pthread_t thread;
	char name[256];
	size_t size = sizeof(name);
	uint64_t got, sum = 0;
	int fd, slept = 0;

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	struct fid_ep *ep = open_end(info, &cq, &fd);
	must(fi_getname(&ep->fid, name, &size), "fi_getname");
	must(fi_av_insert(av, name, 1, &sender.to, 0, NULL), "fi_av_insert");
	must(fi_recv(ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	if (pthread_create(&thread, NULL, send_some, &sender))
		return 1;
	for (int n = 0; n < MESSAGES;) {
		struct fid *fids[] = { &cq->fid };
		ssize_t ret = fi_cq_read(cq, &entry, 1);
		if (ret == -FI_EAGAIN) {
			/* fi_trywait says whether it is safe to sleep: nothing came since the read. */
			if (fi_trywait(fabric, fids, 1) == FI_SUCCESS) {
				poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1);
				slept++;
			}
			continue;
		}
		must(ret, "fi_cq_read");
		sum += got;
		if (++n < MESSAGES)
			must(fi_recv(ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	}
	pthread_join(thread, NULL);
	printf("%d messages, sum %llu, slept %d times\n", MESSAGES, (unsigned long long)sum, slept);
	must(fi_close(&ep->fid), "close endpoint");
	must(fi_close(&cq->fid), "close cq");
	must(fi_close(&av->fid), "close av");
	must(fi_close(&domain->fid), "close domain");
	must(fi_close(&fabric->fid), "close fabric");
	fi_freeinfo(info);
	return sum != MESSAGES * (MESSAGES + 1) / 2 || !slept;
}
