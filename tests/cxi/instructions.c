/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs a program and prints how many instructions its first thread takes between two breakpoints (int3, which it has
 * around what is to be counted), and how many of them read and write memory atomically, a line for each pair. With a
 * number in front it prints the addresses of that pair, too.
 *
 *	instructions [-N] PROGRAM ARGUMENT...
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* step runs the process on, by one instruction or to its next breakpoint. 0: it has ended. */
static int step(pid_t p, int how)
{
	int status, sig = 0;

	for (;;) {
		ptrace(how, p, NULL, sig);
		if (waitpid(p, &status, 0) < 0 || !WIFSTOPPED(status))
			return 0;
		if (WSTOPSIG(status) == SIGTRAP && !(status >> 16))
			return 1;
		sig = status >> 16 ? 0 : WSTOPSIG(status); /* it runs another program, or has a signal */
	}
}

/* next reads the instruction to come, eight bytes of it at most, and returns where it is. */
static unsigned long long next(pid_t p, unsigned char code[8])
{
	struct user_regs_struct r;
	long word;

	ptrace(PTRACE_GETREGS, p, NULL, &r);
	word = ptrace(PTRACE_PEEKTEXT, p, r.rip, NULL);
	memcpy(code, &word, 8);
	return r.rip;
}

/* locked reports whether an instruction has a lock prefix, or exchanges a register with memory, which implies it. */
static int locked(const unsigned char code[8])
{
	unsigned i = 0;

	for (; i < 6; i++)
		if (code[i] == 0xf0)
			return 1;
		else if (code[i] != 0x66 && code[i] != 0xf2 && code[i] != 0xf3 && (code[i] & 0xf0) != 0x40)
			break;
	return (code[i] & 0xfe) == 0x86 && code[i + 1] < 0xc0;
}

int main(int argc, char **argv)
{
	int shown = argc > 1 && argv[1][0] == '-' ? atoi(argv[1] + 1) : -1;
	char **program = argv + (shown < 0 ? 1 : 2);
	unsigned char code[8];
	unsigned long long at;
	pid_t p;

	if (argc < (shown < 0 ? 2 : 3))
		return 2;
	p = fork();
	if (!p) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(program[0], program);
		_exit(127);
	}
	waitpid(p, NULL, 0); /* before the program's first instruction */
	ptrace(PTRACE_SETOPTIONS, p, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	for (int pair = 0; step(p, PTRACE_CONT); pair++) {
		long n = 0, atomics = 0;

		while (step(p, PTRACE_SINGLESTEP)) {
			at = next(p, code);
			if (code[0] == 0xcc)
				break;
			n++;
			atomics += locked(code);
			if (pair == shown)
				printf("%llx\n", at);
		}
		printf("%ld %ld\n", n, atomics);
		if (!step(p, PTRACE_SINGLESTEP)) /* the second breakpoint itself */
			break;
	}
	return 0;
}
