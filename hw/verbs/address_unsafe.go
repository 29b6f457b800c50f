package verbs

import "unsafe"

// addressPointer is mem.Address as a pointer.
func addressPointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
