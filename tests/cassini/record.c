/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Commands and events, kept for whatever compares them with another's.
 */
#include <stdlib.h>
#include "cassini.h"
#include "nic.h"

struct kept {
	struct kept *next;
	int kind;
	unsigned int number;
	size_t n;
	uint8_t bytes[];
};

static struct kept *first, **last = &first;

void record(int kind, unsigned int number, const void *bytes, size_t n)
{
	struct kept *k;

	if (!set.record)
		return;
	k = malloc(sizeof *k + n);
	if (!k)
		abort();
	*k = (struct kept){ .kind = kind, .number = number, .n = n };
	memcpy(k->bytes, bytes, n);
	*last = k;
	last = &k->next;
}

API void cassini_record(void (*each)(void *context, int kind, unsigned int number, const void *bytes, size_t n),
			void *context)
{
	struct kept *k, *next;

	nic_lock();
	k = first;
	first = NULL;
	last = &first;
	nic_unlock();
	for (; k; k = next) {
		next = k->next;
		each(context, k->kind, k->number, k->bytes, k->n);
		free(k);
	}
}
