package main

// #include "goapi.h"
import "C"

import (
	"runtime/debug"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
)

// result is what C gets for err: 0 or a negative errno.
func result(err error) C.int {
	if err == nil {
		return 0
	}
	return C.int(fi.ErrnoOf(err).Code())
}

// guard keeps a panic from crossing into C. It is deferred first by every
// exported function, with the name of libfabric's call and the address of the
// result, which becomes -FI_EOTHER.
func guard[T ~int32 | ~int64](call string, rc *T) {
	if r := recover(); r != nil {
		report(call, r)
		*rc = T(fi.EOTHER.Code())
	}
}

// entered counts that an operation has entered the runtime.
func entered() { stats.CountProcess(stats.ProcEntries) }

// guardVoid is guard for functions without a result.
func guardVoid(call string) {
	if r := recover(); r != nil {
		report(call, r)
	}
}

func report(call string, panicked any) {
	log.Warnf(log.Core, "%s: panic: %v\n%s", call, panicked, debug.Stack())
}

// text returns a C string, empty for NULL.
func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// addressSpace is more than any address.
const addressSpace = 1 << 62

// view returns C memory as a slice, without copying it. It is used during the
// call only. A number of elements that no memory can hold is cut; checks of the number still find it too large.
func view[T any](p unsafe.Pointer, n C.size_t) []T {
	if p == nil || n == 0 {
		return nil
	}
	most := (addressSpace - uintptr(p)) / max(1, unsafe.Sizeof(*(*T)(p)))
	return unsafe.Slice((*T)(p), min(uintptr(n), most))
}

// storeAddr writes an address that Go has as a number where C has a pointer, which the collector is not to see.
func storeAddr(at unsafe.Pointer, addr uint64) { *(*uint64)(at) = addr }

// put writes b to a buffer of *size bytes, as much as fits, and stores the size
// of all of it. fi.ETOOSMALL if it does not fit.
func put(b []byte, dst unsafe.Pointer, size *C.size_t) error {
	room := *size
	*size = C.size_t(len(b))
	copy(view[byte](dst, room), b)
	if int(room) < len(b) {
		return fi.ETOOSMALL
	}
	return nil
}
