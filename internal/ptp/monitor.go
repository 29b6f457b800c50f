package ptp

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Sources are what a monitor reads, so that tests can stand in for them. The
// zero value is this host.
type Sources struct {
	// Interface finds what an interface can do.
	Interface func(name string) (Interface, error)

	// Offset compares a PTP clock with the system clock; tai as in [System].
	Offset func(device string, tai int32) (Offset, error)

	// Daemon asks the PTP daemon.
	Daemon func() (Daemon, error)

	// System asks the kernel.
	System func() (System, error)
}

// complete fills in this host.
func (s *Sources) complete() {
	if s.Interface == nil {
		s.Interface = FindInterface
	}
	if s.Offset == nil {
		s.Offset = func(path string, tai int32) (Offset, error) {
			d, err := Open(path)
			if err != nil {
				return Offset{}, err
			}
			defer d.Close()
			return d.Offset(tai)
		}
	}
	if s.Daemon == nil {
		s.Daemon = func() (Daemon, error) { return AskDaemon(DaemonSockets) }
	}
	if s.System == nil {
		s.System = ReadSystem
	}
}

// SystemTime is the domain of a host with a PTP clock and system clock that agree while
// no daemon says by which grandmaster.
const SystemTime = 1

// domain folds a grandmaster's identity into a number above SystemTime.
func domain(s *Status) uint32 {
	if !s.HasDaemon {
		return SystemTime
	}
	g := s.Daemon.Grandmaster
	return max(uint32(g)^uint32(g>>32)*0x9e3779b1, SystemTime+1)
}

// State is what users of the clock need to know.
type State struct {
	// Synchronised says that one-way delays mean something.
	Synchronised bool

	// Error is how far the clock may be off if it is.
	Error time.Duration

	// Domain distinguishes clocks that are synchronised but not with each other:
	// one-way delays need the same at both ends. It is made of the
	// grandmaster's identity, SystemTime without a daemon, and 0 if the clock
	// is not synchronised.
	Domain uint32

	// Reason says why it is not; nil if it is, or if PTP is off.
	Reason error
}

// Monitor checks again and again whether the clock is synchronised. Check is for
// one thread; State may be called by any.
type Monitor struct {
	cfg     Config
	sources Sources
	log     func(message string)
	device  string

	// state is stored by Check, loaded by any thread. What it points to is
	// immutable.
	state atomic.Pointer[State]
}

// NewMonitor finds the clock and makes the first check. log gets a line, in lower
// case and without a newline, when the clock becomes synchronised and when and
// why it is no longer.
//
// It returns an error if the configuration is not valid, if the mode is Yes and
// there is neither clock nor daemon, or if a synchronised clock is required and
// there is none.
func NewMonitor(cfg Config, sources Sources, log func(message string)) (*Monitor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	sources.complete()
	m := &Monitor{cfg: cfg, sources: sources, log: log, device: cfg.Device}
	m.state.Store(&State{})
	if cfg.Mode == No {
		return m, nil
	}
	if m.device == "" && cfg.Interface != "" {
		i, err := sources.Interface(cfg.Interface)
		if err != nil {
			log(fmt.Sprintf("%v; only a PTP daemon counts", err))
		}
		if err == nil {
			m.device = i.Device()
		}
	}
	status := m.read()
	if cfg.Mode == Yes && !status.HasDaemon && !status.HasOffset {
		return nil, fmt.Errorf("PTP is asked for, but there is neither a PTP clock (device %q, interface %q) nor a "+
			"daemon", m.device, cfg.Interface)
	}
	m.judge(&status)
	if state := m.State(); cfg.RequireSync && !state.Synchronised {
		return nil, fmt.Errorf("a synchronised clock is required: %w", state.Reason)
	}
	return m, nil
}

// Device returns the PTP clock's file, empty without one.
func (m *Monitor) Device() string { return m.device }

// Interval returns how often Check wants to be called, 0 for never.
func (m *Monitor) Interval() time.Duration {
	if m.cfg.Mode == No {
		return 0
	}
	return m.cfg.Interval
}

// State returns what the latest check found.
func (m *Monitor) State() State { return *m.state.Load() }

// Check reads them again. It makes system calls and may wait for the daemon for up
// to a second: it is not for a data path.
func (m *Monitor) Check() {
	if m.cfg.Mode == No {
		return
	}
	status := m.read()
	m.judge(&status)
}

// read asks every source. One that fails is absent.
func (m *Monitor) read() Status {
	s := Status{Device: m.device}
	var err error
	if s.System, err = m.sources.System(); err != nil {
		s.System = System{}
	}
	s.Daemon, err = m.sources.Daemon()
	s.HasDaemon = err == nil
	if s.Device != "" {
		s.Offset, err = m.sources.Offset(s.Device, s.System.TAI)
		s.HasOffset = err == nil
	}
	return s
}

// judge publishes the state and logs a change of it.
func (m *Monitor) judge(s *Status) {
	before := m.state.Load()
	var now State
	now.Error, now.Reason = s.Check(m.cfg.MaxOffset)
	if now.Synchronised = now.Reason == nil; now.Synchronised {
		now.Domain = domain(s)
	}
	m.state.Store(&now)
	switch {
	case now.Synchronised && !before.Synchronised:
		m.log(fmt.Sprintf("clock is synchronised by PTP within %v", now.Error))
	case !now.Synchronised && (before.Synchronised || before.Reason == nil):
		m.log(fmt.Sprintf("%v; one-way delays are not measured", now.Reason))
	}
}
