/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CUDA driver for hosts without a GPU: libcuda.so.1 with the entry points that weft and the tests
 * call. Its device memory is shared memory that is mapped twice: without any right at the address
 * that the program gets, so that whatever touches it by itself faults, and with all rights where
 * only the copy functions below inspect. As with the real driver a copy needs a context that is
 * current on the calling thread, and a handle opens in other processes only.
 *
 * What a real driver leaves undefined ends the process with a line that says what it was: memory that is freed while
 * another process has it mapped, a handle that is opened in its own process or twice in another, a mapping that is used
 * after it was closed, and a copy that leaves its allocation. Each mapping has a lock (flock(2)) on the memory's file,
 * which goes with the process, so an owner sees whether there is one.
 *
 * weft_fake_reset() is a reset of the GPU: contexts are gone, and all calls fail from then on. weft_fake_destroy()
 * destroys the context with all that was made in it: memory, mappings and streams. A new one may be retained.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NO_PEER_ACCESS = 217, DESTROYED = 709 };
enum { HOST = 1, DEVICE = 2 };
enum { ATTR_CONTEXT = 1, ATTR_TYPE = 2, ATTR_SYNC = 6, ATTR_BUFFER = 7 };

typedef uint64_t deviceptr;

struct handle {
	union {
		char bytes[64];
		struct {
			uint64_t magic;
			int pid, fd;
			size_t size;
			ino_t file;
		};
	};
};

#define MAGIC 0x7765667420667563ull
#define ALLOCATIONS 64

struct allocation {
	deviceptr base; /* 0: none */
	size_t size;
	char *seen; /* the mapping with rights; host memory's own */
	int fd;	    /* -1: host memory */
	bool foreign, sync;
	uint64_t buffer;
	int context; /* in which it was made */
};

/* Where mappings of other processes' memory were. Their addresses stay reserved. */
static struct {
	deviceptr base;
	size_t size;
} closed[1024];
static size_t nclosed;

static struct allocation table[ALLOCATIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char contexts[16];	   /* only their addresses mean something */
static bool apart;		   /* this process's device cannot reach those of others */
static _Atomic int now;		   /* the one that is not destroyed */
static __thread int depth, within; /* of which context */
static bool ready, gone;
static uint64_t buffers;
static _Atomic int retained; /* references of the primary context */

/* For tests: mappings of other processes' memory that are there. */
int weft_fake_mapped(void)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	for (struct allocation *a = table; a < table + ALLOCATIONS; a++)
		n += a->base && a->foreign;
	pthread_mutex_unlock(&lock);
	return n;
}

int weft_fake_waits;   /* for tests: waits for streams */
int weft_fake_imports; /* for tests: handles that were opened; under the lock */

static struct allocation *find(deviceptr p, size_t n)
{
	for (struct allocation *a = table; a < table + ALLOCATIONS; a++)
		if (a->base && p >= a->base && n <= a->size && p - a->base <= a->size - n)
			return a;
	return NULL;
}

static void accuse(const char *what, uint64_t p)
{
	fprintf(stderr, "# the stand-in CUDA driver: process %d: %s (%#lx)\n", getpid(), what, (unsigned long)p);
	abort();
}

/* find(), where copies inspect. */
static struct allocation *reach(deviceptr p, size_t n)
{
	struct allocation *a = find(p, n);

	if (!a && find(p, 1))
		accuse("a copy leaves its allocation", p);
	for (size_t i = 0; !a && i < nclosed; i++)
		if (p >= closed[i].base && p - closed[i].base < closed[i].size)
			accuse("a mapping is used after it was closed", p);
	return a;
}

static struct allocation *unused(void)
{
	for (struct allocation *a = table; a < table + ALLOCATIONS; a++)
		if (!a->base)
			return a;
	return NULL;
}

/* Maps fd into an entry of the table, under the lock. */
static int enter(struct allocation *a, int fd, size_t size, bool foreign)
{
	char *seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *bare = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);

	if (seen == MAP_FAILED || bare == MAP_FAILED)
		return OUT_OF_MEMORY;
	*a = (struct allocation){ (uintptr_t)bare, size, seen, fd, foreign, false, ++buffers, now };
	return SUCCESS;
}

