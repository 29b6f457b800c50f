//go:build !race

#include "textflag.h"

// The trampoline, in the System V ABI: DI entry, SI, DX, CX, R8 arguments. Go's internal ABI has them in AX, BX, CX, DI,
// the goroutine in R14, zero in X15, and saves nothing; the result is in AX in both. The callee may keep its arguments in
// the four words above its return address.
TEXT enter<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BX
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	SUBQ  $32, SP
	MOVQ  DI, R12
	MOVQ  SI, AX
	MOVQ  DX, BX
	MOVQ  R8, DI
	LEAQ  ·g(SB), R14
	XORPS X15, X15
	CALL  R12
	ADDQ  $32, SP
	POPQ  R15
	POPQ  R14
	POPQ  R13
	POPQ  R12
	POPQ  BX
	RET

// func trampoline() uintptr
TEXT ·trampoline(SB), NOSPLIT, $0-8
	LEAQ enter<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
