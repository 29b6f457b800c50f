/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What "weft trace" reads in the library's file to find the functions behind
 * libfabric's calls. It is not read in the process. It stays when the library
 * is stripped, and a command of another version understands it: a newer one
 * must, as long as version is the same, and only fields at the ends are new.
 * cmd/weft/internal/trace reads it.
 */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include <stdint.h>

#define WEFT_TRACE_VERSION 1
#define WEFT_TRACE_POINTS 64

/* What a call is to a reader that follows operations. */
enum weft_trace_role {
	WEFT_TRACE_CALL,    /* nothing */
	WEFT_TRACE_POST,    /* starts an operation, named by its context */
	WEFT_TRACE_READ,    /* (cq, buf, count, ...): ends as many as it returns */
	WEFT_TRACE_READERR, /* (cq, entry, flags): ends one that failed */
};

/* Begins a function with an instruction that does nothing. The kernel runs that by itself when a probe lies on it;
 * most others it has the processor run alone, with a second trap, which takes ten times as long. */
#define WEFT_TRACE_ENTRY __attribute__((patchable_function_entry(1)))

/* The same for a function that has been declared. */
#define WEFT_TRACED(function) extern __typeof__(function) function WEFT_TRACE_ENTRY

struct weft_trace_point {
	char name[24];		/* of libfabric's call, ended by a zero */
	char operation[16];	/* that it posts, empty for others */
	const void *table;	/* of function pointers */
	uint16_t member;	/* where in the table, bytes */
	uint8_t role;		/* enum weft_trace_role */
	uint8_t context_arg;	/* of a post: the argument's number, from 1 ... */
	uint8_t context_offset; /* ... or, if that is 0, where it is in the second argument's structure */
	uint8_t no_status;	/* 1: what the call returns is a value, never an error */
	uint8_t pad[2];
};

struct weft_trace_table {
	uint32_t version;
	uint32_t count;
	uint32_t point_bytes;
	uint16_t cq_hot;     /* in the object behind struct fid_cq: the pointer to struct weft_hot_cq */
	uint16_t hot_format; /* in that: enum fi_cq_format */
	struct weft_trace_point points[WEFT_TRACE_POINTS];
};

extern const struct weft_trace_table weft_trace __attribute__((visibility("default")));

#endif