/* Ends an entry of the table, under the lock. */
static void drop(struct allocation *a)
{
	if (a->foreign && nclosed < sizeof(closed) / sizeof(*closed)) {
		closed[nclosed].base = a->base;
		closed[nclosed++].size = a->size;
		mmap((void *)(uintptr_t)a->base, a->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	} else {
		munmap((void *)(uintptr_t)a->base, a->size);
	}
	munmap(a->seen, a->size);
	close(a->fd);
	a->base = 0;
}

/* What a call without its context gets. */
static int no_context(void)
{
	return gone || (depth > 0 && within != now) ? DESTROYED : INVALID_CONTEXT;
}
static bool is_current(void)
{
	return !gone && depth > 0 && within == now;
}

static int leave(deviceptr p, bool foreign)
{
	struct allocation *a;
	int rc = INVALID_VALUE;

	pthread_mutex_lock(&lock);
	if (gone) {
		pthread_mutex_unlock(&lock);
		return DESTROYED;
	}
	a = find(p, 1);
	if (a && a->base == p && a->foreign == foreign && a->fd >= 0) {
		if (!foreign && flock(a->fd, LOCK_EX | LOCK_NB))
			accuse("memory is freed that another process has mapped", p);
		drop(a);
		rc = SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuInit(unsigned flags)
{
	ready = !flags;
	return flags ? INVALID_VALUE : SUCCESS;
}
int cuDeviceGetCount(int *n)
{
	*n = 1;
	return ready ? SUCCESS : INVALID_VALUE;
}
int cuDeviceGet(int *device, int n)
{
	*device = n;
	return n ? INVALID_VALUE : SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **c, int device)
{
	*c = &contexts[now];
	if (device)
		return INVALID_VALUE;
	if (++retained > 8)
		accuse("references of the primary context are not released", (uint64_t)retained);
	return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device || --retained < 0 ? INVALID_VALUE : SUCCESS;
}
int cuCtxPopCurrent_v2(void **c)
{
	*c = &contexts[within];
	return depth-- > 0 ? SUCCESS : INVALID_CONTEXT;
}

int cuCtxSetCurrent(void *c)
{
	depth = c == &contexts[now];
	within = now;
	return depth ? SUCCESS : INVALID_CONTEXT;
}

int cuCtxPushCurrent_v2(void *c)
{
	if ((char *)c < contexts || (char *)c >= contexts + sizeof(contexts))
		return INVALID_CONTEXT;
	if (gone || c != &contexts[now])
		return DESTROYED;
	depth = depth > 0 && within == now ? depth + 1 : 1;
	within = now;
	return SUCCESS;
}

/* For tests. Mappings of other processes' memory are gone with the contexts: their owners may free it. */
void weft_fake_reset(void)
{
	pthread_mutex_lock(&lock);
	gone = true;
	for (struct allocation *a = table; a < table + ALLOCATIONS; a++)
		if (a->base && a->foreign)
			flock(a->fd, LOCK_UN);
	pthread_mutex_unlock(&lock);
}

/* For tests. From now on devices of other processes are out of this one's reach, as behind another root complex. */
void weft_fake_no_peer_access(void)
{
	apart = true;
}

/* For tests. Other processes that have mapped memory of this one keep what they see of it. */
void weft_fake_destroy(void)
{
	pthread_mutex_lock(&lock);
	for (struct allocation *a = table; a < table + ALLOCATIONS; a++)
		if (a->base && a->fd >= 0)
			drop(a);
	if ((size_t)++now >= sizeof(contexts))
		accuse("too many contexts", (uint64_t)now);
	retained = 0;
	pthread_mutex_unlock(&lock);
}

int cuMemAlloc_v2(deviceptr *p, size_t size)
{
	struct allocation *a;
	int rc = OUT_OF_MEMORY, fd;

	if (!is_current())
		return no_context();
	size = (size + 4095) & ~(size_t)4095;
	fd = memfd_create("weft-fake-gpu", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	a = unused();
	if (a)
		rc = enter(a, fd, size, false);
	if (!rc)
		*p = a->base;
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuMemFree_v2(deviceptr p)
{
	return leave(p, false);
}

int cuMemAllocHost_v2(void **p, size_t size)
{
	struct allocation *a;
	char *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	a = unused();
	if (a)
		*a = (struct allocation){ (uintptr_t)m, size, m, -1, false, false, ++buffers, now };
	pthread_mutex_unlock(&lock);
	*p = m;
	return a ? SUCCESS : OUT_OF_MEMORY;
}

/* A copy, each side of which is device memory or not. */
static int copy(uint64_t dst, bool device_dst, uint64_t src, bool device_src, size_t n)
{
	struct allocation *a;
	char *to = (char *)(uintptr_t)dst;
	const char *from = (const char *)(uintptr_t)src;
	int rc = SUCCESS;

	if (!is_current())
		return no_context();
	pthread_mutex_lock(&lock);
	if (device_dst) {
		a = reach(dst, n);
		to = a ? a->seen + (dst - a->base) : NULL;
	}
	if (device_src) {
		a = reach(src, n);
		from = a ? a->seen + (src - a->base) : NULL;
	}
	if (to && from)
		memmove(to, from, n);
	else
		rc = INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuMemcpyDtoH_v2(void *dst, deviceptr src, size_t n)
{
	return copy((uintptr_t)dst, false, src, true, n);
}

int cuMemcpyHtoD_v2(deviceptr dst, const void *src, size_t n)
{
	return copy(dst, true, (uintptr_t)src, false, n);
}

int cuMemcpyDtoD_v2(deviceptr dst, deviceptr src, size_t n)
{
	return copy(dst, true, src, true, n);
}

/* Copies of a stream are done when it is waited for, so that what does not wait sees it. */
struct stream {
	pthread_mutex_t lock;
	struct {
		uint64_t dst, src;
		size_t n;
		bool device_dst, device_src;
	} * list;
	size_t n, room;
	int context;
};

int cuStreamCreate(struct stream **s, unsigned flags)
{
	if (!is_current() || flags > 1)
		return no_context();
	*s = calloc(1, sizeof(**s));
	if (!*s)
		return OUT_OF_MEMORY;
	pthread_mutex_init(&(*s)->lock, NULL);
	(*s)->context = now;
	return SUCCESS;
}

/* Whether a call about a stream may go on. */
static int enter_stream(const struct stream *s)
{
	if (!is_current())
		return no_context();
	if (s->context != now)
		accuse("a stream is used after its context was destroyed", (uint64_t)s->context);
	return SUCCESS;
}

static int begin(struct stream *s, uint64_t dst, bool device_dst, uint64_t src, bool device_src, size_t n)
{
	int rc = enter_stream(s);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->list = realloc(s->list, s->room * sizeof(*s->list));
		if (!s->list)
			abort();
	}
	s->list[s->n].dst = dst;
	s->list[s->n].src = src;
	s->list[s->n].n = n;
	s->list[s->n].device_dst = device_dst;
	s->list[s->n++].device_src = device_src;
	pthread_mutex_unlock(&s->lock);
	return SUCCESS;
}

int cuMemcpyDtoHAsync_v2(void *dst, deviceptr src, size_t n, struct stream *s)
{
	return begin(s, (uintptr_t)dst, false, src, true, n);
}

int cuMemcpyHtoDAsync_v2(deviceptr dst, const void *src, size_t n, struct stream *s)
{
	return begin(s, dst, true, (uintptr_t)src, false, n);
}

int cuMemcpyDtoDAsync_v2(deviceptr dst, deviceptr src, size_t n, struct stream *s)
{
	return begin(s, dst, true, src, true, n);
}

int cuStreamSynchronize(struct stream *s)
{
	int rc = enter_stream(s);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n && !rc; i++)
		rc = copy(s->list[i].dst, s->list[i].device_dst, s->list[i].src, s->list[i].device_src, s->list[i].n);
	s->n = 0;
	weft_fake_waits++;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int cuPointerGetAttribute(void *to, int attribute, deviceptr p)
{
	struct allocation *a;
	int rc = SUCCESS;

	pthread_mutex_lock(&lock);
	a = find(p, 1);
	if (!a)
		rc = INVALID_VALUE;
	else if (attribute == ATTR_CONTEXT)
		*(void **)to = &contexts[a->context];
	else if (attribute == ATTR_BUFFER)
		*(uint64_t *)to = a->buffer;
	else if (attribute == ATTR_TYPE)
		*(unsigned *)to = a->fd < 0 ? HOST : DEVICE;
	else
		*(unsigned *)to = 0;
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuPointerSetAttribute(const void *value, int attribute, deviceptr p)
{
	struct allocation *a;

	pthread_mutex_lock(&lock);
	a = find(p, 1);
	if (a && attribute == ATTR_SYNC)
		a->sync = *(const unsigned *)value;
	pthread_mutex_unlock(&lock);
	return a && attribute == ATTR_SYNC ? SUCCESS : INVALID_VALUE;
}

int cuMemGetAddressRange_v2(deviceptr *base, size_t *size, deviceptr p)
{
	struct allocation *a;

	pthread_mutex_lock(&lock);
	a = find(p, 1);
	if (a) {
		*base = a->base;
		*size = a->size;
	}
	pthread_mutex_unlock(&lock);
	return a ? SUCCESS : INVALID_VALUE;
}

int cuIpcGetMemHandle(struct handle *h, deviceptr p)
{
	struct allocation *a;
	struct stat st;

	if (gone)
		return DESTROYED;
	pthread_mutex_lock(&lock);
	a = find(p, 1);
	memset(h, 0, sizeof(*h));
	if (a && a->fd >= 0 && !a->foreign && !fstat(a->fd, &st)) {
		h->file = st.st_ino;
		h->magic = MAGIC;
		h->pid = getpid();
		h->fd = a->fd;
		h->size = a->size;
	}
	pthread_mutex_unlock(&lock);
	return a ? SUCCESS : INVALID_VALUE;
}

int cuIpcOpenMemHandle_v2(deviceptr *base, struct handle h, unsigned flags)
{
	struct allocation *a;
	struct stat new, old;
	char path[64];
	int fd, rc = OUT_OF_MEMORY;

	if (!is_current())
		return no_context();
	if (h.magic == MAGIC && h.pid == getpid())
		accuse("a handle is opened in its own process", (uint64_t)h.fd);
	if (h.magic != MAGIC || flags != 1)
		return INVALID_VALUE;
	if (apart)
		return NO_PEER_ACCESS;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h.pid, h.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) || fstat(fd, &new) || new.st_ino != h.file)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (a = table; a < table + ALLOCATIONS; a++)
		if (a->base && a->foreign && !fstat(a->fd, &old) && old.st_ino == new.st_ino)
			accuse("a handle is opened twice", a->base);
	a = unused();
	if (a)
		rc = enter(a, fd, h.size, true);
	if (!rc) {
		*base = a->base;
		weft_fake_imports++;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* A dma-buf of whole pages of an allocation, from its first on: a descriptor of the memory file. */
int cuMemGetHandleForAddressRange(int *fd, deviceptr p, size_t size, int type, unsigned long long flags)
{
	struct allocation *a;
	int rc = INVALID_VALUE;

	if (!is_current())
		return no_context();
	if (type != 1 || flags || p % 4096 || size % 4096)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	a = find(p, size);
	if (a && a->base == p && a->fd >= 0 && !a->foreign) {
		*fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
		rc = *fd < 0 ? OUT_OF_MEMORY : SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuIpcCloseMemHandle(deviceptr base)
{
	return leave(base, true);
}

int cuGetErrorName(int rc, const char **name)
{
	*name = rc == INVALID_VALUE	? "CUDA_ERROR_INVALID_VALUE"
		: rc == DESTROYED	? "CUDA_ERROR_CONTEXT_IS_DESTROYED"
		: rc == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
					: "CUDA_ERROR_OUT_OF_MEMORY";
	return SUCCESS;
}
