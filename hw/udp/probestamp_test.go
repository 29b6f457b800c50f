package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// TestProbeStamps has the kernel say when probes left, which is after they were
// posted, and round trips be by that.
func TestProbeStamps(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b).(*Endpoint)
	got := make(chan time.Duration, 100)
	posted := make(map[uint64]congestion.Time)
	a.SetProbes(congestion.Probes{Echoed: func(_ any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
		got <- at.Sub(posted[m.Token]) - m.Residence
		return 0
	}})
	stamped := 0
	for n := range uint64(20) {
		ep.s.lease.lock() // what Probe does, with a poll of the stamps
		before := a.now()
		m := congestion.ProbeMessage{Size: 64, Sequence: uint32(n), Token: 100 + n}
		ep.probe = probeStamps{token: m.Token, left: before}
		ep.sendProbe(m)
		if ep.probe.left > before {
			stamped++
		}
		ep.probe.returned = ep.probe.left
		posted[m.Token] = ep.probe.returned
		ep.s.leave()
		eventually(t, "an echo", func() bool { a.Progress(10); return len(got) > 0 })
		if rtt := <-got; rtt < 0 || rtt > 10*time.Second {
			t.Errorf("round trip of %v", rtt)
		}
	}
	if stamped == 0 {
		t.Skip("the loopback interface gives no stamps here")
	}
	t.Logf("%d of 20 probes were stamped", stamped)
}

// TestProbeHardware has an interface's stamps of a probe and its echo make the
// round trip, unless they contradict the host's clock.
func TestProbeHardware(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b).(*Endpoint)
	ep.s.lease.lock()
	defer ep.s.leave()
	m := congestion.ProbeMessage{Token: 7, Echo: true}
	now := a.now()
	post := now.Add(-100 * time.Microsecond)
	for name, c := range map[string]struct {
		sent, received time.Duration
		want           time.Duration
	}{
		"both":         {time.Hour, time.Hour + 30*time.Microsecond, 30 * time.Microsecond},
		"none":         {0, 0, 100 * time.Microsecond},
		"sent only":    {time.Hour, 0, 100 * time.Microsecond},
		"clock set":    {time.Hour, 2 * time.Hour, 100 * time.Microsecond},
		"clock set ba": {time.Hour, time.Minute, 100 * time.Microsecond},
	} {
		ep.probe = probeStamps{token: 7, returned: post, left: post}
		ep.s.stamping = stamping{}
		ep.s.stamping.waits[3] = stampWait{3, ep, 7}
		if c.sent != 0 {
			ep.s.left(&sock.Left{ID: 3, Hardware: c.sent})
		}
		ep.s.message.Hardware = c.received
		if got := ep.arrival(now, &m).Sub(post); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	ep.s.left(&sock.Left{ID: 4, Hardware: 1}) // of nothing
	ep.s.left(&sock.Left{ID: 19, Hardware: 1})
	m.Token = 8
	if got := ep.arrival(now, &m); got != now {
		t.Error("the echo of another probe is corrected")
	}
}
