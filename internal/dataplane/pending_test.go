package dataplane

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestAnswersAreChecked changes an answer's words: none of them ends an operation that waits for another.
func TestAnswersAreChecked(t *testing.T) {
	for name, change := range map[string]func(slot *hot.Slot){
		"id":         func(s *hot.Slot) { s.Header ^= 1 },
		"generation": func(s *hot.Slot) { s.Header ^= 1 << 32 },
		"not C's":    func(s *hot.Slot) { s.Header &^= hot.PendingID },
		"far":        func(s *hot.Slot) { s.Header |= 0xffffff },
		"length":     func(s *hot.Slot) { s.Length = 9 },
		"offset":     func(s *hot.Slot) { s.Body[0] = 1 },
		"head":       func(s *hot.Slot) { s.Head = 16 },
	} {
		l := newLoop(t)
		result := l.bytes(64)
		p := l.atomic(hot.AtomicFetch, fi.OpRead, fi.Uint64, 0, nil, nil, result)
		l.region[0] = 7
		if code := postAtomic(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
		d := hot.Delivery{EP: p.EP, Budget: 1}
		in := &l.ep.Inbound[0]
		if !deliverOne(&d, l) {
			t.Fatal("the operation is not performed")
		}
		change((*hot.Slot)(pointer(in.Ring.Slots + uintptr(in.Head)*hot.SlotBytes)))
		l.serve()
		if result[0] != 0 {
			t.Errorf("%s: the answer was taken", name)
		}
	}
}

// TestAnswerInPieces takes in a value that comes in pieces: the last completes the operation, one that is not the next
// is refused.
func TestAnswerInPieces(t *testing.T) {
	l := newLoop(t)
	result := l.bytes(8)
	p := l.atomic(hot.AtomicFetch, fi.OpRead, fi.Uint64, 0, nil, nil, result)
	copy(l.region, "abcdefgh")
	if code := postAtomic(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	d := hot.Delivery{EP: p.EP, Budget: 1}
	if !deliverOne(&d, l) {
		t.Fatal("the operation is not performed")
	}
	in := &l.ep.Inbound[0]
	answer := (*hot.Slot)(pointer(in.Ring.Slots + uintptr(in.Head)*hot.SlotBytes))
	answer.Length = 3
	id := answer.Header
	if l.serve(); string(result) != "abc\x00\x00\x00\x00\x00" {
		t.Errorf("the first piece: %q", result)
	}
	piece := func(offset byte, bytes string) []uintptr {
		b := eager(hot.AMMsgData, id, uint64(offset), []byte(bytes))
		b[0] = hot.AMReadData
		l.send(b)
		return l.serve()
	}
	if piece(3, "de"); string(result) != "abcde\x00\x00\x00" {
		t.Errorf("the second piece: %q", result)
	}
	if _, ok := l.completed(); ok || l.read.Value != 0 {
		t.Error("it has ended before the last piece")
	}
	if piece(5, "fgh"); string(result) != "abcdefgh" {
		t.Errorf("the last piece: %q", result)
	}
	if _, ok := l.completed(); !ok || l.read.Value != 1 {
		t.Error("it has not ended")
	}
	if codes := piece(0, "x"); codes[len(codes)-1] != hot.DeliveryGo {
		t.Errorf("a piece of what has ended: codes %v", codes)
	}
}
