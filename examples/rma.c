/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One-sided operations: two processes, of which one writes into the other's
 * memory, reads it back and adds to a number there, while the other only waits
 * for the number to change.
 *
 *	cc rma.c $(pkg-config --cflags --libs weft)
 */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* What the target sends the initiator, over a pipe: where to go, and with which key. */
struct offer {
	char name[256];
	size_t name_len;
	uint64_t addr, key;
};

/* The target's memory that others may change. */
struct window {
	char text[64];
	volatile uint64_t done;
};

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void must(long ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int)ret));
		exit(1);
	}
}

static struct node open_node(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct node n;

	if (!hints)
		must(-FI_ENOMEM, "fi_allocinfo");
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	/* What this program can live with; the provider takes away what it does not need. */
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	/* The target below makes no call, so the provider has to look after it. */
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &n.info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(n.info->fabric_attr, &n.fabric, NULL), "fi_fabric");
	must(fi_domain(n.fabric, n.info, &n.domain, NULL), "fi_domain");
	must(fi_av_open(n.domain, &av, &n.av, NULL), "fi_av_open");
	must(fi_cq_open(n.domain, &cq, &n.cq, NULL), "fi_cq_open");
	must(fi_endpoint(n.domain, n.info, &n.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(n.ep, &n.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(n.ep), "fi_enable");
	return n;
}

static void close_node(struct node *n)
{
	must(fi_close(&n->ep->fid), "close endpoint");
	must(fi_close(&n->cq->fid), "close cq");
	must(fi_close(&n->av->fid), "close av");
	must(fi_close(&n->domain->fid), "close domain");
	must(fi_close(&n->fabric->fid), "close fabric");
	fi_freeinfo(n->info);
}

/* target offers a window and waits, with its eyes on memory alone. */
static int target(int out)
{
	struct node n = open_node();
	struct window w = { .text = "", .done = 0 };
	struct offer o = { .name_len = sizeof(o.name) };
	struct fid_mr *mr;

	must(fi_mr_reg(n.domain, &w, sizeof(w), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	must(fi_getname(&n.ep->fid, o.name, &o.name_len), "fi_getname");
	/* Without FI_MR_VIRT_ADDR addresses in a region count from 0. */
	o.addr = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)&w : 0;
	o.key = fi_mr_key(mr);
	if (write(out, &o, sizeof(o)) != sizeof(o))
		return 1;
	while (!w.done)
		usleep(1000);
	printf("target: \"%s\" and %llu were written here\n", w.text, (unsigned long long)w.done);
	must(fi_close(&mr->fid), "close mr");
	close_node(&n);
	return strcmp(w.text, "written from afar") != 0 || w.done != 42;
}

/* done waits for the completion of one operation. */
static void done(struct node *n, const char *what)
{
	struct fi_cq_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(n->cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == -FI_EAVAIL) { /* a wrong key or range is reported here */
		struct fi_cq_err_entry err = { 0 };
		fi_cq_readerr(n->cq, &err, 0);
		ret = -err.err;
	}
	must(ret, what);
}

/* Posts an operation until there is room for it, and waits for its end. */
#define RUN(n, call) \
	do { \
		ssize_t ret_; \
		while ((ret_ = (call)) == -FI_EAGAIN) \
			fi_cq_read((n)->cq, NULL, 0); \
		must(ret_, #call); \
		done(n, #call); \
	} while (0)

static int initiator(int in)
{
	struct node n = open_node();
	struct offer o;
	char text[64] = "written from afar", back[64] = "";
	uint64_t more = 42, before = 1;
	fi_addr_t peer;

	if (read(in, &o, sizeof(o)) != sizeof(o))
		return 1;
	must(fi_av_insert(n.av, o.name, 1, &peer, 0, NULL), "fi_av_insert");
	RUN(&n, fi_write(n.ep, text, sizeof(text), NULL, peer, o.addr, o.key, NULL));
	RUN(&n, fi_read(n.ep, back, sizeof(back), NULL, peer, o.addr, o.key, NULL));
	RUN(&n, fi_fetch_atomic(n.ep, &more, 1, NULL, &before, NULL, peer, o.addr + offsetof(struct window, done),
				o.key, FI_UINT64, FI_SUM, NULL));
	printf("initiator: read back \"%s\", the number was %llu\n", back, (unsigned long long)before);
	close_node(&n);
	return strcmp(text, back) != 0 || before != 0;
}

int main(int argc, char **argv)
{
	int fds[2], status = 1;
	pid_t child;

	if (argc > 1)
		return target(atoi(argv[1]));
	if (pipe(fds) || (child = fork()) < 0)
		return 1;
	if (child == 0) { /* a process of its own: weft has threads, which no fork copies */
		char out[16];
		snprintf(out, sizeof(out), "%d", fds[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", argv[0], out, NULL);
		return 1;
	}
	close(fds[1]);
	int rc = initiator(fds[0]);
	waitpid(child, &status, 0);
	return rc || status;
}
