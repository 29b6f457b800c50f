/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Two processes, each with its own part of the fabric.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rig.h"

enum { LONG = 300000 };

static const struct pt_opts matching = { .is_matching = 1, .use_long_event = 1 };

/* other starts a process that opens a PID, says which, and does what body says. */
static pid_t other(void (*body)(struct rig *), unsigned int *pid)
{
	int fds[2];
	pid_t child;

	CHECK(!pipe(fds));
	child = fork();
	if (!child) {
		struct rig r;

		alarm(100);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when it is stopped, and the test fails */
		rig_open(&r, matching, 16 * PAGE);
		append(&r, LIST_PRIORITY, 1, 42, 0, 400000, NO_LINK, 0);
		CHECK(write(fds[1], &r.domain->pid, sizeof r.domain->pid) == sizeof r.domain->pid);
		body(&r);
		exit(0);
	}
	CHECK(read(fds[0], pid, sizeof *pid) == sizeof *pid);
	close(fds[0]);
	close(fds[1]);
	return child;
}

static void serve(struct rig *r)
{
	uint8_t e[64];

	CHECK(await(r, e) == EVENT_PUT && get(e, EVENT_TARGET_LONG_MLENGTH) == LONG);
	for (int i = 0; i < LONG; i++)
		CHECK(r->buffer[i] == (uint8_t)(i * 13));
	CHECK(await(r, e) == EVENT_GET && await(r, e) == EVENT_PUT);
}

/* Long and short transfers between two processes, which have different PIDs. */
static void transfers(void)
{
	struct rig r;
	unsigned int pid;
	uint8_t e[64];
	int status;
	pid_t child = other(serve, &pid);

	rig_open(&r, matching, 16 * PAGE);
	CHECK(r.domain->pid != pid);
	for (int i = 0; i < LONG; i++)
		r.buffer[i] = (uint8_t)(i * 13);
	dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, LONG, 1);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK && get(e, EVENT_INITIATOR_MLENGTH) == LONG);
	dma(&r, OP_GET, r.dev->info.nid, pid, 42, 500000, LONG, 2);
	CHECK(await(&r, e) == EVENT_REPLY && event_rc(e) == RC_OK && get(e, EVENT_INITIATOR_MLENGTH) == LONG);
	CHECK(!memcmp(r.buffer, r.buffer + 500000, LONG));
	dma(&r, OP_PUT, r.dev->info.nid, pid, 41, 0, 8, 3);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_ENTRY_NOT_FOUND);
	CHECK(waitpid(child, &status, 0) == child && !status);
	dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, 8, 4);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_PTLTE_NOT_FOUND);
	rig_close(&r);
}

static void sleeps(struct rig *r)
{
	(void)r;
	pause();
}

/* A PID is free again when its process is killed, and not before. */
static void killed(void)
{
	struct cxil_domain *d;
	unsigned int pid;
	struct rig r;
	pid_t child = other(sleeps, &pid);

	rig_open(&r, matching, 16 * PAGE);
	CHECK(cxil_alloc_domain(r.lni, VNI, pid, &d) == -17); /* EEXIST */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(!cxil_alloc_domain(r.lni, VNI, pid, &d) && !cxil_destroy_domain(d));
	rig_close(&r);
}

/* What waits for a process that stops answering and then dies learns of it. */
static void dead_peer(void)
{
	unsigned int pid;
	struct rig r;
	uint8_t e[64];
	pid_t child = other(sleeps, &pid);

	kill(child, SIGSTOP);
	CHECK(waitpid(child, NULL, WUNTRACED) == child); /* none of its threads answers any more */
	rig_open(&r, matching, 16 * PAGE);
	for (int i = 0; i < 5; i++)
		dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, LONG, 1);
	CHECK(next(&r, e) == -1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 5; i++)
		CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_UNDELIVERABLE);
	rig_close(&r);
}

/* What the fabric loses is undeliverable after a while. */
static void lost(void)
{
	unsigned int pid;
	struct rig r;
	uint8_t e[64];
	pid_t child = other(sleeps, &pid);

	set.timeout = 300;
	set.lose = 1;
	rig_open(&r, matching, 16 * PAGE);
	dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, 8, 1);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_UNDELIVERABLE);
	cassini_set("lose", 0);
	dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, 8, 1);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	rig_close(&r);
}

/* An answer that is late is overtaken by the next, and comes. */
static void late(void)
{
	unsigned int pid, overtaken = 0;
	uint64_t seen = 0;
	struct rig r;
	uint8_t e[64];
	pid_t child;

	set.late = 1; /* the other process's */
	child = other(sleeps, &pid);
	set.late = 0;
	rig_open(&r, matching, 16 * PAGE);
	for (uint64_t i = 1; i <= 200; i++)
		dma(&r, OP_PUT, r.dev->info.nid, pid, 42, 0, 8, i);
	for (int i = 0; i < 200; i++) {
		CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK);
		overtaken += get(e, EVENT_INITIATOR_USER_PTR) < seen;
		seen = get(e, EVENT_INITIATOR_USER_PTR);
	}
	CHECK(overtaken);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	rig_close(&r);
}

const struct test process_tests[] = {
	{ "transfers", transfers }, { "killed", killed }, { "dead_peer", dead_peer },
	{ "lost", lost },	    { "late", late },	  {},
};
