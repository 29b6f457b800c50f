package provider

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

// clock is what a domain knows about this host's clock: whether PTP synchronises
// it, read again and again. Only one-way delays need that, which probes
// measure; the round-trip times do not. The nil clock knows nothing.
type clock struct {
	monitor *ptp.Monitor
	stop    func()
}

// clockSources are what the monitors of tests read; the zero value is this host.
var clockSources ptp.Sources

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

// openClock begins to read the clock, if there is use for it. fi.ENODEV: the
// configuration asks for a clock that is not there, or not synchronised.
func (d *Domain) openClock() error {
	if !wantsClock(d.cfg) {
		return nil
	}
	say := func(text string) { log.Infof(log.Domain, "%s: %s", d.DomainName(), text) }
	m, err := ptp.NewMonitor(ptpConfig(d.cfg, d.DomainName()), clockSources, say)
	if err != nil {
		return fmt.Errorf("%w: %w", err, fi.ENODEV)
	}
	c := &clock{monitor: m}
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
	c.stop = func() { close(done); over.Wait() }
	d.clock = c
	return nil
}

// close ends the readings.
func (c *clock) close() {
	if c != nil {
		c.stop()
	}
}

// time returns what the clock showed so long ago; the zero value while it is not
// synchronised.
func (c *clock) time(ago time.Duration) congestion.PTPTime {
	if c == nil {
		return congestion.PTPTime{}
	}
	s := c.monitor.State()
	if !s.Synchronised {
		return congestion.PTPTime{}
	}
	return congestion.PTPTime{Domain: s.Domain, At: time.Now().Add(-ago).UnixNano(), Error: s.Error}
}

// sample shows the clock's state.
func (c *clock) sample(e *stats.Endpoint) {
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

// Clock reads the clock of a network interface once.
func Clock(c *config.Config, iface string) ClockReport {
	r := ClockReport{Interface: iface}
	if i, err := ptp.FindInterface(iface); err == nil {
		r.Device, r.Transmit, r.Receive = i.Device(), i.Transmit, i.Receive
	}
	if c.PTPDevice != "" {
		r.Device = c.PTPDevice
	}
	p := ptpConfig(c, iface)
	p.Mode, p.RequireSync = ptp.Auto, false
	m, err := ptp.NewMonitor(p, clockSources, func(string) {})
	if err != nil {
		r.Reason = err
		return r
	}
	s := m.State()
	r.Synchronised, r.Error, r.Reason = s.Synchronised, s.Error, s.Reason
	return r
}
