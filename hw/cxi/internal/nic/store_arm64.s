#include "textflag.h"

// DMB OSHST (2): stores before it are seen by the device before those after it.

// func Bell(addr unsafe.Pointer, v uint64)
TEXT ·Bell(SB), NOSPLIT, $0-16
	MOVD addr+0(FP), R0
	MOVD v+8(FP), R1
	DMB  $2
	MOVD R1, (R0)
	DMB  $2
	RET
