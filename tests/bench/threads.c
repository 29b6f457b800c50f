/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Prints the first line of a thread's file. */
static void print_line(int pid, const char *thread, const char *name)
{
	char path[96], line[128] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", pid, thread, name);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
	fprintf(stderr, " %s: %.90s;", name, line);
}

void print_threads(int pid)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			fprintf(stderr, "weft_bench: process %d, thread %s:", pid, e->d_name);
			print_line(pid, e->d_name, "syscall"); /* and program counter */
			print_line(pid, e->d_name, "wchan");
			print_line(pid, e->d_name, "stat"); /* and processor time */
			fprintf(stderr, "\n");
		}
	if (d)
		closedir(d);
}
