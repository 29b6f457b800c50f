package cxi

import "unsafe"

// opWord is a word of an operation's memory.
func (q *txQueue) opWord(n uint32, word int) *uint64 {
	return (*uint64)(unsafe.Pointer(&q.memory.memory[int(n)*opBytes+8*word]))
}

// fetched is what an atomic operation has left in its memory.
func (q *txQueue) fetched(n uint32, size uint8) uint64 {
	v := *q.opWord(n, 1)
	if size == 4 {
		v = uint64(*(*uint32)(unsafe.Pointer(q.opWord(n, 1))))
	}
	return v
}

// setOperand stores the operand of an atomic.
func (q *txQueue) setOperand(n uint32, size int, v uint64) {
	if size == 4 {
		*(*uint32)(unsafe.Pointer(q.opWord(n, 0))) = uint32(v)
		return
	}
	*q.opWord(n, 0) = v
}
