/* SPDX-License-Identifier: BSD-2-Clause
 * Imported queues and counters (cabi/peer.c), under ThreadSanitizer: several threads of the owner have them make
 * progress, and what one has read and the owner had no room for, another hands over. With MUTANT the lock is none,
 * which the sanitizer is to find. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../cabi/goapi.h"
#include "../../../cabi/hotpath.h"
#include "../../../cabi/peer.h"
#ifdef MUTANT
#define pthread_mutex_lock none
#define pthread_mutex_trylock none
#define pthread_mutex_unlock none
static int none(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}
#endif
#include "../../../cabi/peer.c"

#define READERS 3
/* Entries of the queue, in their order, and which of them are errors. */
#define ENTRIES 5000
#define ERROR(n) ((n) % 17 == 16)
/* Reads of the counter by each thread. */
#define READS 2000

/* What was read off weft's queue, and the value of its counter. */
static _Atomic uint64_t arrived, value;
/* What the owner has of the queue, and of the counter: under the lock of the import. */
static uint64_t handed, tries, succeeded, failed;
static struct weft_cq_obj queue;
static struct weft_hot_cntr hot_counter;
static struct weft_cntr_obj counter = { .hot = &hot_counter };

/* ---- what peer.c calls ---- */

ssize_t weft_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	struct fi_cq_tagged_entry *entries = buf;
	uint64_t first = atomic_load_explicit(&arrived, memory_order_relaxed), n = first;

	if (cq != &queue.fid)
		abort();
	for (; n - first < count && n < ENTRIES && !ERROR(n); n++) {
		entries[n - first] = (struct fi_cq_tagged_entry){ .op_context = (void *)n, .tag = n };
		src[n - first] = n;
	}
	atomic_store_explicit(&arrived, n, memory_order_relaxed);
	if (n != first)
		return (ssize_t)(n - first);
	return n < ENTRIES ? -FI_EAVAIL : -FI_EAGAIN;
}

ssize_t weft_cq_readerr(struct weft_cq_obj *o, struct weft_cq_err_entry *entry)
{
	if (o != &queue)
		abort();
	entry->base.op_context = (void *)atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
	return 1;
}

uint64_t weft_cntr_read(struct fid_cntr *c)
{
	(void)c;
	atomic_fetch_add_explicit(&hot_counter.errors, 1, memory_order_relaxed);
	return atomic_fetch_add_explicit(&value, 2, memory_order_relaxed) + 2;
}

const char *weft_cq_strerror(struct fid_cq *cq, int code, const void *data, char *buf, size_t len)
{
	(void)cq, (void)code, (void)data, (void)buf, (void)len;
	abort();
}
int weft_no_export_xpu(struct fid *fid, uint64_t flags, void *xpu)
{
	(void)fid, (void)flags, (void)xpu;
	abort();
}

/* ---- the owner, which has no room at each third try ---- */

static ssize_t take(void *context)
{
	if (++tries % 3 == 0)
		return -FI_EAGAIN;
	if (context != (void *)handed)
		abort();
	handed++;
	return 0;
}
static ssize_t owner_write(struct weft_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			   uint64_t tag, fi_addr_t src)
{
	(void)cq, (void)flags, (void)len, (void)buf, (void)data;
	if (ERROR((uintptr_t)context) || tag != (uintptr_t)context || src != tag)
		abort();
	return take(context);
}
static ssize_t owner_writeerr(struct weft_peer_cq *cq, const struct weft_cq_err_entry *entry)
{
	(void)cq;
	if (!ERROR((uintptr_t)entry->base.op_context))
		abort();
	return take(entry->base.op_context);
}
static void owner_inc(struct weft_peer_cntr *cntr)
{
	(void)cntr;
	succeeded++;
}
static void owner_incerr(struct weft_peer_cntr *cntr)
{
	(void)cntr;
	failed++;
}

static void *reader(void *arg)
{
	(void)arg;
	for (int i = 0; i < READS; i++)
		if (counter.fid.ops->read(&counter.fid))
			abort();
	while (atomic_load_explicit(&arrived, memory_order_relaxed) < ENTRIES)
		if (queue.fid.ops->read(&queue.fid, NULL, 0) == -FI_EAGAIN)
			sched_yield();
	return NULL;
}

int main(void)
{
	struct weft_peer_cq_ops cq_ops = { .size = sizeof(cq_ops), .write = owner_write, .writeerr = owner_writeerr };
	struct weft_peer_cntr_ops cntr_ops = { .size = sizeof(cntr_ops), .inc = owner_inc, .incerr = owner_incerr };
	struct weft_peer_cq cq = { .owner_ops = &cq_ops };
	struct weft_peer_cntr cntr = { .owner_ops = &cntr_ops };
	struct weft_peer_context of_cq = { sizeof(of_cq), &cq }, of_cntr = { sizeof(of_cntr), &cntr };
	pthread_t threads[READERS];

	queue.fid.fid.context = &of_cq;
	counter.fid.fid.context = &of_cntr;
	if (weft_peer_cq_import(&queue) || weft_peer_cntr_import(&counter))
		return 1;
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader, NULL))
			return 1;
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	while (handed < ENTRIES) /* what the owner had no room for */
		queue.fid.ops->read(&queue.fid, NULL, 0);
	printf("%llu entries in %llu tries, %llu and %llu counted\n", (unsigned long long)handed,
	       (unsigned long long)tries, (unsigned long long)succeeded, (unsigned long long)failed);
	return handed != ENTRIES || arrived != ENTRIES || succeeded != value || failed != hot_counter.errors;
}
