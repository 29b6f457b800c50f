/* SPDX-License-Identifier: BSD-2-Clause
 *
 * After a fork without exec the child has one thread and none of Go's: a call
 * into Go would wait for ever. So the child gives every object tables that
 * refuse (forked_gen.c) before fork returns there, and sets a flag for the calls
 * that have no object. The data path pays nothing for it.
 *
 * A vfork, posix_spawn, or a fork by clone without handlers must exec, as it
 * always must in a program with threads.
 */
#include "host.h"
#include "objects.h"

int weft_forked_flag;

/* All objects of the process. Under the lock, which only opening and closing
 * objects and fork take: the child must find the list whole. */
static struct weft_link objects = { &objects, &objects, NULL };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void weft_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}
void weft_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void weft_object_add(struct weft_link *link, struct fid *fid)
{
	weft_objects_lock();
	link->fid = fid;
	link->next = &objects;
	link->prev = objects.prev;
	objects.prev->next = link;
	objects.prev = link;
	weft_objects_unlock();
}

void weft_object_remove(struct weft_link *link)
{
	weft_objects_lock();
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weft_objects_unlock();
}

const char *weft_forked_straddr(struct fid_av *, const void *, char *buf, size_t *len)
{
	weft_fork_refusal();
	if (buf && *len)
		buf[0] = '\0';
	*len = 1;
	return buf;
}

/* A counter's value is what it was when the process forked. */
uint64_t weft_forked_cntr_read(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->value, memory_order_relaxed);
}

uint64_t weft_forked_cntr_readerr(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->errors, memory_order_relaxed);
}

/* Replaces the tables of an object of any class by ones that refuse every call. */
static void forked_tables(struct fid *fid)
{
	fid->ops = &weft_forked_fid;
	weft_object_tables(fid, true);
}

static void child(void)
{
	weft_forked_flag = 1;
	for (struct weft_link *l = objects.next; l != &objects; l = l->next)
		forked_tables(l->fid);
	weft_objects_unlock();
}

/* From the time the library is loaded, because Go's threads start then: a
 * program that is linked with it may fork before it makes its first call. */
static int watching;

__attribute__((constructor)) static void watch(void)
{
	watching = -pthread_atfork(weft_objects_lock, weft_objects_unlock, child);
}

int weft_fork_init(void)
{
	return watching;
}

int weft_fork_refusal(void)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set_explicit(&logged, memory_order_relaxed))
		weft_log(FI_LOG_WARN, FI_LOG_CORE, __func__, __LINE__,
			 "call in a forked process: weft's objects work only in the process that "
			 "opened them, and after fork only exec gives a new one");
	return -FI_EOPNOTSUPP;
}
