/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory that the NIC may access. A region's IOVA differs from its address, and the LACs of a LNI go
 * round, so that nothing works which takes one for the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "nic.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static unsigned int next_id = 1;
static long maps;

/* can_populate reports whether the kernel fills pages and reports those that may not be written. Emulators of user
 * programs say that they have, and do nothing. */
static bool can_populate(void)
{
	static int known; /* 0: not tried, 1: yes, 2: no */
	char *pages;

	if (!known) {
		pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		known = pages != MAP_FAILED && !mprotect(pages + PAGE, PAGE, PROT_READ) &&
					!madvise(pages, PAGE, MADV_POPULATE_WRITE) &&
					madvise(pages + PAGE, PAGE, MADV_POPULATE_WRITE)
				? 1
				: 2;
		if (pages != MAP_FAILED)
			munmap(pages, 2 * PAGE);
	}
	return known == 1;
}

/* touch asks for each page whether it may be read, and written: by a system call that reads a word of it, and by
 * one that adds nothing to it. */
static int touch(uint64_t va, size_t len, bool writes)
{
	uint32_t word = 0;
	int fds[2], rc = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -ENOMEM;
	for (uint64_t at = va; !rc && at < va + len; at += PAGE)
		if (write(fds[1], (void *)at, 1) != 1 || read(fds[0], &word, 1) != 1)
			rc = -EFAULT;
		else if (writes && syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 0, NULL, at,
					   FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) < 0)
			rc = -EINVAL;
	close(fds[0]);
	close(fds[1]);
	return rc;
}

/* populate does what pinning does: the pages are there, and may be written where the NIC shall. */
static int populate(uint64_t va, size_t len, uint32_t flags)
{
	bool writes = flags & MAP_NIC_WRITE;

	if (!(flags & (MAP_PIN | MAP_FAULT)) || flags & (MAP_DEVICE | MAP_ATS))
		return 0;
	if (!can_populate())
		return touch(va, len, writes);
	if (!madvise((void *)va, len, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	return errno == EINVAL || flags & MAP_FAULT ? -EINVAL : -EFAULT; /* there, but not writable; or not there */
}

/* insert keeps the regions of a context in order of their IOVAs, which grow but for ATS. */
static bool insert(struct context *c, struct region *r)
{
	unsigned int i;

	if (c->count == c->room) {
		unsigned int room = c->room ? 2 * c->room : 16;
		struct region **more = realloc(c->regions, room * sizeof *more);

		if (!more)
			return false;
		c->regions = more;
		c->room = room;
	}
	for (i = c->count; i && c->regions[i - 1]->pub.iova > r->pub.iova; i--)
		c->regions[i] = c->regions[i - 1];
	c->regions[i] = r;
	c->count++;
	return true;
}

/* take counts a LAC of a LNI that was not used yet for its service; false at its limit. */
static bool take(struct lni *l, unsigned int lac)
{
	struct context *c = &l->contexts[lac];

	if (!c->taken)
		c->taken = service_take(l->svc, RES_AC);
	return c->taken;
}

/* choose finds the LAC of the next region: they go round, as far as the service has more. */
static int choose(struct lni *l)
{
	for (long n = 0; n < set.lacs; n++) {
		unsigned int lac = l->next_lac++ % (unsigned int)set.lacs;

		if (take(l, lac))
			return (int)lac;
	}
	return -ENOSPC;
}

/* place gives a region its LAC and IOVA. ATS takes addresses as they are, with a LAC of its own. */
static int place(struct lni *l, struct region *r)
{
	int lac = r->flags & MAP_ATS ? (int)set.lacs - 1 : choose(l);
	struct context *c;

	if (lac < 0 || !take(l, (unsigned int)lac))
		return -ENOSPC;
	c = &l->contexts[lac];
	r->pub.lac = (uint8_t)lac;
	if (r->flags & MAP_ATS) {
		r->pub.iova = r->pub.va;
	} else {
		r->pub.iova = c->next;
		c->next += r->pub.len + 16 * PAGE;
	}
	return insert(c, r) ? 0 : -ENOMEM;
}

/* unknown_flags: regions of other flags have a LAC of their own, and whether there is one comes first. */
static int unknown_flags(struct lni *l)
{
	bool room;

	nic_lock();
	room = service_take(l->svc, RES_AC);
	if (room)
		service_give(l->svc, RES_AC);
	nic_unlock();
	return room ? -EINVAL : -ENOSPC;
}

API int cxil_map(struct cxil_lni *lni, void *va, size_t len, uint32_t flags, struct md_hints *hints, struct md **md)
{
	struct lni *l = (struct lni *)lni;
	struct region *r;
	int rc;

	if (!l || !md || !(flags & (MAP_NIC_READ | MAP_NIC_WRITE)) || (!len && !(flags & MAP_ATS)))
		return -EINVAL;
	if (flags & MAP_PIN && flags & (MAP_FAULT | MAP_PREFETCH))
		return -EINVAL;
	if (flags & ~MAP_KNOWN)
		return unknown_flags(l);
	rc = fault_of_call();
	if (rc)
		return rc;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->lni = l;
	r->flags = flags;
	r->pub.va = (uint64_t)va & ~(uint64_t)(PAGE - 1);
	r->pub.len = (((uint64_t)va + len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - r->pub.va;
	r->pub.page_shift = hints && hints->page_shift ? hints->page_shift : 12;
	r->pub.huge_shift = 21;
	rc = populate(r->pub.va, r->pub.len, flags);
	if (!rc) {
		nic_lock();
		rc = ++maps == set.map_fails || (set.map_most && maps > set.map_most) ? -ENOMEM : place(l, r);
		if (!rc)
			l->users++;
		r->pub.id = next_id++;
		nic_unlock();
	}
	if (rc) {
		free(r);
		return rc;
	}
	*md = &r->pub;
	return 0;
}

API int cxil_unmap(struct md *md)
{
	struct region *r = (struct region *)md;
	struct context *c;

	if (!r)
		return -EINVAL;
	nic_lock();
	c = &r->lni->contexts[r->pub.lac];
	for (unsigned int i = 0; i < c->count; i++)
		if (c->regions[i] == r) {
			memmove(c->regions + i, c->regions + i + 1, (c->count - i - 1) * sizeof *c->regions);
			c->count--;
			break;
		}
	r->lni->users--;
	nic_unlock();
	free(r);
	return 0;
}

/* region_find returns the region that has len bytes at an IOVA, or NULL. */
struct region *region_find(struct lni *l, unsigned int lac, uint64_t iova, uint64_t len)
{
	struct context *c = &l->contexts[lac % LIMIT_LACS];
	unsigned int low = 0, high = c->count;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (c->regions[mid]->pub.iova <= iova)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	struct md *m = &c->regions[low - 1]->pub;

	return iova - m->iova <= m->len && len <= m->len - (iova - m->iova) ? c->regions[low - 1] : NULL;
}

uint8_t *translate(struct lni *l, unsigned int lac, uint64_t iova, uint64_t len, bool write, uint8_t *rc)
{
	struct region *r = region_find(l, lac, iova, len);

	if (!r) {
		*rc = RC_NO_TRANSLATION;
		return NULL;
	}
	if (!(r->flags & (write ? MAP_NIC_WRITE : MAP_NIC_READ))) {
		*rc = RC_PAGE_PERM_ERROR;
		return NULL;
	}
	*rc = RC_OK;
	return (uint8_t *)(r->pub.va + (iova - r->pub.iova));
}
