package probe

import (
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/ptp"
	"github.com/weft-fabric/weft/internal/stats"
)

// Clock is what is known of this host's clock: whether PTP synchronises it, read again and again. Only one-way delays
// need that; round-trip times do not. The nil Clock is never synchronised.
type Clock struct {
	monitor *ptp.Monitor
	stop    func()
}

// ptpConfig is what the configuration says of PTP on a network interface.
func ptpConfig(c *config.Config, iface string) ptp.Config {
	p := ptp.DefaultConfig()
	p.Mode = map[config.Tri]ptp.Mode{config.Auto: ptp.Auto, config.Yes: ptp.Yes, config.No: ptp.No}[c.PTP]
	p.RequireSync, p.Device, p.Interface = c.PTPRequire, c.PTPDevice, iface
	p.MaxOffset = time.Duration(c.PTPMaxOffset)
	return p
}

// wantsClock reports whether the configuration has use for the clock's state.
func wantsClock(c *config.Config) bool {
	return c.PTP == config.Yes || c.PTP == config.Auto && (c.Probe || c.PTPRequire)
}

// OpenClock begins to read the clock of a network interface, if the configuration has use for it; else the clock is
// nil. The zero value of sources is this host. fi.ENODEV: the configuration asks for a clock that is not there, or not
// synchronised.
func OpenClock(cfg *config.Config, iface string, sources ptp.Sources) (*Clock, error) {
	if !wantsClock(cfg) {
		return nil, nil
	}
	say := func(text string) { log.Infof(log.Domain, "%s: %s", iface, text) }
	m, err := ptp.NewMonitor(ptpConfig(cfg, iface), sources, say)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.ENODEV)
	}
	return &Clock{monitor: m, stop: checkEvery(m)}, nil
}

// checkEvery has a goroutine read the clock at the monitor's interval.
func checkEvery(m *ptp.Monitor) (stop func()) {
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		t := time.NewTicker(m.Interval())
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				m.Check()
			}
		}
	})
	return func() { close(done); over.Wait() }
}

// Close ends the readings.
func (c *Clock) Close() {
	if c != nil {
		c.stop()
	}
}

// Time returns what the clock showed so long ago; the zero value while it is not synchronised.
func (c *Clock) Time(ago time.Duration) congestion.PTPTime {
	if c == nil {
		return congestion.PTPTime{}
	}
	s := c.monitor.State()
	if !s.Synchronised {
		return congestion.PTPTime{}
	}
	return congestion.PTPTime{Domain: s.Domain, At: time.Now().Add(-ago).UnixNano(), Error: s.Error}
}

// Sample writes the clock's state to an endpoint's page; the nil Clock writes nothing.
func (c *Clock) Sample(e *stats.Endpoint) {
	if c == nil {
		return
	}
	s := c.monitor.State()
	synchronised := uint64(0)
	if s.Synchronised {
		synchronised = 1
	}
	e.RxSet(stats.RxPTP, synchronised)
	e.RxSet(stats.RxPTPError, uint64(s.Error))
}

// ClockReport is what "weft info" shows of a network interface's clock.
type ClockReport struct {
	Interface    string
	Device       string // of the PTP clock, empty: none
	Transmit     bool   // packets sent are stamped in hardware
	Receive      bool   // packets received are
	Synchronised bool
	Error        time.Duration // how far the clock may be off
	Reason       error         // why it is not synchronised, nil if it is
}

// ReadClock reads the clock of a network interface once.
func ReadClock(c *config.Config, iface string, sources ptp.Sources) ClockReport {
	r := ClockReport{Interface: iface}
	if i, err := ptp.FindInterface(iface); err == nil {
		r.Device, r.Transmit, r.Receive = i.Device(), i.Transmit, i.Receive
	}
	if c.PTPDevice != "" {
		r.Device = c.PTPDevice
	}
	p := ptpConfig(c, iface)
	p.Mode, p.RequireSync = ptp.Auto, false
	m, err := ptp.NewMonitor(p, sources, func(string) {})
	if err != nil {
		r.Reason = err
		return r
	}
	s := m.State()
	r.Synchronised, r.Error, r.Reason = s.Synchronised, s.Error, s.Reason
	return r
}
