/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counts checks. A check that fails prints where and goes on.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern int passed, failed, skipped;

#define CHECK(condition, ...) \
	do { \
		if (condition) { \
			passed++; \
		} else { \
			failed++; \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

#define CHECK_STRING(got, want) CHECK(!strcmp(got, want), "got '%s', want '%s'", got, want)

void test_param(void);
void test_log(void);
int log_child(int setting);

#endif
