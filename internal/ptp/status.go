package ptp

import (
	"errors"
	"fmt"
	"time"
)

// Status is what one reading of clocks and daemon found.
type Status struct {
	// Device is the PTP clock's file, empty if there is none.
	Device string

	// HasDaemon says that a PTP daemon answered, with Daemon.
	HasDaemon bool
	Daemon    Daemon

	// HasOffset says that the PTP clock was compared with the system clock,
	// with Offset.
	HasOffset bool
	Offset    Offset

	// System is the kernel's view of the system clock.
	System System
}

// ErrNotSynchronised is what every reason of [Status.Check] is.
var ErrNotSynchronised = errors.New("clock is not synchronised by PTP")

func reason(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrNotSynchronised, fmt.Sprintf(format, arguments...))
}

// Check returns nil if the clock is synchronised within limit, and how far it
// may be off; or an error that says why not.
//
// The daemon knows: its port must follow a master or be one, within the limit. If
// there is a PTP clock that can be read, the system clock must agree with it:
// delays are computed with that one.
// Without a daemon that answers, a PTP clock that agrees with a disciplined
// system clock counts: then a daemon keeps the two together, as phc2sys does.
func (s *Status) Check(limit time.Duration) (time.Duration, error) {
	own := time.Duration(0) // of the system clock
	if s.HasOffset {
		own = s.Offset.Value.Abs() + s.Offset.Error
	}
	switch {
	case s.HasDaemon && s.HasOffset && s.Offset.Value.Abs() > limit+s.Offset.Error:
		return 0, reason("%s, which the daemon keeps, is %v off the system clock, more than %v", s.Device,
			s.Offset.Value, limit)
	case s.HasDaemon && s.Daemon.State == Master && s.Daemon.Grandmaster != 0:
		return own, nil
	case s.HasDaemon && s.Daemon.State != Slave:
		return 0, reason("the daemon's port is %v", s.Daemon.State)
	case s.HasDaemon && s.Daemon.Grandmaster == 0:
		return 0, reason("the daemon knows no grandmaster")
	case s.HasDaemon && s.Daemon.Offset.Abs() > limit:
		return 0, reason("its offset of %v is above %v", s.Daemon.Offset, limit)
	case s.HasDaemon:
		return s.Daemon.Offset.Abs() + own, nil
	case s.Device == "":
		return 0, reason("there is neither a PTP clock nor a daemon")
	case !s.HasOffset:
		return 0, reason("%s cannot be compared with the system clock", s.Device)
	case !s.System.Synchronised:
		return 0, reason("no daemon answers and the kernel says that nothing disciplines the system clock")
	case s.Offset.Value.Abs() > limit+s.Offset.Error:
		return 0, reason("%s is %v off the system clock, more than %v", s.Device, s.Offset.Value, limit)
	default:
		return own, nil
	}
}
