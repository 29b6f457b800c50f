package udp

import (
	"testing"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/nettest"
)

// TestBottleneck has every algorithm send through a link of 50 Mbit/s, beginning with a window
// that its queue does not hold. All arrives, and those that adapt end with one that it holds.
func TestBottleneck(t *testing.T) {
	const mbit, queue, messages, size = 50, 64 << 10, 600, 8000
	for _, name := range []string{"delay", "aimd", "bbr", "fixed"} {
		t.Run(name, func(t *testing.T) {
			ha, hb := nettest.New(t)
			ha.Rate(mbit, queue)
			cc := DefaultCongestion()
			cc.Initial = 100
			var err error
			if cc.Algorithm, err = congestion.ParseAlgorithm(name); err != nil {
				t.Fatal(err)
			}
			a, b := at(t, ha, false, Config{Congestion: &cc}), at(t, hb, false, Config{})
			ep := pair(t, a, b)
			got, sent := counting(t, b), new(uint64)
			flow(t, a, b, ep, sent, got, messages, size)
			c := ep.(*Endpoint)
			c.s.lease.lock()
			s, srtt := c.tx.path.Control().Inspect(), c.tx.path.RTT().SRTT()
			c.s.leave()
			t.Logf("window %d, %s, %d cuts, %d packets lost, round trip %v",
				s.Window, s.Phase, s.Cuts, c.stats.Read().Lost, srtt)
			if adapts := name != "fixed"; adapts != (s.Window < queue) {
				t.Errorf("a window of %d bytes for a queue of %d", s.Window, queue)
			}
		})
	}
}
