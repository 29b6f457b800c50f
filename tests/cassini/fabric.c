/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sending to other processes.
 */
#include "fabric.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct link links = { &links, &links };
static uint32_t next_id;

/* address makes a name of the abstract namespace; its length for bind and connect. */
static socklen_t address(const char *name, struct sockaddr_un *a)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static void domain_name(char name[NAME], uint32_t nid, unsigned int vni, unsigned int pid)
{
	snprintf(name, NAME, "cassini.%ld.%u.%u.%u", set.fabric, nid, vni, pid);
}

/* socket_named returns a socket with a name, or -1 where another has it. */
int socket_named(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t n = address(name, &a);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool fabric_open(struct domain *d)
{
	char name[NAME];

	if (!station_start())
		return false;
	domain_name(name, d->lni->nic->info.nid, d->pub.vni, d->pub.pid);
	d->fd = socket_named(name);
	if (d->fd < 0)
		return false;
	station_watch(d->fd, EPOLLIN);
	return true;
}

void fabric_close(struct domain *d)
{
	close(d->fd);
}

/* connected returns a socket that sends to a name, or -1 where nothing has it. */
static int connected(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), room = 1 << 20;
	struct sockaddr_un a;
	socklen_t n = address(name, &a);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	if (connect(fd, (struct sockaddr *)&a, n)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* link_of returns the way to a socket; NULL where there is none of that name. */
struct link_to *link_of(const char *name)
{
	struct link_to *l;

	for (struct link *i = links.next; i != &links; i = i->next)
		if (!strcmp(CONTAINER(i, struct link_to, link)->name, name))
			return CONTAINER(i, struct link_to, link);
	l = calloc(1, sizeof *l);
	if (!l)
		abort();
	strcpy(l->name, name);
	l->fd = connected(name);
	if (l->fd < 0) {
		free(l);
		return NULL;
	}
	list_init(&l->parcels);
	list_init(&l->operations);
	list_append(&links, &l->link);
	return l;
}

struct link_to *link_by_fd(int fd)
{
	for (struct link *i = links.next; i != &links; i = i->next)
		if (CONTAINER(i, struct link_to, link)->fd == fd)
			return CONTAINER(i, struct link_to, link);
	return NULL;
}

/* link_failed gives a way up whose end is gone, and all that went there. */
void link_failed(struct link_to *l)
{
	struct answer a = { .rc = RC_UNDELIVERABLE };

	list_remove(&l->link);
	close(l->fd);
	free(l->late);
	while (!list_empty(&l->parcels)) {
		struct parcel *p = CONTAINER(l->parcels.next, struct parcel, link);

		list_remove(&p->link);
		free(p);
	}
	while (!list_empty(&l->operations)) {
		struct operation *op = CONTAINER(l->operations.next, struct operation, link);

		list_remove(&op->link);
		operation_complete(op, &a);
	}
	free(l);
}

/* parcel_of keeps a packet. */
static struct parcel *parcel_of(const struct packet *p, const void *data, uint32_t n)
{
	struct parcel *c = malloc(sizeof *c + sizeof *p + n);

	if (!c)
		abort();
	c->n = sizeof *p + n;
	memcpy(c->bytes, p, sizeof *p);
	if (n && !door_copy(c->bytes + sizeof *p, data, n))
		memset(c->bytes + sizeof *p, 0, n);
	return c;
}

/* watch has what waits sent when there is room. */
static void watch(struct link_to *l)
{
	if (!l->watched) {
		station_watch(l->fd, EPOLLOUT);
		l->watched = true;
	}
}

/* release puts an answer that was late behind what overtook it. */
static void release(struct link_to *l)
{
	if (!l->late)
		return;
	list_append(&l->parcels, &l->late->link);
	l->late = NULL;
	watch(l);
}

/* link_send sends a packet, or keeps it. It is false when the other end is gone. */
bool link_send(struct link_to *l, struct packet *p, const void *data, uint32_t n)
{
	struct iovec v[2] = { { p, sizeof *p }, { (void *)data, n } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = n ? 2 : 1 };

	strcpy(p->from, station_name);
	counts.packets++;
	if (p->kind != PACKET_PING && set.lose && !(counts.packets % (uint64_t)set.lose))
		return true;
	if (p->kind == PACKET_ANSWER && p->n == p->total && set.late && !l->late &&
	    !(counts.packets % (uint64_t)set.late)) {
		l->late = parcel_of(p, data, n);
		station_wake();
		return true;
	}
	if (list_empty(&l->parcels) || p->kind == PACKET_PING) {
		if (sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
			release(l);
			return true;
		}
		if (errno == ECONNREFUSED || errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE)
			return false;
	}
	if (p->kind != PACKET_PING) {
		list_append(&l->parcels, &parcel_of(p, data, n)->link);
		watch(l);
	}
	return true;
}

bool links_late(void)
{
	for (struct link *i = links.next; i != &links; i = i->next)
		if (CONTAINER(i, struct link_to, link)->late)
			return true;
	return false;
}

void links_release(void)
{
	for (struct link *i = links.next; i != &links; i = i->next)
		release(CONTAINER(i, struct link_to, link));
}

/* link_flush sends what waits, as far as there is room. */
void link_flush(struct link_to *l)
{
	while (!list_empty(&l->parcels)) {
		struct parcel *p = CONTAINER(l->parcels.next, struct parcel, link);

		if (send(l->fd, p->bytes, p->n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == ECONNREFUSED || errno == ECONNRESET || errno == ENOTCONN)
				link_failed(l);
			return;
		}
		list_remove(&p->link);
		free(p);
	}
	if (l->watched)
		station_watch(l->fd, 0);
	l->watched = false;
}

bool links_busy(void)
{
	for (struct link *i = links.next; i != &links; i = i->next)
		if (!list_empty(&CONTAINER(i, struct link_to, link)->operations))
			return true;
	return false;
}

/* links_check asks whether those are alive from which an answer is due, and gives up what is too old. */
void links_check(void)
{
	struct packet ping = { .kind = PACKET_PING };
	struct answer late = { .rc = RC_UNDELIVERABLE };
	struct link *next;
	long now = now_ms();

	for (struct link *i = links.next; i != &links; i = next) {
		struct link_to *l = CONTAINER(i, struct link_to, link);

		next = i->next;
		if (list_empty(&l->operations))
			continue;
		if (!link_send(l, &ping, NULL, 0)) {
			link_failed(l);
			continue;
		}
		while (!list_empty(&l->operations)) {
			struct operation *op = CONTAINER(l->operations.next, struct operation, link);

			if (now - op->sent < set.timeout)
				break;
			list_remove(&op->link);
			operation_complete(op, &late);
		}
	}
}

/* start sends the first packet of an operation; the way may have to be opened again. */
static struct link_to *start(const char *name, struct packet *p, const uint8_t *data, uint32_t n)
{
	for (int tries = 0; tries < 2; tries++) {
		struct link_to *l = link_of(name);

		if (!l)
			return NULL;
		if (link_send(l, p, data, n))
			return l;
		link_failed(l);
	}
	return NULL;
}

bool fabric_send(struct operation *op, const uint8_t *data, uint32_t n)
{
	struct packet p = { .kind = PACKET_REQUEST, .total = n, .rq = op->rq };
	char name[NAME];
	uint32_t first = n < CHUNK ? n : CHUNK;

	domain_name(name, op->rq.dfa >> 12, op->rq.vni, op->rq.dfa & ((1u << PID_BITS) - 1));
	op->id = p.id = ++next_id;
	p.n = first;
	op->peer = start(name, &p, data, first);
	if (!op->peer)
		return false;
	op->sent = now_ms();
	list_append(&op->peer->operations, &op->link);
	station_wake();
	for (uint32_t at = first; at < n; at += p.n) {
		struct link_to *l = op->peer;

		p.kind = PACKET_DATA;
		p.offset = at;
		p.n = n - at < CHUNK ? n - at : CHUNK;
		if (!link_send(l, &p, data + at, p.n)) {
			link_failed(l);
			break;
		}
	}
	return true;
}

/* operation_sent finds an operation that waits for its answer. */
struct operation *operation_sent(uint32_t id)
{
	for (struct link *i = links.next; i != &links; i = i->next) {
		struct link_to *l = CONTAINER(i, struct link_to, link);

		for (struct link *j = l->operations.next; j != &l->operations; j = j->next)
			if (CONTAINER(j, struct operation, link)->id == id)
				return CONTAINER(j, struct operation, link);
	}
	return NULL;
}

void fabric_forget(struct lni *lni)
{
	for (struct link *i = links.next; i != &links; i = i->next) {
		struct link_to *l = CONTAINER(i, struct link_to, link);
		struct link *next;

		for (struct link *j = l->operations.next; j != &l->operations; j = next) {
			struct operation *op = CONTAINER(j, struct operation, link);

			next = j->next;
			if (op->lni == lni) {
				list_remove(j);
				operation_free(op);
			}
		}
	}
}
