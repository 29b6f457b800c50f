package main

// #include "hotpath.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
)

// Progress threads work in C (poll.c), so that the runtime does not wait for them. The table of endpoints, which ends
// with a nil, is Go's, what it holds is not.
func init() {
	provider.SetDrive(func(eps []*hot.EP, idle, most time.Duration) bool {
		return bool(C.weft_drive((**C.struct_weft_hot_ep)(unsafe.Pointer(unsafe.SliceData(eps))), C.uint64_t(idle),
			C.uint64_t(most)))
	})
}
