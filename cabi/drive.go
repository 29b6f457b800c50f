package main

// #include "drive.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
)

// Progress threads take in what arrives in C (drive.c). The table of endpoints
// is Go's, what it holds is not.
func init() {
	provider.SetDrive(func(eps []*hot.EP, idle, most time.Duration) bool {
		return bool(C.weft_drive((**C.struct_weft_hot_ep)(unsafe.Pointer(unsafe.SliceData(eps))), C.size_t(len(eps)),
			C.uint64_t(idle), C.uint64_t(most)))
	})
}
