package provider

import (
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
)

// Messages too long for a slot of the receiver's ring stand in bounce buffers
// until he looks. When he does not look for long they run out, and the sender would
// be told to try again for as long, which for MPI_Isend of a few hundred bytes
// surprises. So from then on such messages are announced, as long ones are, until a
// buffer is free again: the receiver reads them from where they are, or, injected, from
// their request's own buffer.

// sendShort sends a message of up to the port's eager size.
func (e *Endpoint) sendShort(s *SendArgs, l *link, p *path, total uint64) error {
	starved, err := e.sendEager(s, p, total)
	if err == fi.EAGAIN && starved {
		return e.sendTracked(s, l, p, total, false)
	}
	return err
}

// starve notes whether a message of total bytes found a bounce buffer, and tells
// whether none has been free for hot.StarvedMillis. The caller leases the stripe.
func (e *Endpoint) starve(p *path, lease int, total uint64, err error) bool {
	if total <= hot.SlotBody || p.port.attr.Caps&hw.CapPeerMemory == 0 && p.port.exposes() {
		return false // another host's: it is the window that lacks room, also for an announcement
	}
	s := e.stripes.At(lease)
	if err != fi.EAGAIN {
		s.Starved = 0
		return false
	}
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t) // always there
	now := uint32(t.Sec*1000+t.Nsec/1e6) | 1
	if s.Starved == 0 {
		s.Starved = now
	}
	return now-s.Starved >= hot.StarvedMillis
}
