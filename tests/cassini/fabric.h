/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The fabric between processes: packets over Unix datagram sockets. A PID of a VNI on a NIC is a socket
 * whose name the kernel keeps unique and frees when its process ends, however it ends. Answers go to a
 * socket that each process has for them.
 */
#ifndef CASSINI_FABRIC_H
#define CASSINI_FABRIC_H

#include "nic.h"

enum {
	CHUNK = 32 * 1024, /* data in one packet, at most */
	NAME = 48,	   /* of a socket */
};

enum packet_kind { PACKET_REQUEST, PACKET_DATA, PACKET_ANSWER, PACKET_PING };

/* The head of a packet. Both ends are one build of the model. */
struct packet {
	uint32_t kind, id;
	uint32_t offset, n, total; /* bytes of the data, of all packets of this id */
	struct request rq;
	struct answer a;
	char from[NAME]; /* what sends, for answers */
};

/* A packet that waits for room at its receiver. */
struct parcel {
	struct link link;
	size_t n;
	uint8_t bytes[];
};

/* What this process sends to one socket goes through one of ours, in order. */
struct link_to {
	struct link link;
	char name[NAME];
	int fd;
	struct link parcels;	/* that wait */
	struct link operations; /* that were sent and have no answer yet */
	bool watched;		/* for room */
	struct parcel *late;	/* an answer that the next packet overtakes */
};

/* fabric.c */
struct link_to *link_of(const char *name);
bool link_send(struct link_to *l, struct packet *p, const void *data, uint32_t n);
void link_flush(struct link_to *l);
void link_failed(struct link_to *l);
void links_check(void);
bool links_busy(void);
/* Answers that are late on purpose: whether there are any; and sends them. */
bool links_late(void);
void links_release(void);
struct link_to *link_by_fd(int fd);
int socket_named(const char *name);
struct operation *operation_sent(uint32_t id);
long now_ms(void);

/* packet.c */
void packet_receive(const struct packet *p, const uint8_t *data);
void trains_check(void);
bool trains_busy(void);

/* station.c: what receives */
extern char station_name[NAME];
bool station_start(void);
void station_watch(int fd, unsigned int events);

#endif
