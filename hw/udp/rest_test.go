package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestRest has connections that carry nothing give the memory of their rings
// back, not while something is in them, and take it again.
func TestRest(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b).(*Endpoint)
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	rest := func(i *Iface, at time.Duration) bool {
		s := i.stripes[0]
		s.lease.lock()
		defer s.leave()
		c := s.conns[0]
		c.rest(i.now().Add(at))
		return c.tx.ring.b == nil && c.rx.ring.b == nil
	}
	for n := 1; n <= 3; n++ {
		if err := ep.AMShort(1, 0, nil, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		rest(a, 0)
		if rest(a, 2*restAfter) {
			t.Fatal("a ring with a message that did not arrive is gone")
		}
		eventually(t, "message", func() bool {
			rest(b, 0)
			if rest(b, 2*restAfter) && got < n &&
				b.stripes[0].conns[0].rx.top != b.stripes[0].conns[0].deliver.consumed.Load() {
				t.Fatal("a ring with a message that was not delivered is gone")
			}
			b.Progress(1)
			return got == n
		})
		eventually(t, "acknowledgement", func() bool {
			a.Progress(1)
			b.Progress(1)
			a.stripes[0].lease.lock()
			defer a.stripes[0].leave()
			return ep.tx.acked == ep.tx.tail
		})
		for _, i := range []*Iface{a, b} {
			rest(i, 0)
			if rest(i, restAfter/2) {
				t.Error("a ring is gone after less than the time")
			}
			if !rest(i, 2*restAfter) {
				t.Error("a ring that is empty stays")
			}
		}
	}
}
