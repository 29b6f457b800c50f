/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What hw/loopback/onesided_unsafe.go and provider/rma_direct.go do for all
 * operations, for the plainest of them: one piece on either side, of at most
 * weft_hot_ep.copy_max bytes. Whatever is refused, or fails, is Go's, which does it
 * again from the beginning and says what is wrong.
 *
 * The peer's process id is a private copy that Go has checked; the key table and
 * the claims are the peer's, who can only spoil its own memory by them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rma_copy.h"
#include "rma_posting.h"
#include "vmcopy.h"

#define COPY_FLAGS                                                                                 \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
	 FI_DELIVERY_COMPLETE)

/* Says that this process is at an entry of the peer's key table. NULL: all claims are taken. */
static struct weft_claim *take_claim(const struct weft_hot_ep *ep, const struct weft_hot_peer *peer,
				     uint32_t entry)
{
	struct weft_claim *claims = (struct weft_claim *)(peer->keys + peer->key_count);
	uint64_t word = (uint64_t)ep->pid << 32 | (entry + 1);
	uint32_t first = weft_thread_number();

	for (uint32_t n = 0; n < WEFT_CLAIMS; n++) {
		struct weft_claim *c = &claims[(first + n) % WEFT_CLAIMS];
		uint64_t none = 0;

		if (atomic_load_explicit(&c->word, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&c->word, &none, word))
			continue;
		atomic_store_explicit(&c->start_time, ep->start_time, memory_order_relaxed);
		return c;
	}
	return NULL;
}

static void release_claim(struct weft_claim *c)
{
	atomic_store_explicit(&c->start_time, 0, memory_order_relaxed);
	atomic_store_explicit(&c->word, 0, memory_order_release);
}

/* The address of an access in the peer's process; false: it is not allowed. The caller has a claim,
 * so the owner waits with the end of a region that is seen here. */
static bool locate(const volatile struct weft_key *k, const struct weft_copy *c, uint64_t *at)
{
	uint64_t state = atomic_load(&k->state);

	*at = k->addr + (c->addr - k->base);
	if (!(state & 1) || k->name != c->key ||
	    !weft_rma_covers(k, c->addr, c->len, c->read ? WEFT_KEY_READ : WEFT_KEY_WRITE))
		return false;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&k->state, memory_order_relaxed) == state;
}

/* Copies, unless a message that was posted before would be overtaken. */
static bool copied(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_copy *c)
{
	const volatile struct weft_key *key;
	struct weft_claim *claim;
	struct weft_ring ring;
	uint64_t put, at;
	bool ok;

	if (!weft_peer_ring(peer, &ring) || !(key = weft_rma_key(peer, c->key)))
		return false;
	put = atomic_load_explicit(&peer->put, memory_order_relaxed);
	if (put && !weft_ring_released(&ring, put - 1))
		return false;
	claim = take_claim(ep, peer, (uint32_t)(key - peer->keys));
	if (!claim)
		return false;
	ok = locate(key, c, &at) && weft_vm_copy(peer, c->buf, at, c->len, c->read);
	release_claim(claim);
	return ok;
}

/* Tells whether to ask Go first, who may lend the copy to its target (provider/rma_lend.go):
 * if the application posts ahead of what it reads, and Go does not rest from asking. */
static bool lends(struct weft_hot_ep *ep, const struct weft_copy *c, const struct weft_end *end)
{
	uint32_t rest;

	if (!ep->lend_min || c->len < ep->lend_min || !end->cq ||
	    weft_cq_unread(end->cq, end->ring) + weft_cq_unread(end->cq, 0) < WEFT_LEND_AHEAD)
		return false;
	rest = atomic_load_explicit(&ep->lend_rest, memory_order_relaxed);
	if (rest)
		atomic_store_explicit(&ep->lend_rest, rest - 1, memory_order_relaxed);
	return !rest;
}

/* Counts bytes that C copies; false: Go is to do so now, with this operation (provider/heat.go). */
static bool counts(struct weft_hot_ep *ep, const struct weft_copy *c)
{
	uint64_t copied;

	if (c->len < WEFT_HEAT_MIN)
		return true;
	copied = atomic_load_explicit(&ep->copied, memory_order_relaxed);
	if (copied >= ep->copied_max)
		return false;
	atomic_store_explicit(&ep->copied, copied + c->len, memory_order_relaxed);
	return true;
}

static int finish(struct weft_hot_ep *ep, const struct weft_end *end, const struct weft_copy *c)
{
	weft_post_count(ep, c->read ? WEFT_STAT_TX_READ : WEFT_STAT_TX_WRITE, 1);
	weft_post_count(ep, c->read ? WEFT_STAT_TX_READ_BYTES : WEFT_STAT_TX_WRITE_BYTES, c->len);
	return weft_end_done(end, c->read ? ep->read_cntr : ep->write_cntr,
			     FI_RMA | (c->read ? FI_READ : FI_WRITE), c->context, c->len) ?
		       WEFT_RMA_TRIGGERED : 0;
}

ssize_t weft_rma_copy(struct weft_ep_obj *o, const struct weft_copy *c)
{
	struct weft_hot_ep *ep = o->hot;
	struct weft_hot_peer *peer = weft_rma_peer(ep, c->dest);
	struct weft_end end;
	struct weft_poster *me;
	ssize_t rc = WEFT_RMA_TO_GO;

	if (!peer || !c->buf || (intptr_t)c->buf < 0 || !c->len || c->len > ep->copy_max ||
	    (!c->read && c->len < WEFT_COPY_MIN_WRITE) || c->flags & ~COPY_FLAGS ||
	    ((c->inject || c->flags & FI_INJECT) && c->len > ep->inject_max))
		return WEFT_RMA_TO_GO;
	if (!weft_end_room(ep, c->flags, c->inject, &end))
		return -FI_EAGAIN;
	if (lends(ep, c, &end) || !counts(ep, c))
		return WEFT_RMA_TO_GO;
	me = weft_post_begin();
	if (!me)
		return WEFT_RMA_TO_GO;
	if (atomic_load_explicit(&peer->pid, memory_order_relaxed) && copied(ep, peer, c))
		rc = finish(ep, &end, c);
	weft_post_end(me);
	return weft_rma_settle(ep, rc);
}
