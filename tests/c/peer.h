/* SPDX-License-Identifier: BSD-2-Clause */
/* One side of a connection (FI_EP_MSG), for conn*.c. */
#ifndef WEFT_TESTS_PEER_H
#define WEFT_TESTS_PEER_H

#include "common.h"

/* What the two ends of connections have in common in a process. */
struct fabric {
	struct fi_info *info; /* FI_EP_MSG on 127.0.0.1 */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
};

/* An active endpoint with a queue of its own. */
struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
};

/* An event with its data. */
struct event {
	uint32_t number;
	struct fi_eq_cm_entry cm;
	uint8_t data[512]; /* behind cm, as fi_eq(3) has it */
	size_t len;	   /* of data */
};

/* Opens fabric, domain and an event queue; caps 0 means FI_MSG | FI_TAGGED. */
void fabric_open(struct fabric *f, uint64_t caps);
void fabric_close(struct fabric *f);

/* A passive endpoint that listens at any port, and its address. */
struct fid_pep *pep_open(struct fabric *f, void *addr, size_t *len);

/* An endpoint that is bound and not enabled; info NULL means the fabric's. */
void end_open(struct fabric *f, struct end *e, struct fi_info *info);
void end_close(struct end *e);

/* The next event, which must be of the number. Waits up to 20 s. */
void event_wait(struct fabric *f, struct event *ev, uint32_t number);

/* The next error, which must have the errno. Its data is in ev. */
void event_error(struct fabric *f, struct event *ev, int err);

/* True if no event comes within some milliseconds. */
bool event_none(struct fabric *f, int ms);

/* Connects a to the passive endpoint at addr, and b to a, all in this process. */
void join(struct fabric *f, struct end *a, struct end *b, const void *addr);

/* The next completion of an endpoint: 0, or its positive error code. Waits up to 20 s. */
int end_wait(struct end *e, struct fi_cq_tagged_entry *c);

/* Sends text from a to b and checks that it comes. */
void talk(struct end *a, struct end *b, const char *text);

#endif
