// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_param_define, fi_param_get, fi_getparams, fi_freeparams: variables of the
 * environment, declared by a provider or (with none) by the library. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "direct.h"

struct variable {
	char *name; /* FI_<PROVIDER>_<NAME> */
	char *help;
	enum fi_param_type type;
};

/* Declared variables, in the order of their declaration. The lock guards both
 * words; variables are declared and read when objects are opened. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable *variables;
static int count;

/* variable_name makes the name in the environment; NULL when memory is short. */
static char *variable_name(const struct fi_provider *provider, const char *name)
{
	char *full = NULL;
	int n = provider ? asprintf(&full, "FI_%s_%s", provider->name, name)
			 : asprintf(&full, "FI_%s", name);
	if (n < 0)
		return NULL;
	for (char *c = full; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return full;
}

/* find returns the declaration of a variable; the caller holds the lock. */
static struct variable *find(const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(variables[i].name, name))
			return &variables[i];
	return NULL;
}

/* declare takes over v's strings; the caller holds the lock. A variable that
 * is declared again gets the later type and help. */
static int declare(struct variable *v)
{
	struct variable *old = find(v->name);

	if (old) {
		free(old->name);
		free(old->help);
		*old = *v;
		return 0;
	}
	struct variable *more = realloc(variables, (size_t)(count + 1) * sizeof(*more));
	if (!more)
		return -FI_ENOMEM;
	variables = more;
	variables[count++] = *v;
	return 0;
}

static char *help_text(const struct fi_provider *provider, const char *format, va_list args)
{
	char *help = NULL, *text = NULL;

	if (vasprintf(&help, format, args) < 0)
		return NULL;
	if (asprintf(&text, "%s%s%s", provider ? provider->name : "", provider ? ": " : "", help) < 0)
		text = NULL;
	free(help);
	return text;
}

WEFT_EXPORT int fi_param_define(const struct fi_provider *provider, const char *param_name,
		    enum fi_param_type type, const char *help_string_fmt, ...)
{
	if (!param_name || !*param_name || !help_string_fmt || !*help_string_fmt)
		return -FI_EINVAL;

	struct variable v = {.name = variable_name(provider, param_name), .type = type};
	va_list args;
	va_start(args, help_string_fmt);
	v.help = help_text(provider, help_string_fmt, args);
	va_end(args);

	int ret = -FI_ENOMEM;
	if (v.name && v.help) {
		pthread_mutex_lock(&lock);
		ret = declare(&v);
		pthread_mutex_unlock(&lock);
	}
	if (ret) {
		free(v.name);
		free(v.help);
	}
	return ret;
}

/* suffix_shift returns the power of two that a size's suffix stands for, -1
 * for no suffix that is known. */
static int suffix_shift(const char *s)
{
	if (!*s)
		return 0;
	if (s[1])
		return -1;
	switch (tolower((unsigned char)*s)) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	}
	return -1;
}

static int get_size(const char *text, size_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -FI_EINVAL;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 0);
	int shift = suffix_shift(end);
	if (errno || shift < 0 || n > SIZE_MAX >> shift)
		return -FI_EINVAL;
	*value = (size_t)n << shift;
	return 0;
}

static int get_int(const char *text, int *value)
{
	char *end;

	errno = 0;
	long n = strtol(text, &end, 0);
	if (errno || end == text || *end || n > INT_MAX || n < INT_MIN)
		return -FI_EINVAL;
	*value = (int)n;
	return 0;
}

static int get_bool(const char *text, int *value)
{
	bool yes = weft_direct_listed("1,yes,on,true", ",", text);

	if (!yes && !weft_direct_listed("0,no,off,false", ",", text))
		return -FI_EINVAL;
	*value = yes;
	return 0;
}

static int get_value(const char *text, enum fi_param_type type, void *value)
{
	switch (type) {
	case FI_PARAM_STRING:
		*(const char **)value = text;
		return 0;
	case FI_PARAM_INT:
		return get_int(text, value);
	case FI_PARAM_BOOL:
		return get_bool(text, value);
	case FI_PARAM_SIZE_T:
		return get_size(text, value);
	}
	return -FI_EINVAL;
}

/* A string that is returned is the environment's own and lives until that
 * variable is set again. */
WEFT_EXPORT int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	if (!param_name || !*param_name || !value)
		return -FI_EINVAL;
	char *name = variable_name(provider, param_name);
	if (!name)
		return -FI_ENOMEM;

	pthread_mutex_lock(&lock);
	struct variable *v = find(name);
	bool declared = v != NULL;
	enum fi_param_type type = v ? v->type : FI_PARAM_STRING;
	pthread_mutex_unlock(&lock);

	const char *text = getenv(name);
	free(name);
	if (!declared)
		return -FI_ENOENT;
	return text ? get_value(text, type, value) : -FI_ENODATA;
}

/* show fills one element of the list that fi_getparams returns. */
static bool show(struct fi_param *p, const struct variable *v)
{
	const char *value = getenv(v->name);

	p->name = strdup(v->name);
	p->help_string = strdup(v->help);
	p->type = v->type;
	p->value = value ? strdup(value) : NULL;
	return p->name && p->help_string && (!value || p->value);
}

/* define_once declares the library's own variables and, through the provider's
 * first call, the provider's. */
static void define_once(void)
{
	struct fi_info *info;

	weft_direct_define_logging();
	if (!weft_direct_fi_getinfo(WEFT_API, NULL, NULL, 0, NULL, &info))
		weft_direct_freeinfo(info);
}

WEFT_EXPORT int fi_getparams(struct fi_param **params, int *number)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!params || !number)
		return -FI_EINVAL;
	pthread_once(&once, define_once);

	pthread_mutex_lock(&lock);
	struct fi_param *list = calloc((size_t)count + 1, sizeof(*list)); /* ends with a NULL name */
	bool complete = list != NULL;
	for (int i = 0; complete && i < count; i++)
		complete = show(&list[i], &variables[i]);
	int n = count;
	pthread_mutex_unlock(&lock);

	if (!complete) {
		fi_freeparams(list);
		return -FI_ENOMEM;
	}
	*params = list;
	*number = n;
	return 0;
}

WEFT_EXPORT void fi_freeparams(struct fi_param *params)
{
	for (struct fi_param *p = params; p && p->name; p++) {
		free((char *)p->name);
		free((char *)p->help_string);
		free((char *)p->value);
	}
	free(params);
}
