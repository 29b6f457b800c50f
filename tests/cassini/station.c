/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What receives: a thread that sleeps until packets come, or, where the NIC moves in steps, the step.
 * Where the NIC polls, another thread does that.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fabric.h"

char station_name[NAME];
static int poller = -1, waker = -1, own = -1;
static bool polling;

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* station_watch says what a socket is watched for; 0: nothing. */
void station_watch(int fd, unsigned int events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (!events)
		epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e))
		epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e);
}

/* station_wake makes the thread read what is due from now on. */
bool station_wake(void)
{
	return poller >= 0 && write(waker, &(uint64_t){ 1 }, 8) == 8;
}

/* receive takes the packets that wait at a socket. */
static void receive(int fd)
{
	static uint8_t room[sizeof(struct packet) + CHUNK] __attribute__((aligned(16)));

	for (;;) {
		ssize_t n = recv(fd, room, sizeof room, MSG_DONTWAIT);
		const struct packet *p = (const struct packet *)room;

		if (n < 0)
			return;
		if ((size_t)n >= sizeof *p && (size_t)n == sizeof *p + p->n && p->n <= CHUNK && !p->from[NAME - 1])
			packet_receive(p, room + sizeof *p);
	}
}

/* station_poll handles what is there, after at most so many ms; without the lock. */
static void station_poll(int ms)
{
	struct epoll_event events[16];
	int n = epoll_wait(poller, events, 16, ms);
	uint64_t ignored;

	nic_lock();
	/* Before anything that may wake this thread again. */
	for (int i = 0; i < n; i++)
		if (events[i].data.fd == waker)
			(void)!read(waker, &ignored, 8);
	late_answers(NULL);
	events_release();
	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;
		struct link_to *l = link_by_fd(fd);

		if (fd == waker)
			continue;
		if (l)
			link_flush(l);
		else
			receive(fd);
	}
	if (n == 0) {
		links_release();
		links_check();
		trains_check();
	}
	nic_unlock();
}

void station_step(void)
{
	if (poller >= 0)
		station_poll(0);
}

static void *receiver(void *none)
{
	/* Programs that poll take every processor; what may, goes before them. */
	setpriority(PRIO_PROCESS, 0, -10);
	for (;;) {
		int ms;

		nic_lock();
		ms = links_late() ? 2 : links_busy() || trains_busy() ? 100 : -1;
		nic_unlock();
		station_poll(ms);
	}
	return none;
}

static void *polls(void *none)
{
	for (unsigned int idle = 0;; idle++) {
		uint64_t before = counts.commands;

		nic_lock_last();
		engine_poll();
		nic_unlock();
		if (counts.commands != before)
			idle = 0;
		if (idle > 1000)
			usleep(50);
		else
			sched_yield();
	}
	return none;
}

/* thread starts one that takes no signals, but for that which notifies the NIC that memory is missing. */
static bool thread(void *(*body)(void *))
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;
	int rc;

	sigfillset(&all);
	if (set.signals)
		sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&t, &attr, body, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !rc;
}

/* polling_start starts the thread that reads queues, where that is the mode. */
void polling_start(void)
{
	if (set.mode == MODE_THREADED && !polling)
		polling = thread(polls);
}

/* station_start opens what this process receives with. */
bool station_start(void)
{
	static unsigned int number;

	if (poller >= 0)
		return true;
	snprintf(station_name, sizeof station_name, "cassini.%ld.answers.%d.%u", set.fabric, (int)getpid(), number++);
	own = socket_named(station_name);
	waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (own < 0 || waker < 0 || poller < 0)
		return false;
	station_watch(own, EPOLLIN);
	station_watch(waker, EPOLLIN);
	return set.mode == MODE_STEPPED || thread(receiver);
}

/* station_forked leaves to the parent what is its own. */
void station_forked(void)
{
	poller = -1;
	polling = false;
}
