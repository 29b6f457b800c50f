//go:build !amd64 && !arm64

package nic

import (
	"sync/atomic"
	"unsafe"
)

// Bell stores v at addr, a word of the device, behind all stores before it.
func Bell(addr unsafe.Pointer, v uint64) { atomic.StoreUint64((*uint64)(addr), v) }
