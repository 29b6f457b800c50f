package ptp

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// host is a host that tests make up.
type host struct {
	iface  Interface
	offset Offset
	daemon Daemon
	system System
	silent bool // no daemon
	broken bool // no comparison
	device string
	log    []string
}

func (h *host) sources() Sources {
	return Sources{
		Interface: func(name string) (Interface, error) {
			if name != "eth7" {
				return Interface{}, errors.New("no such interface")
			}
			return h.iface, nil
		},
		Offset: func(device string, _ int32) (Offset, error) {
			h.device = device
			if h.broken {
				return Offset{}, errors.New("broken")
			}
			return h.offset, nil
		},
		Daemon: func() (Daemon, error) {
			if h.silent {
				return Daemon{}, errors.New("silent")
			}
			return h.daemon, nil
		},
		System: func() (System, error) { return h.system, nil },
	}
}

func (h *host) monitor(change func(c *Config)) (*Monitor, error) {
	cfg := DefaultConfig()
	cfg.Interface = "eth7"
	change(&cfg)
	return NewMonitor(cfg, h.sources(), func(m string) { h.log = append(h.log, m) })
}

// TestMonitor follows a clock that is synchronised, lost and found again, and
// logs each change once.
func TestMonitor(t *testing.T) {
	h := &host{iface: Interface{Clock: 3}, daemon: Daemon{Slave, 100, 0xabcdef}}
	m, err := h.monitor(func(*Config) {})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.State(); !s.Synchronised || s.Error != 100 || s.Domain <= SystemTime || m.Device() != "/dev/ptp3" ||
		h.device != "/dev/ptp3" {
		t.Errorf("%+v, device %q, %q", s, m.Device(), h.device)
	}
	m.Check()
	h.daemon.Offset = 2000
	m.Check()
	m.Check()
	if s := m.State(); s.Synchronised || s.Domain != 0 || !errors.Is(s.Reason, ErrNotSynchronised) {
		t.Errorf("%+v", s)
	}
	h.silent, h.system, h.offset = true, System{Synchronised: true}, Offset{50, 10}
	m.Check()
	if s := m.State(); !s.Synchronised || s.Error != 60 || s.Domain != SystemTime {
		t.Errorf("without the daemon: %+v", s)
	}
	h.broken = true
	m.Check()
	if len(h.log) != 4 || !strings.Contains(h.log[1], "2µs") || !strings.Contains(h.log[3], "cannot be compared") {
		t.Errorf("log: %q", h.log)
	}
}

// TestMonitorModes: no never polls, yes insists on a clock or a daemon, and a
// required synchronisation is insisted on at the start.
func TestMonitorModes(t *testing.T) {
	alone := func() *host { return &host{iface: Interface{Clock: -1}, silent: true, broken: true} }
	h := alone()
	if m, err := h.monitor(func(c *Config) { c.Mode = No }); err != nil || m.State() != (State{}) ||
		m.Interval() != 0 || len(h.log) != 0 {
		t.Errorf("no: %v, log %q", err, h.log)
	}
	h = alone()
	if m, err := h.monitor(func(*Config) {}); err != nil || m.State().Synchronised || len(h.log) != 1 {
		t.Errorf("auto: %v, log %q", err, h.log)
	}
	h = alone()
	if m, err := h.monitor(func(c *Config) { c.Interface = "eth8" }); err != nil || m.Device() != "" ||
		len(h.log) != 2 {
		t.Errorf("no interface: %v, log %q", err, h.log)
	}
	h = alone()
	if _, err := h.monitor(func(c *Config) { c.Mode = Yes }); err == nil {
		t.Error("yes starts without clock and daemon")
	}
	h = alone()
	if _, err := h.monitor(func(c *Config) { c.RequireSync = true }); !errors.Is(err, ErrNotSynchronised) {
		t.Errorf("a required synchronisation: %v", err)
	}
	h = alone()
	h.broken, h.system.Synchronised = false, true
	m, err := h.monitor(func(c *Config) { c.Mode, c.RequireSync, c.Device = Yes, true, "/dev/ptp9" })
	if err != nil || h.device != "/dev/ptp9" || m.Interval() != 10*time.Second {
		t.Errorf("a device by name: %v, %q", err, h.device)
	}
}

// TestConfig refuses what is out of range.
func TestConfig(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.Mode = 3 },
		func(c *Config) { c.Mode, c.RequireSync = No, true },
		func(c *Config) { c.MaxOffset = 0 },
		func(c *Config) { c.MaxOffset = time.Minute },
		func(c *Config) { c.Interval = 0 },
		func(c *Config) { c.Interval = 48 * time.Hour },
	} {
		if _, err := (&host{}).monitor(change); err == nil {
			c := DefaultConfig()
			change(&c)
			t.Errorf("%+v is accepted", c)
		}
	}
}
