package cqring

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/mpsc"
)

// newQueue returns a queue of one ring of four entries in memory of its own.
func newQueue(t *testing.T) *hot.CQ {
	const log2 = 2
	b, err := mem.Map(HeaderBytes+int(SlotBytes)<<log2, mem.NoReserve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(b) })
	q := &hot.CQ{Rings: uintptr(unsafe.Pointer(unsafe.SliceData(b))), NRings: 1}
	SetSlots(q, log2)
	return q
}

// complete writes an entry with a mark.
func complete(t *testing.T, q *hot.CQ, context uint64, mark uint32) {
	t.Helper()
	view := SlotsOf(q, 0)
	r := mpsc.View(&view)
	slot, pos, ok := r.Claim(hot.CQMarkEntry, false)
	if !ok {
		t.Fatal("the ring is full")
	}
	(*hot.CQE)(slot).Context = context
	r.Publish(slot, mark, pos)
}

// TestReadersMeet has a second reader take the entries that a first one has found: the first must not get them as well.
func TestReadersMeet(t *testing.T) {
	q := newQueue(t)
	r := Of(q, 0)
	complete(t, q, 1, hot.CQMarkEntry)
	complete(t, q, 2, hot.CQMarkEntry)
	end, failed := r.scan(0, 4)
	if end != 2 || failed {
		t.Fatalf("scan gave %d %v", end, failed)
	}
	if head, end, failed := r.Take(4, false); head != 0 || end != 2 || failed {
		t.Fatalf("took %d to %d, %v", head, end, failed)
	}
	if r.advance(0, end, false) {
		t.Error("two readers took the same entries")
	}
}

// TestErrorsStay takes entries up to an error, which stays at the head until it is taken as one.
func TestErrorsStay(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		q := newQueue(t)
		r := Of(q, 0)
		if r.Readable() || r.Failed() {
			t.Fatal("a new ring has something to read")
		}
		complete(t, q, 1, hot.CQMarkEntry)
		complete(t, q, 2, hot.CQMarkError)
		complete(t, q, 3, hot.CQMarkEntry)
		if _, ok := r.TakeError(exclusive, false); ok || r.Failed() || !r.Readable() {
			t.Fatal("an entry passes for an error")
		}
		if head, end, failed := r.Take(4, exclusive); end-head != 1 || !failed {
			t.Fatalf("took %d entries, %v", end-head, failed)
		}
		r.Release(0)
		if head, end, failed := r.Take(4, exclusive); end != head || !failed || !r.Failed() {
			t.Fatalf("took %d entries at the error, %v", end-head, failed)
		}
		if pos, ok := r.TakeError(exclusive, false); !ok || r.At(pos).Context != 2 {
			t.Fatalf("the error is at %d, %v", pos, ok)
		}
		r.Release(1)
		if head, end, failed := r.Take(1, exclusive); end-head != 1 || failed || r.At(head).Context != 3 {
			t.Fatalf("took %d entries behind the error, %v", end-head, failed)
		}
	}
}
