package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestTimersLeavePosts has the timers run while polls look at a driven port:
// posted receives stay where C finds them. When polls no longer look there, or
// matching holds something, they are taken in.
func TestTimersLeavePosts(t *testing.T) {
	s := newBench(t, nil, nil).side(t)
	n := &network{ep: s.ep}
	s.ep.driven = &port{network: n}
	t.Cleanup(func() { s.ep.driven = nil })
	s.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec})
	for _, c := range []struct {
		what   string
		active uint32
		posted int
	}{
		{"looked at", 1, 0},
		{"left to its doorbell", 0, 1},
		{"looked at while matching holds a receive", 1, 1},
	} {
		n.active.Store(c.active)
		s.housekeep()
		if got := s.ep.rx.postedReceives(); got != c.posted {
			t.Errorf("%s: matching has %d receives, not %d", c.what, got, c.posted)
		}
	}
}
