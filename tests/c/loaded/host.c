/* SPDX-License-Identifier: BSD-2-Clause */
/* host STEP...: a program that is not linked with libfabric loads plugins (plug.c) that are.
 *
 *   +N          loads plugN.so             -N  unloads it, and takes the addresses where its
 *   N:CALL[:P]  calls inspect or use in it,       libfabric was, if that has gone
 *               for provider P, weft if not given
 *   gone, kept  what must have become of the libfabric that the last - had
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLUGS 3

static void *plugs[PLUGS];
static bool gone; /* the libfabric of the last plugin unloaded */

/* The lowest and highest address of a file in this process; none: false. */
static bool range(const char *path, unsigned long *low, unsigned long *high)
{
	unsigned long from, to;
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, path) || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		if (!found || from < *low)
			*low = from;
		if (!found || to > *high)
			*high = to;
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

static int load(int n)
{
	char path[32];

	snprintf(path, sizeof(path), "./plug%d.so", n);
	plugs[n] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!plugs[n])
		printf("%s\n", dlerror());
	return !plugs[n];
}

static int unload(int n)
{
	unsigned long low = 0, high = 0, now_low, now_high;
	void *function = dlsym(plugs[n], "fi_getinfo"); /* of the libfabric that it is linked with */
	Dl_info where;
	char path[256];

	if (!function || !dladdr(function, &where))
		return 1;
	snprintf(path, sizeof(path), "%s", strrchr(where.dli_fname, '/'));
	if (!range(path, &low, &high))
		return 1;
	dlclose(plugs[n]);
	gone = !range(path, &now_low, &now_high);
	if (gone) /* any pointer that is left leads nowhere */
		mmap((void *)low, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return 0;
}

/* N:CALL[:P] */
static int call(char *step)
{
	void *plug = plugs[step[0] - '0'];
	char *name = step + 2, *provider = strchr(name, ':');
	int (*function)(const char *);

	if (provider)
		*provider++ = 0;
	function = plug ? (int (*)(const char *))dlsym(plug, name) : NULL;
	return !function || function(provider ? provider : "weft");
}

static int take(char *step)
{
	if (step[0] == '+')
		return load(step[1] - '0');
	if (step[0] == '-')
		return unload(step[1] - '0');
	if (!strcmp(step, "gone"))
		return !gone;
	if (!strcmp(step, "kept"))
		return gone;
	return call(step);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		printf("%s\n", argv[i]);
		fflush(stdout);
		if (take(argv[i])) {
			printf("step %d failed\n", i);
			return 1;
		}
	}
	return 0;
}
