//go:build !race

#include "textflag.h"

// The copy of CopyTimed, in Go's internal ABI, so that it is called as a Go function is (package direct): AX to, BX
// from, CX bytes, DI whether past the caches. R14 and X15 stay; the ticks are in AX.
TEXT copyTimed<>(SB), NOSPLIT|NOFRAME, $0
	MOVQ  DI, R8
	MOVQ  AX, DI
	MOVQ  BX, SI
	RDTSC
	SHLQ  $32, DX
	ORQ   AX, DX
	MOVQ  DX, R9
	MOVQ  CX, R10
	TESTQ R8, R8
	JZ    words
	SHRQ  $6, CX
	JZ    words

line:
	MOVOU  (SI), X0
	MOVOU  16(SI), X1
	MOVOU  32(SI), X2
	MOVOU  48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	DECQ   CX
	JNZ    line
	SFENCE
	ANDQ   $63, R10

words:
	MOVQ R10, CX
	SHRQ $3, CX
	REP; MOVSQ
	MOVQ R10, CX
	ANDQ $7, CX
	REP; MOVSB
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	SUBQ R9, AX
	RET

// func timedEntry() uintptr
TEXT ·timedEntry(SB), NOSPLIT, $0-8
	LEAQ copyTimed<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
