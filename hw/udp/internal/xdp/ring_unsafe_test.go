package xdp

import (
	"testing"
	"unsafe"
)

// TestRing plays the kernel on a ring in ordinary memory, over the wrap of the
// indexes.
func TestRing(t *testing.T) {
	const size = 8
	memory := make([]uint64, 4+size)
	begin := uint32(1<<32 - 3)
	r := ring{entries: unsafe.Pointer(&memory[4]), mask: size - 1, own: begin, other: begin}
	r.producer, r.consumer, r.flags = wordOf(&memory[0]), wordOf(&memory[1]), wordOf(&memory[2])
	r.producer.Store(begin)
	r.consumer.Store(begin)
	for round := range uint32(20) {
		if n := r.room(size); n != size {
			t.Fatalf("round %d: room for %d", round, n)
		}
		for n := range uint64(5) {
			*r.addr() = n + uint64(round)
		}
		if r.producer.Load() != begin+5*round {
			t.Fatal("published too early")
		}
		r.publish()
		if n := r.pending(); n != 5 {
			t.Fatalf("round %d: %d pending", round, n)
		}
		if n := r.room(4); n != 3 {
			t.Fatalf("round %d: room for %d", round, n)
		}
		c := ring{producer: r.producer, consumer: r.consumer, flags: r.flags, entries: r.entries, mask: r.mask,
			own: r.consumer.Load(), other: r.consumer.Load()}
		if n := c.available(); n != 5 {
			t.Fatalf("round %d: %d available", round, n)
		}
		for n := range uint64(5) {
			if got := *c.addr(); got != n+uint64(round) {
				t.Fatalf("round %d: entry %d is %d", round, n, got)
			}
		}
		c.release()
	}
	// A kernel that says that there is more than the ring has room for.
	r.producer.Store(begin)
	r.own, r.other = begin-100, begin-100
	if n := r.available(); n > size {
		t.Errorf("%d entries of %d", n, size)
	}
}
