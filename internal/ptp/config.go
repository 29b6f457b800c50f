package ptp

import (
	"fmt"
	"time"
)

// Mode says whether PTP is used.
type Mode int

// The modes.
const (
	// Auto uses PTP where there is a synchronised clock, and says so where
	// there is none.
	Auto Mode = iota
	// Yes refuses to start without a PTP clock or daemon.
	Yes
	// No never searches.
	No
)

var modes = [...]string{"auto", "yes", "no"}

// String returns the value of FI_WEFT_PTP_ENABLE that asks for the mode.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modes) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modes[m]
}

// Config is how a monitor works.
type Config struct {
	Mode Mode

	// RequireSync refuses to start while the clock is not synchronised.
	RequireSync bool

	// Interface is the network interface of which the clock is used if Device
	// is empty.
	Interface string

	// Device is the PTP clock, such as /dev/ptp0; empty for the interface's.
	Device string

	// MaxOffset is how far a synchronised clock may be off: 1 ns to 1 s.
	MaxOffset time.Duration

	// Interval is between checks: 10 ms to an hour.
	Interval time.Duration
}

// DefaultConfig returns a configuration that allows 1000 ns and checks once in
// 10 s.
func DefaultConfig() Config {
	return Config{MaxOffset: 1000 * time.Nanosecond, Interval: 10 * time.Second}
}

// Validate returns an error that names the first field out of its range.
func (c *Config) Validate() error {
	if c.Mode < 0 || int(c.Mode) >= len(modes) {
		return fmt.Errorf("PTP mode %d is not known", int(c.Mode))
	}
	if c.Mode == No && c.RequireSync {
		return fmt.Errorf("PTP is off and yet a synchronised clock is required")
	}
	if c.MaxOffset < 1 || c.MaxOffset > time.Second {
		return fmt.Errorf("largest PTP offset of %v is not between 1 ns and 1 s", c.MaxOffset)
	}
	if c.Interval < 10*time.Millisecond || c.Interval > time.Hour {
		return fmt.Errorf("PTP check interval of %v is not between 10 ms and 1 h", c.Interval)
	}
	return nil
}
