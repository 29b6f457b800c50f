/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting and completing.
 */
#include <sched.h>

#include "bench.h"

static void cq_error(struct node *n)
{
	struct fi_cq_err_entry e = { 0 };

	fi_cq_readerr(n->cq, &e, 0);
	die("completion", e.err);
}

/* poll_cq counts what has completed. If nothing has, it lets others run where that is asked for. */
void poll_cq(struct node *n)
{
	struct fi_cq_tagged_entry e[16];
	ssize_t got = fi_cq_read(n->cq, e, 16);

	if (got == -FI_EAGAIN) {
		if (n->yields)
			sched_yield();
		return;
	}
	if (got < 0)
		cq_error(n);
	uint64_t received = 0;
	for (ssize_t i = 0; i < got; i++) {
		if (e[i].flags & FI_RECV) {
			received++;
			n->last_tag = e[i].tag;
		}
	}
	n->rx_done += received;
	n->tx_done += (uint64_t)got - received;
}

void *next_context(struct node *n)
{
	return &n->contexts[n->context_next++ % n->context_count];
}

/* try_post_recv is false when the provider takes no more receives. */
bool try_post_recv(struct node *n, size_t bytes, uint64_t tag)
{
	ssize_t ret;
	int tries = 0;

	while ((ret = fi_trecv(n->ep, n->rx, bytes, NULL, FI_ADDR_UNSPEC, tag, 0, next_context(n))) == -FI_EAGAIN) {
		if (++tries == 10000)
			return false;
		poll_cq(n);
	}
	if (ret == -FI_ENOMEM)
		return false;
	if (ret)
		die("fi_trecv", (int)ret);
	return true;
}

void post_recv(struct node *n, size_t bytes, uint64_t tag)
{
	if (!try_post_recv(n, bytes, tag))
		die("fi_trecv", -FI_EAGAIN);
}

void send_to(struct node *n, int rank, size_t bytes, uint64_t tag)
{
	ssize_t ret;
	bool inject = bytes <= n->info->tx_attr->inject_size;

	for (;;) {
		if (inject)
			ret = fi_tinject(n->ep, n->tx, bytes, n->peer[rank], tag);
		else
			ret = fi_tsend(n->ep, n->tx, bytes, NULL, n->peer[rank], tag, next_context(n));
		if (ret != -FI_EAGAIN)
			break;
		poll_cq(n);
	}
	if (ret)
		die("fi_tsend", (int)ret);
	n->sent += !inject;
}

void wait_sent(struct node *n)
{
	while (n->tx_done < n->sent)
		poll_cq(n);
}

/* wait_received waits for more messages than it has been called for so far;
 * they may have been counted already. */
void wait_received(struct node *n, uint64_t more)
{
	n->rx_want += more;
	while (n->rx_done < n->rx_want)
		poll_cq(n);
}
