package receive

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// TestHostile has heads of every length and of chance arrive: those that are none are counted and nothing happens, and
// the others are messages.
func TestHostile(t *testing.T) {
	w := newWorld(t, 1, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 1)
	h := w.eps[0]
	const from = strangers // the data plane takes in none of those
	bad, kept := 0, 0
	arrive := func(id hw.AMID, head []byte, valid bool) {
		t.Helper()
		h.on[id](from, 7, head, []byte("hostile"))
		if valid {
			kept++
		} else {
			bad++
		}
		if h.bad != bad || w.c.UnexpectedMessages() != kept {
			t.Fatalf("a head of %d bytes to message %d: %d are malformed, not %d; %d are kept, not %d", len(head), id,
				h.bad, bad, w.c.UnexpectedMessages(), kept)
		}
	}
	for n := range 2 * wire.SyncBytes {
		head := make([]byte, n)
		arrive(wire.AMMsgData, head, n == 8)
		arrive(wire.AMTagData, head, n == 8)
		arrive(wire.AMMsg, head, true) // which has no head to read
		if n != wire.SyncBytes {
			arrive(wire.AMSync, head, false)
		}
	}
	for range 1000 {
		s := wire.Sync{Request: w.r.Uint64(), Data: w.r.Uint64(), Flags: w.r.Uint32()}
		w.messages[s.Request] = &sent{at: h, from: from, kind: awaited}
		head := s.Put(make([]byte, wire.SyncBytes))
		valid := (&wire.Sync{}).Parse(head)
		arrive(wire.AMSync, head, valid)
		m := w.messages[s.Request]
		if waits := !valid || s.Flags&wire.FlagMatch != 0; waits == (len(m.acks) == 1) {
			t.Errorf("a message with flags %#x is acknowledged with %v", s.Flags, m.acks)
		}
	}
	w.c.Detach(&h.e)
	if w.c.UnexpectedMessages() != 0 || w.c.Memory != 0 {
		t.Errorf("%d messages and %d bytes of memory are left", w.c.UnexpectedMessages(), w.c.Memory)
	}
}
