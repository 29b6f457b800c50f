/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Doorbells are pages of one range. Where stores are trapped it cannot be written: the store raises
 * SIGSEGV, whose handler decodes it, performs it and lets the NIC run on the thread that stored. Pages
 * of counters are trapped in every mode, since equal increments in a row all count.
 *
 * The same handler says that memory at which the NIC is to read or write is missing. Where the setting
 * signals is 0 the kernel copies instead and notifies it, and the process's signals are its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include "nic.h"

enum { PAGES = 2 * 8192 };

static struct {
	enum door kind;
	void *object;
} doors[2][PAGES];
static uint8_t *ranges[2]; /* 0: trapped, 1: plain memory, of which pages that are no doorbell cannot be accessed */
static unsigned int hints[2];
static struct sigaction before;
static __thread __attribute__((tls_model("initial-exec"))) sigjmp_buf *probing;
static __thread __attribute__((tls_model("initial-exec"))) bool chained;

#if defined __x86_64__
/* operand_bytes is the length of a ModRM byte, what it needs after it included. */
static unsigned int operand_bytes(const uint8_t *modrm)
{
	unsigned int mod = *modrm >> 6, rm = *modrm & 7, n = 1;

	if (rm == 4) {
		n++;
		if (mod == 0 && (modrm[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* decode reads a store of 8 bytes and steps over it. */
static bool decode(ucontext_t *uc, uint64_t *value)
{
	static const int regs[] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	greg_t *g = uc->uc_mcontext.gregs;
	const uint8_t *start = (const uint8_t *)g[REG_RIP], *modrm = start + 2;
	unsigned int immediate = 0, reg = (modrm[0] >> 3 & 7) | (start[0] & 4) << 1;
	int32_t imm;

	if (start[0] == 0x66 && start[1] == 0x0f && start[2] == 0xd6) { /* movq xmm, m64 */
		modrm = start + 3;
		memcpy(value, &uc->uc_mcontext.fpregs->_xmm[modrm[0] >> 3 & 7], 8);
	} else if ((start[0] & 0xf8) != 0x48) {
		return false;
	} else if (start[1] == 0x89) { /* mov r64, m64 */
		*value = (uint64_t)g[regs[reg]];
	} else if (start[1] == 0x87) { /* xchg r64, m64: what a page of doorbells reads as is 0 */
		*value = (uint64_t)g[regs[reg]];
		g[regs[reg]] = 0;
	} else if (start[1] == 0xc7) { /* mov imm32, m64 */
		memcpy(&imm, modrm + operand_bytes(modrm), 4);
		*value = (uint64_t)(int64_t)imm;
		immediate = 4;
	} else {
		return false;
	}
	g[REG_RIP] += (modrm - start) + operand_bytes(modrm) + immediate;
	return true;
}
#elif defined __aarch64__
/* decode reads a store of 8 bytes, without write-back of the address, and steps over it. */
static bool decode(ucontext_t *uc, uint64_t *value)
{
	uint32_t i = *(const uint32_t *)uc->uc_mcontext.pc;

	if ((i & 0xffc00000) != 0xf9000000 /* str, offset */ && (i & 0xffe00c00) != 0xf8000000 /* stur */ &&
	    (i & 0xffe00c00) != 0xf8200800 /* str, register */ && (i & 0xfffffc00) != 0xc89ffc00 /* stlr */)
		return false;
	*value = (i & 31) == 31 ? 0 : uc->uc_mcontext.regs[i & 31];
	uc->uc_mcontext.pc += 4;
	return true;
}
#endif

/* Stores to counters that wait, where the NIC moves in steps. */
static struct {
	struct counter *c;
	unsigned int offset;
	uint64_t value;
} deferred[4096];
static unsigned int deferred_count;

void door_deferred(void)
{
	for (unsigned int i = 0; i < deferred_count; i++)
		counter_door(deferred[i].c, deferred[i].offset, deferred[i].value);
	deferred_count = 0;
	engine_work();
}

/* rung is what a store to a page means. */
static void rung(enum door kind, void *object, unsigned int offset, uint64_t value)
{
	struct evq *q = object;

	counts.doorbells++;
	counts.rings += kind == DOOR_CMDQ;
	if (kind == DOOR_CMDQ && !offset) {
		cmdq_ring(object, value);
	} else if (kind == DOOR_EQ && !offset) {
		q->trapped = value;
		evq_state(q);
	} else if (kind == DOOR_CT && set.mode == MODE_STEPPED && deferred_count < sizeof deferred / sizeof *deferred) {
		deferred[deferred_count].c = object;
		deferred[deferred_count].offset = offset;
		deferred[deferred_count++].value = value;
		return;
	} else if (kind == DOOR_CT) {
		counter_door(object, offset, value);
	}
	engine_work();
}

/* pass hands a fault that is none of ours to the handler that was there before. */
static void pass(int sig, siginfo_t *info, void *uc)
{
	if (chained || before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
		signal(sig, SIG_DFL); /* the instruction runs again and ends the process */
		return;
	}
	chained = true;
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, uc);
	else
		before.sa_handler(sig);
	chained = false;
}

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	uint64_t at = (uint64_t)info->si_addr - (uint64_t)ranges[0], value;
	int saved = errno;

	if (probing)
		siglongjmp(*probing, 1);
	if (!ranges[0] || at >= (uint64_t)PAGES * PAGE || info->si_code != SEGV_ACCERR) {
		pass(sig, info, uc);
		return;
	}
	if (!decode(uc, &value)) {
		static const char text[] = "cassini: a store to a doorbell that is not one of 8 bytes\n";

		(void)!write(2, text, sizeof text - 1);
		abort();
	}
	nic_lock();
	rung(doors[0][at / PAGE].kind, doors[0][at / PAGE].object, at % PAGE, value);
	nic_unlock();
	errno = saved;
}

/* install puts our handler on top, where another came since. */
static void install(void)
{
	struct sigaction now, ours = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
		return;
	before = now;
	sigfillset(&ours.sa_mask);
	sigdelset(&ours.sa_mask, SIGSEGV);
	sigdelset(&ours.sa_mask, SIGBUS);
	sigaction(SIGSEGV, &ours, NULL);
}

/* door_open gives an object a page; NULL when there is no more. */
uint64_t *door_open(enum door kind, void *object)
{
	int plain = set.mode != MODE_DIRECT && kind != DOOR_CT;

	if (!plain || set.signals)
		install();
	if (!ranges[plain]) {
		void *range = mmap(NULL, (size_t)PAGES * PAGE, plain ? PROT_NONE : PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (range == MAP_FAILED)
			return NULL;
		ranges[plain] = range;
	}
	for (unsigned int n = 0; n < PAGES; n++) {
		unsigned int i = (hints[plain] + n) % PAGES;

		if (doors[plain][i].kind == DOOR_NONE) {
			uint8_t *page = ranges[plain] + (size_t)i * PAGE;

			if (plain && mprotect(page, PAGE, PROT_READ | PROT_WRITE))
				return NULL;
			doors[plain][i].kind = kind;
			doors[plain][i].object = object;
			hints[plain] = i + 1;
			return (uint64_t *)page;
		}
	}
	return NULL;
}

void door_close(uint64_t *page)
{
	int plain = !((uint8_t *)page >= ranges[0] && (uint8_t *)page < ranges[0] + (size_t)PAGES * PAGE && ranges[0]);
	unsigned int i = (unsigned int)(((uint8_t *)page - ranges[plain]) / PAGE);

	if (plain) { /* a new mapping: it reads as 0 again, also where memory is locked */
		mmap(page, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
	doors[plain][i].kind = DOOR_NONE;
	doors[plain][i].object = NULL;
}

/* pipe_copy copies where the kernel lets no process read memory by process_vm_readv, its own included. */
static bool pipe_copy(uint8_t *to, const uint8_t *from, size_t n)
{
	int ends[2];
	size_t part;
	bool ok;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	for (ok = true; ok && n; to += part, from += part, n -= part) {
		part = n < PAGE ? n : PAGE;
		ok = write(ends[1], from, part) == (ssize_t)part && read(ends[0], to, part) == (ssize_t)part;
	}
	close(ends[0]);
	close(ends[1]);
	return ok;
}

bool door_copy(void *to, const void *from, size_t n)
{
	sigjmp_buf env, *outer = probing;
	struct iovec there = { to, n }, here = { (void *)from, n };

	if (!set.signals) {
		ssize_t copied = process_vm_readv(getpid(), &there, 1, &here, 1, 0);

		return copied < 0 && errno == EPERM ? pipe_copy(to, from, n) : copied == (ssize_t)n;
	}
	if (sigsetjmp(env, 0)) {
		probing = outer;
		return false;
	}
	probing = &env;
	memmove(to, from, n);
	__asm__ volatile("" ::: "memory");
	probing = outer;
	return true;
}

bool door_words(void *to, const void *from, unsigned int n)
{
	sigjmp_buf env, *outer = probing;
	uint64_t *at = to, word;

	if (set.signals && sigsetjmp(env, 0)) {
		probing = outer;
		return false;
	}
	probing = &env;
	for (unsigned int i = 0; i < n; i++) {
		memcpy(&word, (const uint8_t *)from + i * 8, 8);
		__atomic_store_n(at + i, word, i + 1 < n ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
	}
	probing = outer;
	return true;
}
