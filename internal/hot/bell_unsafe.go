package hot

import "unsafe"

// Ring has C ring a doorbell, and give back a lock behind it, nil: none.
func (b *Bell) Ring(word unsafe.Pointer, value uint64, lock *uint32) {
	b.Word, b.Value, b.Lock = uintptr(word), value, uintptr(unsafe.Pointer(lock))
}
