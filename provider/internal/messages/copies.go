package messages

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/links"
)

// Messages too long for a slot of the receiver's ring stand in bounce buffers until it polls. When it does not poll for
// long they run out, and the sender would get -FI_EAGAIN for as long, which for MPI_Isend of a few hundred bytes
// surprises. So from then on those of up to the inject size go as a rendezvous, as long ones do, until a buffer is free
// again: the receiver reads them from a copy in their request's own buffer. With the copy made they complete, so in the
// order of posting as ever, unless they are of fi.TransmitComplete. Closing the endpoint waits for their receivers
// (Settle).

// sendShort sends a message of up to the transport's eager size.
func (s *Sender) sendShort(m *Send, l *links.Link, p *links.Path, total uint64) error {
	starved, err := s.sendEager(m, p, total)
	if errors.Is(err, fi.EAGAIN) && starved && total <= uint64(s.hot.InjectMax) && m.Work == 0 && !m.onDevice() {
		return s.sendCopy(m, l, p, total)
	}
	return err
}

// sendCopy sends an RTS of a copy of a message and completes it. One of fi.TransmitComplete completes when the copy is
// read: till then it would be lost with this process.
func (s *Sender) sendCopy(m *Send, l *links.Link, p *links.Path, total uint64) error {
	c := *m
	if m.Flags&fi.TransmitComplete != 0 {
		c.Flags |= fi.Inject
		return s.sendTracked(&c, l, p, total, false)
	}
	c.Inject, c.reported, c.Context = true, true, 0
	s.requests.copies.Add(1)
	if err := s.sendTracked(&c, l, p, total, false); err != nil {
		s.requests.copies.Add(-1)
		return err
	}
	s.sent(m, s.completes(m), 0, total)
	return nil
}

// Settle makes progress until peers have read the copies of messages that are complete, or none has read one for
// a limit of time. What is left then is lost; so is all where progress is not the caller's to make (own is false), and
// what only the calling thread could have a peer read. The caller closes the endpoint.
func (s *Sender) Settle(progress func(), own bool, limit time.Duration) {
	t := &s.requests
	last, end := t.copies.Load(), time.Now().Add(limit)
	for n := last; own && n != 0 && time.Now().Before(end); n = t.copies.Load() {
		if n < last {
			last, end = n, time.Now().Add(limit)
		}
		progress()
		runtime.Gosched()
	}
	if n := t.copies.Load(); n != 0 {
		log.Warnf(log.EPCtrl, "close endpoint: %d complete messages are lost, unread for %v", n, limit)
	}
}

// starve notes whether a message of total bytes found a bounce buffer, and says
// whether none has been free for hot.StarvedMillis. The caller leases the stripe.
func (s *Sender) starve(p *links.Path, lease int, total uint64, err error) bool {
	if total <= hot.SlotBody || p.Via.Attr.Caps&hw.CapPeerMemory == 0 {
		return false // the receiver could not read it at once, and would complete others before it
	}
	at := s.stripes.At(lease)
	if !errors.Is(err, fi.EAGAIN) {
		at.Starved = 0
		return false
	}
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t) // always there
	starved, _ := dataplane.Starved(at, uint32(t.Sec*1000+t.Nsec/1e6)|1)
	return starved
}
