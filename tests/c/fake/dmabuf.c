/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_reg_dmabuf_mr for hosts whose RDMA devices take no dma-bufs, as soft-RoCE does: a library to be loaded before
 * others (LD_PRELOAD). What asks for that function of libibverbs gets this one, which maps the descriptor, a memory
 * file of the stand-in CUDA driver, and registers the mapping. ibv_dereg_mr unmaps it.
 *
 * WEFT_FAKE_DMABUF says how it fails: "refuse", as exporters that let no other device have their memory; "full", as a
 * device without room. weft_fake_refuse() has the first said of memory files of some length, in this process.
 * Before that, as with a kernel, comes whether there is a descriptor. Ranges that leave the file are refused, and
 * addresses that are not as far into a page as the offset. weft_fake_dmabufs() is how many registrations there are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096, REGIONS = 256 };

static struct {
	struct ibv_mr *mr; /* NULL: none */
	char *map;
	size_t size;
} table[REGIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_mr *(*reg_iova)(struct ibv_pd *, void *, size_t, uint64_t, int);
static int (*dereg)(struct ibv_mr *);
static size_t refused; /* bytes; 0: none */

int weft_fake_dmabufs(void)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < REGIONS; i++)
		n += table[i].mr != NULL;
	pthread_mutex_unlock(&lock);
	return n;
}

void weft_fake_refuse(size_t size)
{
	pthread_mutex_lock(&lock);
	refused = size;
	pthread_mutex_unlock(&lock);
}

static struct ibv_mr *map(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	size_t into = offset % PAGE, size = into + len;
	struct ibv_mr *mr = NULL;
	struct stat st;
	int i = 0;
	char *m;

	if (refused && !fstat(fd, &st) && (size_t)st.st_size == refused) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	while (i < REGIONS && table[i].mr)
		i++;
	if (i == REGIONS) {
		errno = ENOMEM;
		return NULL;
	}
	m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - into));
	if (m == MAP_FAILED)
		return NULL;
	mr = reg_iova(pd, m + into, len, iova, access);
	if (!mr) {
		int err = errno;

		munmap(m, size);
		errno = err;
		return NULL;
	}
	table[i].mr = mr;
	table[i].map = m;
	table[i].size = size;
	return mr;
}

static struct ibv_mr *reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	const char *how = getenv("WEFT_FAKE_DMABUF");
	struct ibv_mr *mr;
	struct stat st;

	if (fstat(fd, &st)) /* EBADF */
		return NULL;
	if (how && !strcmp(how, "refuse"))
		errno = EOPNOTSUPP;
	else if (how && !strcmp(how, "full"))
		errno = ENOMEM;
	else if ((offset ^ iova) % PAGE || offset > (uint64_t)st.st_size || len > (uint64_t)st.st_size - offset)
		errno = EINVAL;
	else
		errno = 0;
	if (errno)
		return NULL;
	pthread_mutex_lock(&lock);
	mr = map(pd, offset, len, iova, fd, access);
	pthread_mutex_unlock(&lock);
	return mr;
}

static int dereg_and_unmap(struct ibv_mr *mr)
{
	char *m = NULL;
	size_t size = 0;
	int rc;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < REGIONS; i++) {
		if (table[i].mr != mr)
			continue;
		m = table[i].map;
		size = table[i].size;
		table[i].mr = NULL;
	}
	rc = dereg(mr);
	if (m)
		munmap(m, size);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* In the place of the loader's. */
void *dlvsym(void *library, const char *name, const char *version)
{
	static void *(*next)(void *, const char *, const char *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "dlvsym");
	if (!strcmp(name, "ibv_reg_dmabuf_mr")) {
		*(void **)&reg_iova = dlsym(library, "ibv_reg_mr_iova");
		return reg_iova ? (void *)reg_dmabuf : NULL;
	}
	if (!strcmp(name, "ibv_dereg_mr")) {
		*(void **)&dereg = next(library, name, version);
		return dereg ? (void *)dereg_and_unmap : NULL;
	}
	return next(library, name, version);
}
