/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The two routes into the data plane (plane.h), and the test at load that decides which one is taken.
 */
#include <stdbool.h>

#include "plane.h"

/* Go: the function with a number, by a callback. */
extern uintptr_t weftGoPlane(uintptr_t function, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

struct weft_plane weft_plane = { .enter = weftGoPlane };

/* Calls the trampoline, and reports whether the registers that a function keeps are as before. */
static bool keeps_registers(uintptr_t enter, uintptr_t probe, const uintptr_t args[4], uintptr_t *result)
{
#if defined(__x86_64__)
	uintptr_t rbx, r12, r13, r14, r15, rax = enter;
	register uintptr_t d __asm__("r8") = args[3];
	uintptr_t entry = probe, a = args[0], b = args[1], c = args[2];

	__asm__ volatile("subq $128, %%rsp\n\t" /* below the red zone */
			 "pushq %%rbp\n\t"
			 "movq %%rsp, %%rbp\n\t"
			 "andq $-16, %%rsp\n\t"
			 "movq $0x1b, %%rbx\n\t"
			 "movq $0x1c, %%r12\n\t"
			 "movq $0x1d, %%r13\n\t"
			 "movq $0x1e, %%r14\n\t"
			 "movq $0x1f, %%r15\n\t"
			 "call *%%rax\n\t"
			 "movq %%rbp, %%rsp\n\t"
			 "popq %%rbp\n\t"
			 "addq $128, %%rsp\n\t"
			 "movq %%r12, %%rcx\n\t"
			 "movq %%r13, %%rdx\n\t"
			 "movq %%r14, %%rsi\n\t"
			 "movq %%r15, %%rdi\n\t"
			 : "+a"(rax), "=b"(rbx), "+c"(c), "+d"(b), "+S"(a), "+D"(entry), "+r"(d)
			 :
			 : "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2",
			   "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
			   "xmm14", "xmm15");
	r12 = c, r13 = b, r14 = a, r15 = entry;
	*result = rax;
	return rbx == 0x1b && r12 == 0x1c && r13 == 0x1d && r14 == 0x1e && r15 == 0x1f;
#elif defined(__aarch64__)
	register uintptr_t x0 __asm__("x0") = probe;
	register uintptr_t x1 __asm__("x1") = args[0];
	register uintptr_t x2 __asm__("x2") = args[1];
	register uintptr_t x3 __asm__("x3") = args[2];
	register uintptr_t x4 __asm__("x4") = args[3];
	register uintptr_t x9 __asm__("x9") = enter;
	uintptr_t sum;

	__asm__ volatile("mov x19, #1\n\tmov x20, #2\n\tmov x21, #4\n\tmov x22, #8\n\tmov x23, #16\n\t"
			 "mov x24, #32\n\tmov x25, #64\n\tmov x26, #128\n\tmov x27, #256\n\tmov x28, #512\n\t"
			 "fmov d8, x19\n\tfmov d15, x20\n\t"
			 "blr x9\n\t"
			 "add x19, x19, x20\n\tadd x19, x19, x21\n\tadd x19, x19, x22\n\tadd x19, x19, x23\n\t"
			 "add x19, x19, x24\n\tadd x19, x19, x25\n\tadd x19, x19, x26\n\tadd x19, x19, x27\n\t"
			 "add x19, x19, x28\n\tfmov x1, d8\n\tadd x19, x19, x1\n\tfmov x1, d15\n\t"
			 "add %[sum], x19, x1\n\t"
			 : [sum] "=r"(sum), "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4), "+r"(x9)
			 :
			 : "x5", "x6", "x7", "x8", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19", "x20",
			   "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc", "v0", "v1",
			   "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
			   "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
			   "v29", "v30", "v31");
	*result = x0;
	return sum == 1023 + 3;
#else
	*result = 0;
	return enter == 0;
#endif
}

/* Tries the trampoline with a function whose entry is probe, which returns want for four arguments. */
bool weft_plane_works(uintptr_t enter, uintptr_t probe, const uintptr_t args[4], uintptr_t want)
{
	uintptr_t result = 0;

	return enter && keeps_registers(enter, probe, args, &result) && result == want;
}
