// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_tostr, which tostr.go writes. A forked process, which may not call Go, gets empty texts. */

#include "direct.h"
#include "goapi.h"

WEFT_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	if (!buf || !len)
		return NULL;
	buf[0] = 0;
	if (!weft_forked())
		weftGoToStr(buf, len, (void *)data, (int)datatype);
	return buf;
}

WEFT_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	static char buf[8192]; /* not for several threads, as fi_tostr(3) says */

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
