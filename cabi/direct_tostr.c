// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_tostr: values, flags, and attributes with one member per line, by the tables of direct_tostr_gen.h. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>

#include "direct.h"

void weft_text_add(struct weft_text *t, const char *fmt, ...)
{
	va_list args;

	if (t->used + 1 >= t->size)
		return;
	va_start(args, fmt);
	int n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
	if (n < 0)
		t->buf[t->used] = 0;
	else if ((size_t)n >= t->size - t->used)
		t->used = t->size - 1;
	else
		t->used += (size_t)n;
}

/* ---- the tables ---- */

enum { RESOURCE_MGMT = -1 }; /* in the place of an enum fi_type, which this has not */

struct enum_names {
	int type; /* enum fi_type */
	const char *const *names;
	unsigned int count;
	bool specific; /* values with FI_PROV_SPECIFIC are a provider's own */
};

struct flag {
	uint64_t bit;
	const char *name;
};

struct flag_names {
	int type;
	const struct flag *flags;
	unsigned int count;
	unsigned int bytes;
};

enum how { NUMBER, CONTEXTS, HEX, STRING, POINTER, VERSION, ORDER, ENUM, FLAGS, ATTR, ADDRESS, FID };

struct member {
	const char *name;
	size_t at;
	size_t size;
	enum how how;
	int type;      /* of ENUM, FLAGS, ATTR */
	int digits;    /* of HEX */
	size_t length; /* of ADDRESS: where its length is */
};

#define MEMBER(of, field) .name = #field, .at = offsetof(of, field), .size = sizeof(((of *)0)->field)

struct attr {
	int type;
	const char *name;
	const struct member *members;
	unsigned int count;
};

#include "direct_tostr_gen.h"

/* ---- values and flags ---- */

static bool add_enum(struct weft_text *t, const void *data, int type)
{
	for (const struct enum_names *e = enums; e < enums + count_of(enums); e++) {
		if (e->type != type)
			continue;
		uint32_t value = *(const uint32_t *)data;
		if (e->specific && value & FI_PROV_SPECIFIC)
			weft_text_add(t, "Provider specific");
		else
			weft_text_add(t, "%s", value < e->count && e->names[value] ? e->names[value] : "Unknown");
		return true;
	}
	return false;
}

