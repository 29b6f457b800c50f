//go:build !race

#include "textflag.h"

// The trampoline, in the AAPCS64: R0 entry, R1 to R4 arguments. Go's internal ABI has them in R0 to R3, the goroutine in
// R28, and saves nothing; the result is in R0 in both. R18 is the platform's and is not touched by Go code. A frame of
// Go has the return address at its lower end and the frame pointer 8 bytes below it; the callee may keep its arguments in
// the four words above.
TEXT enter<>(SB), NOSPLIT|NOFRAME, $0
	SUB   $208, RSP
	MOVD  R30, (RSP)
	STP   (R19, R20), 48(RSP)
	STP   (R21, R22), 64(RSP)
	STP   (R23, R24), 80(RSP)
	STP   (R25, R26), 96(RSP)
	STP   (R27, g), 112(RSP)
	MOVD  R29, 128(RSP)
	FSTPD (F8, F9), 136(RSP)
	FSTPD (F10, F11), 152(RSP)
	FSTPD (F12, F13), 168(RSP)
	FSTPD (F14, F15), 184(RSP)
	MOVD  R0, R19
	MOVD  R1, R0
	MOVD  R2, R1
	MOVD  R3, R2
	MOVD  R4, R3
	MOVD  $·g(SB), g
	BL    (R19)
	MOVD  (RSP), R30
	LDP   48(RSP), (R19, R20)
	LDP   64(RSP), (R21, R22)
	LDP   80(RSP), (R23, R24)
	LDP   96(RSP), (R25, R26)
	LDP   112(RSP), (R27, g)
	MOVD  128(RSP), R29
	FLDPD 136(RSP), (F8, F9)
	FLDPD 152(RSP), (F10, F11)
	FLDPD 168(RSP), (F12, F13)
	FLDPD 184(RSP), (F14, F15)
	ADD   $208, RSP
	RET

// func trampoline() uintptr
TEXT ·trampoline(SB), NOSPLIT, $0-8
	MOVD $enter<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
