package mem

import "unsafe"

// spanHeader is the room a span's header takes: its size rounded up to the smallest buffer.
const spanHeader = (int(unsafe.Sizeof(span{})) + 1<<minClass - 1) &^ (1<<minClass - 1)

// spanAt returns the header of the span that starts at an address.
func spanAt(at uint64) *span { return (*span)(Pointer(at)) }

// wordAt returns the first word of a free buffer.
func wordAt(addr uint64) *uint64 { return (*uint64)(Pointer(addr)) }
