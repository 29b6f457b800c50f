/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Variables of the environment, as fi_provider(3) describes them.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "check.h"

static struct fi_provider zed = { .name = "zed" };

static int get_int(const char *text)
{
	int value = -77;

	setenv("FI_ZED_NUMBER", text, 1);
	int ret = fi_param_get_int(&zed, "number", &value);
	return ret ? ret : value;
}

static long long get_size(const char *text)
{
	size_t value = 1;

	setenv("FI_ZED_SIZE", text, 1);
	int ret = fi_param_get_size_t(&zed, "size", &value);
	CHECK(!ret || value == 1, "%s changes the value", text);
	return ret ? ret : (long long)value;
}

static int get_bool(const char *text)
{
	int value = -77;

	setenv("FI_ZED_YES", text, 1);
	int ret = fi_param_get_bool(&zed, "yes", &value);
	return ret ? ret : value;
}

static void test_values(void)
{
	static const char *const bad[] = { "", "x", "7x", "99999999999999999999", "-" };

	CHECK(get_int("5") == 5 && get_int("-5") == -5 && get_int("0x10") == 16, "numbers");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK(get_int(bad[i]) == -FI_EINVAL, "int '%s'", bad[i]);
		CHECK(get_size(bad[i]) == -FI_EINVAL, "size '%s'", bad[i]);
		CHECK(get_bool(bad[i]) == -FI_EINVAL, "bool '%s'", bad[i]);
	}
	CHECK(get_int("4294967296") == -FI_EINVAL, "an int only");
	CHECK(get_size("8k") == 8192 && get_size("1M") == 1 << 20 && get_size("2g") == 2ll << 30, "sizes");
	CHECK(get_size("-5") == -FI_EINVAL && get_size("1kk") == -FI_EINVAL, "no sizes");
	CHECK(get_size("17179869184g") == -FI_EINVAL, "a size that does not fit");
	CHECK(get_bool("1") == 1 && get_bool("On") == 1 && get_bool("YES") == 1 && get_bool("true") == 1, "yes");
	CHECK(get_bool("0") == 0 && get_bool("off") == 0 && get_bool("No") == 0 && get_bool("FALSE") == 0, "no");
}

static const struct fi_param *lookup(const struct fi_param *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

static void test_list(void)
{
	struct fi_param *list = NULL;
	int n = 0;

	CHECK(!fi_getparams(&list, &n) && list && !list[n].name, "a terminated list");
	const struct fi_param *p = lookup(list, "FI_ZED_WORD");
	CHECK(p && p->type == FI_PARAM_STRING && !p->value, "declared");
	if (p)
		CHECK_STRING(p->help_string, "zed: help 2");
	p = lookup(list, "FI_ZED_NUMBER");
	CHECK(p && p->type == FI_PARAM_INT && p->value && !strcmp(p->value, "3"), "value");
	CHECK(lookup(list, "FI_LOG_LEVEL") != NULL, "the library's own");
	fi_freeparams(list);
	fi_freeparams(NULL);
	CHECK(fi_getparams(NULL, &n) == -FI_EINVAL, "no list");
}

void test_param(void)
{
	int number = -77;
	char *word = NULL;

	CHECK(!fi_param_define(&zed, "number", FI_PARAM_INT, "help"), "define");
	CHECK(!fi_param_define(&zed, "size", FI_PARAM_SIZE_T, "help"), "define");
	CHECK(!fi_param_define(&zed, "yes", FI_PARAM_BOOL, "help"), "define");
	CHECK(!fi_param_define(&zed, "word", FI_PARAM_INT, "help %d", 1), "define");
	CHECK(!fi_param_define(&zed, "word", FI_PARAM_STRING, "help %d", 2), "define again");
	CHECK(fi_param_define(&zed, NULL, FI_PARAM_INT, "help") == -FI_EINVAL, "no name");
	CHECK(fi_param_define(&zed, "x", FI_PARAM_INT, NULL) == -FI_EINVAL, "no help");
	CHECK(fi_param_get_int(&zed, "number", &number) == -FI_ENODATA && number == -77, "not set");
	CHECK(fi_param_get_int(&zed, "other", &number) == -FI_ENOENT && number == -77, "not defined");
	CHECK(fi_param_get_str(&zed, "word", &word) == -FI_ENODATA && !word, "not set");
	test_values();
	setenv("FI_ZED_NUMBER", "3", 1);
	test_list();
	setenv("FI_ZED_WORD", "", 1);
	CHECK(!fi_param_get_str(&zed, "word", &word) && word && !*word, "empty");
}
