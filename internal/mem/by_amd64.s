//go:build !race

#include "textflag.h"

// The copy of CopyBy, in Go's internal ABI, so that it is called as a Go function is (package direct): AX to, BX from,
// CX bytes, DI how. R14 and X15 stay; the ticks are in AX.
TEXT copyBy<>(SB), NOSPLIT|NOFRAME, $0
	MOVQ  DI, R8
	MOVQ  AX, DI
	MOVQ  BX, SI
	MOVQ  CX, R10
	TESTQ $4, R8
	JZ    choose
	RDTSC
	SHLQ  $32, DX
	ORQ   AX, DX
	MOVQ  DX, R9

choose:
	TESTQ $1, R8
	JNZ   past
	TESTQ $2, R8
	JZ    words
	MOVQ  R10, CX
	SHRQ  $7, CX
	JZ    words
	ANDQ  $127, R10

vectors:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DI
	DECQ    CX
	JNZ     vectors
	VZEROUPPER
	TESTQ   R10, R10
	JZ      copied
	JMP     words

past:
	MOVQ R10, CX
	SHRQ $6, CX
	JZ   words
	ANDQ $63, R10

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
	TESTQ  R10, R10
	JZ     copied

words:
	MOVQ R10, CX
	SHRQ $3, CX
	REP; MOVSQ
	MOVQ R10, CX
	ANDQ $7, CX
	JZ   copied
	REP; MOVSB

copied:
	XORL  AX, AX
	TESTQ $4, R8
	JZ    done
	LFENCE
	RDTSC
	SHLQ  $32, DX
	ORQ   DX, AX
	SUBQ  R9, AX

done:
	RET

// func copyEntry() uintptr
TEXT ·copyEntry(SB), NOSPLIT, $0-8
	LEAQ copyBy<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
