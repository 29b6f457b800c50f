/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens: one process hands out its memory as one line of text; another, which knows nothing
 * else, writes every other block of a cache of its own there as one operation, and then two of them again.
 *
 *	cc token.c $(pkg-config --cflags --libs weft)
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <weft/token.h>

#define BLOCK 1024
#define BLOCKS 8

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct weft_token_ops *token;
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
	hints->fabric_attr->prov_name = strdup("weft");
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	/* The owner below makes no call while it waits, so the provider has to serve it. */
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
	must(fi_open_ops(&n.ep->fid, WEFT_TOKEN_OPS, 0, (void **)&n.token, NULL), "fi_open_ops");
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

/* Posts elements of a list, all if picks is NULL, and waits for their end. The owner gets a notification. */
static void post(struct node *n, struct weft_list *list, const uint32_t *picks, size_t count, const char *note)
{
	struct fi_cq_entry entry;
	ssize_t ret;

	while ((ret = n->token->post(list, WEFT_WRITE, picks, count, note, strlen(note), 0, NULL)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	must(ret, "post");
	while ((ret = fi_cq_read(n->cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(n->cq, &err, 0);
		fprintf(stderr, "element %llu failed, %zu bytes are written\n", (unsigned long long)err.data, err.len);
		ret = -err.err;
	}
	must(ret, "write");
}

/* writer knows the text of a token. */
static int writer(const char *text)
{
	static char cache[2 * BLOCKS * BLOCK];
	static const uint32_t changed[] = { 2, 7 };
	struct node n = open_node();
	struct weft_remote *remote;
	struct weft_remote_info info;
	struct weft_list *list;

	must(n.token->agent(n.ep, "writer"), "agent");
	must(n.token->open(n.ep, text, strlen(text), &remote), "open");
	must(n.token->info(remote, &info, sizeof(info)), "info");
	printf("writer: %s has %llu bytes\n", info.agent, (unsigned long long)info.length);

	/* Here every other block, there one after the other. */
	struct weft_local_piece local = { .addr = cache, .len = BLOCK, .stride = 2 * BLOCK, .count = BLOCKS };
	struct weft_remote_piece there = { .remote = remote, .addr = info.base, .len = BLOCK, .count = BLOCKS };
	must(n.token->list(n.ep, &local, &there, 1, 0, &list), "list");

	for (int i = 0; i < BLOCKS; i++)
		snprintf(cache + 2 * i * BLOCK, BLOCK, "block %d", i);
	post(&n, list, NULL, 0, "all");
	for (int i = 0; i < 2; i++)
		snprintf(cache + 2 * changed[i] * BLOCK, BLOCK, "block %u, changed", changed[i]);
	post(&n, list, changed, 2, "two more");

	must(fi_close(&list->fid), "close list");
	must(fi_close(&remote->fid), "close remote");
	close_node(&n);
	return 0;
}

/* Waits for a notification and shows it. Its data is there. */
static void take_note(struct node *n)
{
	char text[32];
	struct weft_note note = { .data = text, .size = sizeof(text) };
	ssize_t ret;

	while ((ret = n->token->notes(n->ep, &note, 1)) == 0)
		;
	must(ret < 0 ? ret : 0, "notes");
	printf("owner: %s says \"%.*s\"\n", note.agent, (int)note.len, text);
}

int main(int argc, char **argv)
{
	static char memory[BLOCKS * BLOCK];
	char token[WEFT_TOKEN_MAX], text[WEFT_TOKEN_TEXT_MAX];
	struct weft_token_attr attr = { .agent = "owner" };
	size_t len = sizeof(token), size = sizeof(text);
	struct fid_mr *mr;
	int status = 1;
	pid_t child;

	if (argc > 1)
		return writer(argv[1]);
	struct node n = open_node();
	must(fi_mr_reg(n.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	must(n.token->pack(mr, &attr, token, &len), "pack");
	must(n.token->text(token, len, text, &size), "text");
	if ((child = fork()) < 0)
		return 1;
	if (child == 0) { /* a process of its own: weft has threads, which no fork copies */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", argv[0], text, NULL);
		_exit(1);
	}
	take_note(&n);
	take_note(&n);
	waitpid(child, &status, 0);
	printf("owner: \"%s\", \"%s\", \"%s\"\n", memory, memory + 2 * BLOCK, memory + 7 * BLOCK);
	must(fi_close(&mr->fid), "close mr");
	close_node(&n);
	return status || strcmp(memory, "block 0") != 0 || strcmp(memory + 7 * BLOCK, "block 7, changed") != 0;
}