/* load reads an unsigned number of 4 or 8 bytes. */
static uint64_t load(const void *at, size_t size)
{
	return size == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

/* add_flags adds the names of the bits that are set, in the table's order. A size of 0 is the type's. */
static bool add_flags(struct weft_text *t, const void *data, size_t size, int type)
{
	const char *separator = "";

	for (const struct flag_names *f = flags; f < flags + count_of(flags); f++) {
		if (f->type != type)
			continue;
		for (unsigned int i = 0; i < f->count; i++) {
			if (!(load(data, size ? size : f->bytes) & f->flags[i].bit))
				continue;
			weft_text_add(t, "%s%s", separator, f->flags[i].name);
			separator = ", ";
		}
		return true;
	}
	return false;
}

static void add_order(struct weft_text *t, uint64_t order)
{
	uint64_t strict = order & FI_ORDER_STRICT;

	if (!strict)
		weft_text_add(t, "FI_ORDER_NONE");
	else if (strict == FI_ORDER_STRICT)
		weft_text_add(t, "FI_ORDER_STRICT");
	else
		add_flags(t, &strict, sizeof(strict), FI_TYPE_MSG_ORDER);
	if (order & FI_ORDER_DATA)
		weft_text_add(t, ", FI_ORDER_DATA");
}

/* ---- attributes ---- */

static const char *const steps[] = { "", "    ", "        " };

static void add_pointer(struct weft_text *t, const char *indent, const char *name, const void *value)
{
	if (value)
		weft_text_add(t, "%s%s: %p\n", indent, name, value);
	else
		weft_text_add(t, "%s%s: (nil)\n", indent, name);
}

/* add_fid lets the object describe itself when it can. */
static void add_fid(struct weft_text *t, const struct fid *fid)
{
	if (fid->ops && FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
		fid->ops->tostr(fid, t->buf + t->used, t->size - t->used);
		t->buf[t->size - 1] = 0;
		t->used += strlen(t->buf + t->used);
	} else {
		add_pointer(t, "", "fid", fid);
	}
}

static bool add_attr(struct weft_text *t, int depth, const void *data, int type);

static void add_address(struct weft_text *t, const struct fi_info *info, const void *addr, size_t len)
{
	if (addr)
		weft_tostr_address(t, info->addr_format, addr, len);
	else
		weft_text_add(t, "(null)");
}

/* add_value adds what stands behind the name of a member that has one line. */
static void add_value(struct weft_text *t, const struct member *m, const char *of, const void *at)
{
	uint64_t value = load(at, m->size);
	const void *pointer = (const void *)(uintptr_t)value;

	switch (m->how) {
	case CONTEXTS:
		if (value == FI_SHARED_CONTEXT) {
			weft_text_add(t, "FI_SHARED_CONTEXT");
			break;
		} /* fallthrough */
	case NUMBER:
		weft_text_add(t, "%" PRIu64, value);
		break;
	case HEX:
		weft_text_add(t, "0x%0*" PRIx64, m->digits, value);
		break;
	case STRING:
		weft_text_add(t, "%s", pointer ? (const char *)pointer : "(null)");
		break;
	case VERSION:
		weft_text_add(t, "%u.%u", FI_MAJOR((uint32_t)value), FI_MINOR((uint32_t)value));
		break;
	case ORDER:
		weft_text_add(t, "[ ");
		add_order(t, value);
		weft_text_add(t, " ]");
		break;
	case ENUM:
		add_enum(t, at, m->type);
		break;
	case FLAGS:
		weft_text_add(t, "[ ");
		add_flags(t, at, m->size, m->type);
		weft_text_add(t, " ]");
		break;
	default:
		add_address(t, (const void *)of, pointer, load(of + m->length, sizeof(size_t)));
	}
}

static void add_member(struct weft_text *t, int depth, const struct member *m, const char *of)
{
	const void *at = of + m->at;
	const void *pointer = (const void *)(uintptr_t)load(at, m->size);

	if (m->how == ATTR) {
		add_attr(t, depth, pointer, m->type);
	} else if (m->how == FID && pointer) {
		add_fid(t, pointer);
	} else if (m->how == FID || m->how == POINTER) {
		add_pointer(t, steps[depth], m->name, pointer);
	} else {
		weft_text_add(t, "%s%s: ", steps[depth], m->name);
		add_value(t, m, of, at);
		weft_text_add(t, "\n");
	}
}

static bool add_attr(struct weft_text *t, int depth, const void *data, int type)
{
	for (const struct attr *a = attrs; a < attrs + count_of(attrs); a++) {
		if (a->type != type)
			continue;
		weft_text_add(t, data ? "%s%s:\n" : "%s%s: (null)\n", steps[depth], a->name);
		for (unsigned int i = 0; data && i < a->count; i++)
			add_member(t, depth + 1, &a->members[i], data);
		return true;
	}
	return false;
}

WEFT_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	if (!buf || !len)
		return NULL;
	struct weft_text t = {.buf = buf, .size = len};
	buf[0] = 0;
	if (datatype == FI_TYPE_VERSION)
		weft_text_add(&t, "%u.%u.0", FI_MAJOR(WEFT_API), FI_MINOR(WEFT_API));
	else if (!data)
		weft_text_add(&t, "(null)");
	else if ((int)datatype < 0) /* as the enums have that have no type */
		weft_text_add(&t, "Unknown type");
	else if (datatype == FI_TYPE_FID)
		add_fid(&t, data);
	else if (!add_flags(&t, data, 0, datatype) && !add_attr(&t, 0, data, datatype) &&
		 !add_enum(&t, data, datatype))
		weft_text_add(&t, "Unknown type");
	return buf;
}

WEFT_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	static char buf[8192]; /* not for several threads, as fi_tostr(3) says */

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
