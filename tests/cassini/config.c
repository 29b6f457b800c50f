/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Settings, counters, and the lock.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "cassini.h"
#include "nic.h"

struct settings set = {
	.devices = 1,
	.version = 1,
	.nid = 16,
	.ptes = LIMIT_PTLTES,
	.txqs = LIMIT_TXQS,
	.tgqs = LIMIT_TGQS,
	.eqs = LIMIT_EQS,
	.cts = LIMIT_COUNTERS,
	.les = 15725,
	.tles = LIMIT_TLES,
	.lacs = LIMIT_LACS,
	.pids = LIMIT_PID_ANY,
	.lcids = LIMIT_LCIDS,
	.get = 1,
	.timeout = 10000,
	.member = -1,
	.enable = 1,
	.slots = LIMIT_CMDQ_COUNT,
	.eq_bytes = LONG_MAX,
	.signals = 1,
};
struct counts counts;

#define NAME(field) \
	{ \
#field, offsetof(struct settings, field) \
	}
static const struct {
	const char *name;
	size_t at;
} names[] = {
	NAME(mode),   NAME(devices),  NAME(version),  NAME(nid),       NAME(ptes),     NAME(txqs),	NAME(tgqs),
	NAME(eqs),    NAME(cts),      NAME(les),      NAME(tles),      NAME(lacs),     NAME(pids),	NAME(lcids),
	NAME(get),    NAME(fault_at), NAME(fault_rc), NAME(map_fails), NAME(map_most), NAME(shuffle),	NAME(lose),
	NAME(late),   NAME(timeout),  NAME(fabric),   NAME(record),    NAME(call_at),  NAME(call_rc),	NAME(open_rc),
	NAME(member), NAME(enable),   NAME(slots),    NAME(eq_bytes),  NAME(signals),  NAME(exclusive),
};
#define COUNTER(field) \
	{ \
#field, offsetof(struct counts, field) \
	}
static const struct {
	const char *name;
	size_t at;
} counter_names[] = {
	COUNTER(commands),   COUNTER(bytes),	 COUNTER(doorbells),  COUNTER(cstates),
	COUNTER(pointers),   COUNTER(events),	 COUNTER(dropped),    COUNTER(packets),
	COUNTER(restricted), COUNTER(unclassed), COUNTER(flushes),    COUNTER(success),
	COUNTER(plec),	     COUNTER(rings),	 COUNTER(ring_bytes), COUNTER(queue_bytes),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How many threads want the lock. Written by each around its taking it, read by the one that polls,
 * relaxed: it only has to let others go first. */
static unsigned int wanted;

void nic_lock(void)
{
	__atomic_add_fetch(&wanted, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	__atomic_sub_fetch(&wanted, 1, __ATOMIC_RELAXED);
}

/* nic_lock_last takes the lock when nothing else wants it. */
void nic_lock_last(void)
{
	while (__atomic_load_n(&wanted, __ATOMIC_RELAXED))
		sched_yield();
	pthread_mutex_lock(&lock);
}

void nic_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	wanted = 0;
	station_forked();
}

static bool assign(const char *name, size_t length, long value)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i].name) == length && !memcmp(names[i].name, name, length)) {
			*(long *)((char *)&set + names[i].at) = value;
			return true;
		}
	return false;
}

/* A mode has a name. */
static bool assign_text(const char *name, size_t length, const char *value)
{
	static const char *const modes[] = { "direct", "threaded", "stepped" };
	char *end;
	long n;

	if (length == 4 && !memcmp(name, "mode", 4))
		for (int i = 0; i < 3; i++)
			if (!strncmp(value, modes[i], strlen(modes[i])))
				return assign(name, length, i);
	n = strtol(value, &end, 0);
	return end != value && (*end == 0 || *end == ' ') && assign(name, length, n);
}

/* config_read takes the environment's settings, once. */
void config_read(void)
{
	const char *text = getenv("CASSINI"), *equal;
	static bool done;

	if (done)
		return;
	done = true;
	pthread_atfork(nic_lock, nic_unlock, forked);
	while (text && *text) {
		text += strspn(text, " ");
		if (!*text)
			break;
		equal = text + strcspn(text, " =");
		if (*equal != '=' || !assign_text(text, (size_t)(equal - text), equal + 1)) {
			fprintf(stderr, "cassini: CASSINI: no such setting: %s\n", text);
			abort();
		}
		text = equal + strcspn(equal, " ");
	}
	if (set.fabric < 0) /* this process is alone on its fabric */
		set.fabric = getpid();
}

API bool cassini_set(const char *name, long value)
{
	bool known;

	nic_lock();
	known = assign(name, strlen(name), value);
	nic_unlock();
	return known;
}

API uint64_t cassini_count(const char *name)
{
	uint64_t value = 0;

	nic_lock();
	for (size_t i = 0; i < sizeof counter_names / sizeof *counter_names; i++)
		if (!strcmp(counter_names[i].name, name))
			value = *(uint64_t *)((char *)&counts + counter_names[i].at);
	nic_unlock();
	return value;
}

int fault_of_command(void)
{
	return set.fault_at && (long)counts.commands == set.fault_at ? (int)set.fault_rc : 0;
}

int fault_of_call(void)
{
	int rc = 0;

	nic_lock();
	config_read();
	if (set.call_at > 0 && --set.call_at == 0)
		rc = (int)-set.call_rc;
	nic_unlock();
	return rc;
}
