/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a test orders of the model, beside libcxi's functions. The functions have the symbol version
 * CASSINI_1.0, so that a program finds them with dlsym and runs with the real library, too.
 */
#ifndef CASSINI_H
#define CASSINI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cassini_set changes a setting of config.c by its name. It is false for an unknown name. The
 * environment's CASSINI="name=value ..." sets them before the first device is listed. */
bool cassini_set(const char *name, long value);

/* cassini_count returns how often something of struct counts happened in this process. */
uint64_t cassini_count(const char *name);

/* cassini_step lets the NIC perform at most n commands that wait in queues, where mode is stepped,
 * and returns how many there were. */
unsigned int cassini_step(unsigned int n);

/* cassini_record calls back for each command (kind 'c') and event (kind 'e') that was kept since the
 * setting record is 1, in order, and forgets them. number is that of the queue. */
void cassini_record(void (*each)(void *context, int kind, unsigned int number, const void *bytes, size_t n),
		    void *context);

#endif
