/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The names of FI_WEFT_NAME, for both libraries that register weft as a provider.
 */
#ifndef WEFT_LOADER_NAME_H
#define WEFT_LOADER_NAME_H

#include <string.h>
#include <strings.h>

#include "core.h"
#include "table_gen.h"

/* The name that weft has under the variable's value, NULL for none: its own for what is no
 * name, which fails fi_getinfo with the rest of the configuration. */
static inline const char *weft_name_of(const char *value)
{
	for (size_t i = 0; value && i < sizeof(weft_aliases) / sizeof(weft_aliases[0]); i++)
		if (!strcasecmp(weft_aliases[i].name, value))
			return weft_aliases[i].name;
	return WEFT_NAME;
}

/* The uppermost layer of a name, which is what libfabric looks for. */
static inline const char *weft_top_of(const char *name)
{
	const char *last = strrchr(name, ';');

	return last ? last + 1 : name;
}

#endif
