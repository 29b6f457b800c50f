/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the C library that MPI libraries patch. To hear of memory that goes, Open MPI and UCX write a jump
 * over the first bytes of munmap and its like once they have opened the provider. A thread that is inside such a
 * function meanwhile returns into the middle of that jump. So no thread of the provider's own may call them.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

enum { MUNMAP, MREMAP, MADVISE, MMAP, CALLS };

static const char *const names[CALLS] = { "munmap", "mremap", "madvise", "mmap" };

/* Calls of threads other than the test's own, while it is in no call of libfabric. Written by the thread that calls,
 * read when that time is over, relaxed. */
static _Atomic unsigned foreign[CALLS];
static _Atomic bool counting; /* written by the test, read by threads that call, relaxed */
static pid_t own;

static long call(int which, long number, long a, long b, long c, long d, long e, long f)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed) && syscall(SYS_gettid) != own)
		atomic_fetch_add_explicit(&foreign[which], 1, memory_order_relaxed);
	return syscall(number, a, b, c, d, e, f);
}

static int hook_munmap(void *at, size_t len)
{
	return (int)call(MUNMAP, SYS_munmap, (long)at, (long)len, 0, 0, 0, 0);
}

static void *hook_mremap(void *at, size_t len, size_t new_len, int flags, void *to)
{
	return (void *)call(MREMAP, SYS_mremap, (long)at, (long)len, (long)new_len, flags, (long)to, 0);
}

static int hook_madvise(void *at, size_t len, int advice)
{
	return (int)call(MADVISE, SYS_madvise, (long)at, (long)len, advice, 0, 0, 0);
}

static void *hook_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)call(MMAP, SYS_mmap, (long)at, (long)len, prot, flags, fd, offset);
}

/* Has function begin with a jump to hook. */
static void patch(void *function, void *hook)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)function & -page;
	size_t len = ((uintptr_t)function & (page - 1)) + 16;
	unsigned char *code = function;

	if (mprotect((void *)first, len, PROT_READ | PROT_WRITE | PROT_EXEC))
		SKIP("code cannot be written here");
#if defined(__x86_64__)
	memcpy(code, "\x49\xbb", 2); /* mov $hook, %r11 */
	memcpy(code + 2, &hook, 8);
	memcpy(code + 10, "\x41\xff\xe3", 3); /* jmp *%r11 */
#elif defined(__aarch64__)
	memcpy(code, "\x50\x00\x00\x58\x00\x02\x1f\xd6", 8); /* ldr x16, .+8; br x16 */
	memcpy(code + 8, &hook, 8);
#else
	SKIP("no jump for this processor");
#endif
	__builtin___clear_cache((char *)code, (char *)code + 16);
	OK(mprotect((void *)first, len, PROT_READ | PROT_EXEC));
}

static void patch_all(void)
{
	own = (pid_t)syscall(SYS_gettid);
	patch((void *)munmap, (void *)hook_munmap);
	patch((void *)mremap, (void *)hook_mremap);
	patch((void *)madvise, (void *)hook_madvise);
	patch((void *)mmap, (void *)hook_mmap);
}

static void *map_and_unmap(void *arg)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	CHECK(at != MAP_FAILED && !madvise(at, 4096, MADV_DONTNEED) && !munmap(at, 4096));
	return NULL;
}

/* The jumps are taken, so that none counted means none called. */
static void check_hooks(void)
{
	pthread_t thread;

	atomic_store(&counting, true);
	CHECK(!pthread_create(&thread, NULL, map_and_unmap, NULL) && !pthread_join(thread, NULL));
	atomic_store(&counting, false);
	for (int i = 0; i < CALLS; i++)
		CHECK(atomic_exchange(&foreign[i], 0) > 0 || i == MREMAP);
}

static void quiet(const char *when)
{
	atomic_store(&counting, true);
	usleep(20000);
	atomic_store(&counting, false);
	for (int i = 0; i < CALLS; i++)
		EXPECTF(!atomic_load(&foreign[i]), "after %s: %u calls of %s", when, atomic_exchange(&foreign[i], 0),
			names[i]);
}

/* What MPI_Init does with a provider, and its first messages, in several processes that have few processors. */
static void test_init(long progress)
{
	struct node_opts o = { .data = (enum fi_progress)progress, .control = (enum fi_progress)progress };
	struct fi_cq_tagged_entry e;
	struct fi_info *info = NULL;
	char out[64], in[64];
	struct node n;

	patch_all();
	check_hooks();
	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
	quiet("fi_getinfo");
	node_open(&n, &o);
	node_connect(&n);
	quiet("opened");
	for (uint64_t i = 0; i < 1000; i++) {
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, i, 0, in);
		tsend(&n, out, sizeof(out), n.peer[test_rank], i, out);
		wait_ok(&n, n.rxcq, &e);
		wait_ctx(&n, n.txcq, out);
	}
	quiet("messages");
	node_close(&n);
	quiet("closed");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "manual", test_init, .procs = NODE_PEERS, .arg = FI_PROGRESS_MANUAL },
		{ "automatic", test_init, .procs = NODE_PEERS, .arg = FI_PROGRESS_AUTO },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
