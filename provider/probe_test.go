package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/ptp"
)

// probesOften has probes sent at once and often.
func probesOften(strategy string) func(*config.Config) {
	return func(c *config.Config) {
		c.Probe, c.ProbeStrategy, c.ProbeInterval, c.ProbeDelay = true, strategy, 5*time.Millisecond, 0
	}
}

// waitForCounter has sides make progress until a counter of x's one peer is at
// least n.
func waitForCounter(t *testing.T, name string, n uint64, x *side, others ...*side) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); x.peerCounter(name) < n; drain(append(others, x)...) {
		if time.Now().After(end) {
			t.Fatalf("%s is %d, want %d", name, x.peerCounter(name), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestProbes has both sides probe each other, with every strategy, after one
// message.
func TestProbes(t *testing.T) {
	for _, strategy := range []string{"round_robin", "all_pairs", "random", "adaptive"} {
		t.Run(strategy, func(t *testing.T) {
			sides := overUDP(t, 2, probesOften(strategy))
			x, y := sides[0], sides[1]
			oneMessage(t, x, y, 64)
			waitForCounter(t, "peer_probes", 5, x, y)
			waitForCounter(t, "peer_probe_rtt", 1, x, y)
			if c := x.ep.base.transports.probers[0].Count(); c.Echoed == 0 || c.Echoed+c.Lost > c.Sent {
				t.Errorf("%+v", c)
			}
			if s := x.peerCounter("peer_rtt_samples"); s == 0 {
				t.Error("probes do not count as samples of the path")
			}
			if x.peerCounter("peer_delay_out") != 0 {
				t.Error("a one-way delay without synchronised clocks")
			}
		})
	}
}

// TestProbesOff has nothing run that would probe.
func TestProbesOff(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	oneMessage(t, x, y, 64)
	if len(x.ep.base.transports.probers) != 0 || x.domain.clock != nil || x.peerCounter("peer_probes") != 0 {
		t.Errorf("%d probers, clock %v", len(x.ep.base.transports.probers), x.domain.clock)
	}
}

// TestProbesLost has echoes ignored, as if they did not come.
func TestProbesLost(t *testing.T) {
	sides := overUDP(t, 2, probesOften("all_pairs"))
	x, y := sides[0], sides[1]
	oneMessage(t, x, y, 64)
	waitForCounter(t, "peer_probes", 1, x, y)
	for _, p := range x.ep.base.links.Transports() {
		if i, ok := p.Iface.(probe.Interface); ok {
			i.SetProbes(congestion.Probes{})
		}
	}
	waitForCounter(t, "peer_probes_lost", 1, x, y)
	if x.peerCounter("peer_packets_lost") == 0 {
		t.Error("a probe that is lost does not count as a loss of the path")
	}
}

// TestProbesPeers gives probers the peers that come and go.
func TestProbesPeers(t *testing.T) {
	sides := overUDP(t, 3, probesOften("all_pairs"))
	x, y, z := sides[0], sides[1], sides[2]
	oneMessage(t, x, y, 64)
	waitForCounter(t, "peer_probes", 1, x, y)
	oneMessage(t, x, z, 64)
	peers := func(n int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			got := 0
			for range x.ep.base.probed(x.ep.base.links.Transports()[1]) {
				got++
			}
			if got == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d peers are probed, want %d", got, n)
			}
			x.housekeep()
		}
	}
	peers(2)
	z.close()
	peers(1)
}

// TestProbesOnService has the service thread send the probes.
func TestProbesOnService(t *testing.T) {
	sides := overUDP(t, 2, func(c *config.Config) {
		probesOften("round_robin")(c)
		c.Service = config.Yes
	})
	x, y := sides[0], sides[1]
	oneMessage(t, x, y, 64)
	waitForCounter(t, "peer_probes", 5, x, y)
}

// withClock has monitors find a daemon that says so.
func withClock(t *testing.T, d ptp.Daemon, err error) {
	clockSources = ptp.Sources{
		Daemon:    func() (ptp.Daemon, error) { return d, err },
		Interface: func(string) (ptp.Interface, error) { return ptp.Interface{Clock: -1}, nil },
		System:    func() (ptp.System, error) { return ptp.System{}, nil },
	}
	t.Cleanup(func() { clockSources = ptp.Sources{} })
}

var slave = ptp.Daemon{State: ptp.Slave, Grandmaster: 0x1234, Offset: 100}

// TestOneWayDelays has both clocks synchronised: the two delays make the round
// trip.
func TestOneWayDelays(t *testing.T) {
	withClock(t, slave, nil)
	sides := overUDP(t, 2, probesOften("round_robin"))
	x, y := sides[0], sides[1]
	oneMessage(t, x, y, 64)
	waitForCounter(t, "peer_delay_out", 1, x, y)
	out, back := x.peerCounter("peer_delay_out"), x.peerCounter("peer_delay_back")
	if out+back == 0 || time.Duration(out+back) > 10*time.Second {
		t.Errorf("delays of %d and %d ns", out, back)
	}
}

// TestClock opens domains with a clock, without one, and with one that is not there.
func TestClock(t *testing.T) {
	for name, c := range map[string]struct {
		err            error
		set            func(*config.Config)
		clock, refused bool
	}{
		"not used": {set: func(*config.Config) {}},
		"yes":      {set: func(c *config.Config) { c.PTP = config.Yes }, clock: true},
		"none":     {err: errors.New("no daemon"), set: func(c *config.Config) { c.PTP = config.Yes }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			withClock(t, slave, c.err)
			cfg := testConfig(t)
			c.set(cfg)
			f := &Fabric{attr: fi.FabricAttr{Name: testInfo().Fabric.Name}, cfg: cfg}
			d, err := f.OpenDomain(testInfo())
			if c.refused {
				if fi.ErrnoOf(err) != fi.ENODEV {
					t.Fatalf("%v", err)
				}
				if err := f.Close(); err != nil {
					t.Errorf("the fabric is in use: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (d.clock != nil) != c.clock {
				t.Errorf("clock %v", d.clock)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
