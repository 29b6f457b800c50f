/* SPDX-License-Identifier: BSD-2-Clause
 * The list of all objects (cabi/fork.c), under ThreadSanitizer: threads open and close objects while one forks, whose
 * child finds the list whole. With MUTANT the lock is none, which the sanitizer is to find. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../cabi/host.h"
#include "../../../cabi/objects.h"
#ifdef MUTANT
#define pthread_mutex_lock none
#define pthread_mutex_unlock none
static void none(pthread_mutex_t *mutex)
{
	(void)mutex;
}
#endif
#include "../../../cabi/fork.c"

#define OPENERS 3
#define OBJECTS 5 /* of a thread at a time */
#define FORKS 10

struct fi_ops weft_forked_fid;
static _Atomic bool ended;
static _Atomic unsigned rounds; /* of all threads */
static unsigned refusing;	/* objects of the child that have got tables */

void weft_log(int level, int subsys, const char *func, int line, const char *text)
{
	(void)level, (void)subsys, (void)func, (void)line, (void)text;
}

/* In the child: the object is one that its thread had in the list. */
void weft_object_tables(struct fid *fid, bool forked)
{
	if (!forked || fid->context != fid || fid->ops != &weft_forked_fid)
		_exit(2);
	if (++refusing > OPENERS * OBJECTS)
		_exit(3);
}

static void *opener(void *arg)
{
	struct weft_pep_obj *objects[OBJECTS] = { NULL };

	(void)arg;
	for (unsigned i = 0; i < OBJECTS || !atomic_load_explicit(&ended, memory_order_relaxed); i++) {
		struct weft_pep_obj **o = &objects[i * 7 % OBJECTS];

		if (*o) {
			weft_object_remove(&(*o)->link);
			free(*o);
		}
		if (!(*o = calloc(1, sizeof(**o))))
			abort();
		(*o)->fid.fid.context = *o;
		weft_object_add(&(*o)->link, &(*o)->fid.fid);
		atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
	}
	for (int i = 0; i < OBJECTS; i++) {
		weft_object_remove(&objects[i]->link);
		free(objects[i]);
	}
	return NULL;
}

/* What the child ends with: all in the list are reached from both sides, and refuse. */
static int whole(void)
{
	unsigned back = 0;

	for (struct weft_link *l = objects.prev; l != &objects && back <= refusing; l = l->prev)
		back++;
	return !weft_forked() || back != refusing;
}

int main(void)
{
	pthread_t threads[OPENERS];
	int status;

	if (weft_fork_init())
		return 1;
	for (int i = 0; i < OPENERS; i++)
		if (pthread_create(&threads[i], NULL, opener, NULL))
			return 1;
	for (unsigned forks = 0; forks < FORKS; forks++) {
		unsigned was = atomic_load_explicit(&rounds, memory_order_relaxed);
		pid_t pid;

		while (atomic_load_explicit(&rounds, memory_order_relaxed) - was < OPENERS * OBJECTS)
			sched_yield();
		pid = fork();
		if (!pid)
			_exit(whole());
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return printf("child: status %#x\n", status), 1;
	}
	atomic_store_explicit(&ended, true, memory_order_relaxed);
	for (int i = 0; i < OPENERS; i++)
		pthread_join(threads[i], NULL);
	printf("%u objects\n", rounds);
	return weft_forked() || objects.next != &objects || objects.prev != &objects;
}
