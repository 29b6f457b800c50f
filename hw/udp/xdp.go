package udp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/udp/internal/xdp"
	"github.com/weft-fabric/weft/internal/congestion"
)

// openXDP has the stripes' datagrams go past the kernel's network stack, if that
// is wanted and possible. It returns an error if it must be and is not.
func (i *Iface) openXDP() error {
	if i.cfg.XDP == XDPOff {
		return nil
	}
	d, err := xdp.Open(xdp.Options{Name: i.name, Stripes: len(i.stripes), Where: i.cfg.XDPWhere, Class: i.cfg.Class})
	if err == nil && d.MaxPacket() < minPacket {
		d.Close()
		err = fmt.Errorf("frames of %d bytes: %w", d.MaxPacket(), xdp.ErrUnsupported)
	}
	if err != nil {
		if i.cfg.XDP == XDPMust {
			return fmt.Errorf("AF_XDP: %w", err)
		}
		i.logf("without AF_XDP: %v", err)
		if !i.cfg.NoInbox {
			i.group.OpenInboxes()
		}
		return nil
	}
	i.xdp = d
	i.cfg.MaxPacket = min(i.cfg.MaxPacket, d.MaxPacket())
	for n, p := range d.Ports() {
		i.stripes[n].socket.SetBypass(p)
	}
	return nil
}

// XDP says how datagrams pass the kernel's network stack by, empty if they do not.
func (i *Iface) XDP() string {
	if i.xdp == nil {
		return ""
	}
	return i.xdp.String()
}

// monotonicAt is the kernel's CLOCK_MONOTONIC at t. Go has it from the same clock,
// but does not give it; so both are read, until nothing comes between.
func monotonicAt(t time.Time) (at time.Duration, err error) {
	best := time.Hour
	for range 16 {
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return 0, fmt.Errorf("monotonic clock: %w", err)
		}
		if took := time.Since(before); took < best {
			best, at = took, time.Duration(ts.Nano())-before.Sub(t)
		}
	}
	return at, nil
}

// fromMonotonic is a moment of the kernel's CLOCK_MONOTONIC by the interface's clock.
func (i *Iface) fromMonotonic(d time.Duration) congestion.Time { return congestion.Time(d-i.boot) + 1 }
