/* SPDX-License-Identifier: BSD-2-Clause */
#include "shmdir.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common.h"

static char dir[128];

const char *shmdir_make(void)
{
	if (test_rank == 0) {
		const char *shared = getenv("FI_WEFT_SHM_DIR"); /* of containers */

		if (!getenv("WEFT_TEST_CONTAINERS") || !shared)
			shared = "/dev/shm";
		snprintf(dir, sizeof(dir), "%s/test.weft.%d.XXXXXX", shared, (int)getpid());
		CHECK(mkdtemp(dir) != NULL);
		for (int r = 1; r < test_procs; r++)
			link_send(r, dir, sizeof(dir));
	} else {
		link_recv(0, dir, sizeof(dir));
		CHECK(mkdir(dir, 0700) == 0 || errno == EEXIST); /* a rank with a /dev/shm of its own has another */
	}
	setenv("FI_WEFT_SHM_DIR", dir, 1);
	if (getenv("WEFT_TEST_NETNS"))
		setenv("FI_WEFT_SHM_ACROSS", "no", 1); /* those are hosts */
	return dir;
}

void shmdir_each(void (*visit)(const char *path, void *arg), void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	CHECK(d != NULL);
	while ((e = readdir(d)) != NULL) {
		char path[512];

		if (strncmp(e->d_name, "weft", 4))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		visit(path, arg);
	}
	closedir(d);
}

static void count_one(const char *path, void *arg)
{
	(void)path;
	++*(int *)arg;
}

int shmdir_count(void)
{
	int count = 0;

	if (!test_is_weft())
		return -1;
	shmdir_each(count_one, &count);
	return count;
}

static void remove_one(const char *path, void *arg)
{
	(void)arg;
	unlink(path);
}

void shmdir_remove(void)
{
	char path[256];

	shmdir_each(remove_one, NULL);
	snprintf(path, sizeof(path), "%s/survivor", dir);
	unlink(path); /* fault_kill's */
	rmdir(dir);
}
