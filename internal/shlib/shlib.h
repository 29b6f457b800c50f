/* SPDX-License-Identifier: BSD-2-Clause */
/* shlib.h: what a shared library is to have that is loaded at run time. */
#ifndef WEFT_SHLIB_H
#define WEFT_SHLIB_H

/* The version is that of the ABI for which *to is declared: dlsym would take whatever a later library thinks is newest.
 * An optional function may be missing in an older library: *to is NULL then. */
struct weft_shlib_symbol {
	const char *name, *version;
	void **to;
	int optional;
};

#endif
