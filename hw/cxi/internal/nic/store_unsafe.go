//go:build amd64 || arm64

package nic

import "unsafe"

// Bell stores v at addr, a word of the device, by one plain store that comes behind all stores before it and does not
// stay in the processor.
//
//go:noescape
func Bell(addr unsafe.Pointer, v uint64)
