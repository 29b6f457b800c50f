package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/nettest"
)

// TestClockSet sets the wall clock forward and back by an hour while messages flow, whose arrivals the kernel stamps
// by it. WEFT_TEST_SET_CLOCK=1 says that the machine is the test's own.
func TestClockSet(t *testing.T) {
	set := nettest.Clock(t)
	for name, c := range map[string]Config{"socket": {NoInbox: true}, "inbox": {}} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, false, c), open(t, false, c)
			got := uint64(0)
			b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
			ep := pair(t, a, b).(*Endpoint)
			for n := range uint64(400) {
				if n%10 == 0 {
					step := time.Hour
					if n%20 == 0 {
						step = -step
					}
					set(step)
				}
				if err := ep.AMShort(1, n, nil, nil); err != nil {
					t.Fatal(err)
				}
				eventually(t, "a message", func() bool { a.Progress(1); b.Progress(1); return got == n+1 })
			}
			answered(t, a, b, ep)
			s := ep.stats.Read()
			if s.Samples < 10 || s.Min <= 0 || s.Max > time.Minute || ep.Err() != nil {
				t.Errorf("%d samples of %v to %v, endpoint %v", s.Samples, s.Min, s.Max, ep.Err())
			}
		})
	}
}
