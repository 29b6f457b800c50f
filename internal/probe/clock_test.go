package probe

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/ptp"
)

// sources are a host whose PTP daemon says so, and without a PTP clock.
func sources(d ptp.Daemon, err error) ptp.Sources {
	return ptp.Sources{
		Daemon:    func() (ptp.Daemon, error) { return d, err },
		Interface: func(string) (ptp.Interface, error) { return ptp.Interface{Clock: -1}, nil },
		System:    func() (ptp.System, error) { return ptp.System{}, nil },
	}
}

var (
	slave  = ptp.Daemon{State: ptp.Slave, Grandmaster: 0x1234, Offset: 100}
	farOff = ptp.Daemon{State: ptp.Slave, Grandmaster: 1, Offset: 1001}
)

// configured is the default configuration with changes.
func configured(change func(*config.Config)) *config.Config {
	c := config.Default()
	if change != nil {
		change(c)
	}
	return c
}

// TestClock opens clocks of all kinds.
func TestClock(t *testing.T) {
	none := errors.New("no daemon")
	probes := func(c *config.Config) { c.Probe = true }
	must := func(c *config.Config) { c.PTP = config.Yes }
	require := func(c *config.Config) { c.PTPRequire = true }
	wider := func(c *config.Config) { c.PTPRequire, c.PTPMaxOffset = true, 2000 }
	off := func(c *config.Config) { c.Probe, c.PTP = true, config.No }
	for name, c := range map[string]struct {
		daemon       ptp.Daemon
		err          error
		set          func(*config.Config)
		refused      string
		clock, synch bool
	}{
		"auto without probes":  {daemon: slave},
		"auto":                 {daemon: slave, set: probes, clock: true, synch: true},
		"auto, no clock":       {err: none, set: probes, clock: true},
		"no":                   {daemon: slave, set: off},
		"yes":                  {daemon: slave, set: must, clock: true, synch: true},
		"yes, no clock":        {err: none, set: must, refused: "neither a PTP clock"},
		"require":              {daemon: slave, set: require, clock: true, synch: true},
		"require, far off":     {daemon: farOff, set: require, refused: "synchronised clock is required"},
		"require, wider bound": {daemon: farOff, set: wider, clock: true, synch: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock, err := OpenClock(configured(c.set), "eth0", sources(c.daemon, c.err))
			t.Cleanup(clock.Close)
			if c.refused != "" {
				if fi.ErrnoOf(err) != fi.ENODEV || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || (clock != nil) != c.clock {
				t.Fatalf("clock %v, %v", clock, err)
			}
			if at := clock.Time(0); (at.Domain != 0) != c.synch {
				t.Errorf("time %+v", at)
			}
		})
	}
}

// TestReadClock reports a clock once, and why it is not synchronised.
func TestReadClock(t *testing.T) {
	device := func(c *config.Config) { c.PTPDevice = "/dev/ptp-of-a-test" }
	r := ReadClock(configured(device), "eth0", sources(slave, nil))
	if r.Interface != "eth0" || r.Device != "/dev/ptp-of-a-test" {
		t.Errorf("%+v", r)
	}
	if r = ReadClock(configured(nil), "eth0", sources(slave, nil)); !r.Synchronised || r.Reason != nil {
		t.Errorf("%+v", r)
	}
	none := errors.New("no daemon")
	if r = ReadClock(configured(nil), "eth0", sources(ptp.Daemon{}, none)); r.Synchronised || r.Reason == nil {
		t.Errorf("%+v", r)
	}
}
