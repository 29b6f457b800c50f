/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A library to preload: what is opened, listed or read as a link below /sys/class/net, /sys/class/cxi
 * and /sys/class/cxi_user comes from the folder that CASSINI_SYSFS names, which tree.sh fills.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NEXT finds the function that ours stands before. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* moved returns the path to use: one in the folder, built in room, or the one given. */
static const char *moved(const char *path, char room[4096])
{
	static const char *const classes[] = { "/sys/class/net", "/sys/class/cxi", "/sys/class/cxi_user" };
	const char *root = getenv("CASSINI_SYSFS");

	for (int i = 0; root && i < 3; i++) {
		size_t n = strlen(classes[i]);

		if (!strncmp(path, classes[i], n) && (path[n] == '/' || !path[n])) {
			snprintf(room, 4096, "%s%s", root, path + strlen("/sys/class"));
			return room;
		}
	}
	return path;
}

static mode_t mode_of(int flags, va_list *args)
{
	return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(*args, int) : 0;
}

int open(const char *path, int flags, ...)
{
	char room[4096];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, &args);
	va_end(args);
	return NEXT(open)(moved(path, room), flags, mode);
}

int open64(const char *path, int flags, ...)
{
	char room[4096];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, &args);
	va_end(args);
	return NEXT(open64)(moved(path, room), flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	char room[4096];

	return NEXT(fopen)(moved(path, room), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	char room[4096];

	return NEXT(fopen64)(moved(path, room), mode);
}

DIR *opendir(const char *path)
{
	char room[4096];

	return NEXT(opendir)(moved(path, room));
}

int access(const char *path, int how)
{
	char room[4096];

	return NEXT(access)(moved(path, room), how);
}

ssize_t readlink(const char *path, char *buf, size_t n)
{
	char room[4096];

	return NEXT(readlink)(moved(path, room), buf, n);
}

int glob(const char *pattern, int flags, int (*error)(const char *, int), glob_t *found)
{
	char room[4096];

	return NEXT(glob)(moved(pattern, room), flags, error, found);
}
