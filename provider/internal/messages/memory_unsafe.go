package messages

import "unsafe"

// addressOf is what C's table has of a structure that the sender keeps alive.
func addressOf[T any](at *T) uintptr { return uintptr(unsafe.Pointer(at)) }
