/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that fault_kill and fault_restart kill, and those that do it. */
#ifndef WEFT_TESTS_VICTIM_H
#define WEFT_TESTS_VICTIM_H

#include <sys/types.h>

#include "node.h"

#define VICTIM_MAX 300000 /* bytes of the longest message */
#define VICTIM_WINDOW 16
#define VICTIM_TALKS 4 /* messages of the survivor to its other peer after each kill */

enum victim_tag { VICTIM_TO_US = 1, VICTIM_FROM_US = 2 };

/* What the victims of a test do until they are killed. */
enum victim_mode {
	VICTIM_SENDS,
	VICTIM_RECEIVES,
	VICTIM_BOTH,	       /* both at the same time; the survivor does either */
	VICTIM_OPENS,	       /* opens, sends one message, closes, opens... */
	VICTIM_FRAGMENTS = 16, /* added: no cross-memory attach */
};

/* From rank 1 or a victim to rank 0. */
struct victim_note {
	int kind; /* 'n': a victim's name; 'd': it is dead; 'e': no more victims */
	uint32_t serial;
	struct name name;
};

/* A victim, as what kills it sees it. */
struct victim_process {
	pid_t pid;
	int gate; /* what is written to it the victim reads from WEFT_TEST_GATE, and is let go by it */
};

/* Starts the victim of a serial, which is its role, and kills it. */
void victim_start(struct victim_process *v, uint32_t serial);
void victim_end(struct victim_process *v);

/* Rank 1: starts victims and kills them. */
void victim_killer(long mode);

/* A victim: returns never. */
void victim(long mode);

/* Message number of a victim, to or from it: its content, which says all this. Returns its length,
 * which depends on the number, and which victim_length is. */
size_t victim_fill(char *buf, uint32_t serial, uint64_t number);

size_t victim_length(uint32_t serial, uint64_t number);

/* Returns the number of a message. Fails the test if it is not one of this victim, whole. */
uint32_t victim_check(const char *buf, size_t len, uint32_t serial);

#endif
