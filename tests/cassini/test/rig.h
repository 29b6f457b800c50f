/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests of the model share: a device with queues and a table entry, commands, events.
 */
#ifndef CASSINI_RIG_H
#define CASSINI_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include "../cassini.h"
#include "../nic.h"

/* A test ends its process where something is not as it must be. */
#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

enum { BUFFER = 1 << 20, VNI = 10 };

struct rig {
	struct cxil_dev *dev;
	struct cxil_lni *lni;
	struct cp *cp;
	struct cxil_domain *domain;
	struct cq *tx, *target;
	struct eq *eq; /* of both sides */
	struct md *eq_md, *md;
	struct cxil_pte *pte;
	struct cxil_pte_map *map;
	uint8_t *buffer; /* that md maps */
};

/* rig_open opens a device; the table entry is enabled and mapped at index 0. */
void rig_open(struct rig *r, struct pt_opts opts, size_t eq_bytes);
void rig_close(struct rig *r);

/* emit puts a command into a queue; ring lets the NIC see it. step: the NIC moves where it waits for that. */
void emit(struct cq *q, const void *cmd, unsigned int bytes);
void ring(struct cq *q);
void settle(void);

/* next takes the next event, into e, and returns its type; -1: there is none. await waits for one. */
int next(struct rig *r, uint8_t e[64]);
int await(struct rig *r, uint8_t e[64]);
unsigned int event_rc(const uint8_t *e);

/* Commands, emitted and rung. */
void append(struct rig *r, int list, unsigned int id, uint64_t bits, uint64_t at, uint64_t length, uint32_t flags,
	    uint32_t min_free);
void unlink_id(struct rig *r, int list, unsigned int id);
void set_state(struct rig *r, int state, uint32_t drops);
void dma(struct rig *r, int op, uint32_t nid, unsigned int pid, uint64_t bits, uint64_t from, uint32_t length,
	 uint64_t user);
enum { USE_ONCE = 1, MANAGED = 2, NO_TRUNCATE = 4, NO_LINK = 8 };

/* random numbers of a seed */
uint32_t draw(uint64_t *state);

/* The tests, each in a process of its own. */
struct test {
	const char *name;
	void (*run)(void);
};
extern const struct test engine_tests[], matching_tests[], rule_tests[], process_tests[];

#endif
