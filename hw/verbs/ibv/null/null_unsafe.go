// Package null is a queue pair that takes work requests and does nothing, to
// measure and test what is above it without a device.
package null

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #include "null.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// QP returns the queue pair; there is one.
func QP() *ibv.QP { return ibv.WrapQP(unsafe.Pointer(C.weft_null_qp()), 1, 256) }

// Taken is the number of work requests that it has taken.
func Taken() uint64 { return uint64(C.weft_null_taken()) }

// Loop posts n inline sends of length bytes from a loop in C.
func Loop(n, length int) { C.weft_null_loop(C.weft_null_qp(), C.int(n), C.int(length)) }
