package provider

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
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// Messages too long for a slot of the receiver's ring stand in bounce buffers until it polls. When it does not poll for
// long they run out, and the sender would get -FI_EAGAIN for as long, which for MPI_Isend of a few hundred bytes
// surprises. So from then on those of up to the inject size go as a rendezvous, as long ones do, until a buffer is free
// again: the receiver reads them from a copy in their request's own buffer. With the copy made they complete, so in the
// order of posting as ever, unless they are of fi.TransmitComplete. Closing the endpoint waits for their receivers
// (transmits.settle).

// sendShort sends a message of up to the transport's eager size.
func (e *initiator) sendShort(s *SendArgs, l *link, p *path, total uint64) error {
	starved, err := e.sendEager(s, p, total)
	if errors.Is(err, fi.EAGAIN) && starved && total <= uint64(e.hot.InjectMax) && s.work == 0 &&
		!hmem.AnyOnDevice(s.IOV) {
		return e.sendCopy(s, l, p, total)
	}
	return err
}

// sendCopy sends an RTS of a copy of a message and completes it. One of fi.TransmitComplete completes when the copy is
// read: till then it would be lost with this process.
func (e *initiator) sendCopy(s *SendArgs, l *link, p *path, total uint64) error {
	c := *s
	if s.Flags&fi.TransmitComplete != 0 {
		c.Flags |= fi.Inject
		return e.sendTracked(&c, l, p, total, false)
	}
	c.Inject, c.reported, c.Context = true, true, 0
	e.requests.copies.Add(1)
	if err := e.sendTracked(&c, l, p, total, false); err != nil {
		e.requests.copies.Add(-1)
		return err
	}
	e.sent(s, 0, total)
	return nil
}

// settle makes progress until peers have read the copies of messages that are complete, or none has read one for
// flushTime. What is left then is lost; so is all where progress is the owner's (own is false), and what only the
// calling thread could have a peer read. The caller closes the endpoint.
func (t *transmits) settle(progress func(), own bool) {
	last, end := t.copies.Load(), time.Now().Add(flushTime)
	for n := last; own && n != 0 && time.Now().Before(end); n = t.copies.Load() {
		if n < last {
			last, end = n, time.Now().Add(flushTime)
		}
		progress()
		runtime.Gosched()
	}
	if n := t.copies.Load(); n != 0 {
		log.Warnf(log.EPCtrl, "close endpoint: %d complete messages are lost, unread for %v", n, flushTime)
	}
}

// starve notes whether a message of total bytes found a bounce buffer, and says
// whether none has been free for hot.StarvedMillis. The caller leases the stripe.
func (e *txRequests) starve(p *path, lease int, total uint64, err error) bool {
	if total <= hot.SlotBody || p.transport.attr.Caps&hw.CapPeerMemory == 0 {
		return false // the receiver could not read it at once, and would complete others before it
	}
	s := e.stripes.At(lease)
	if !errors.Is(err, fi.EAGAIN) {
		s.Starved = 0
		return false
	}
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t) // always there
	starved, _ := dataplane.Starved(s, uint32(t.Sec*1000+t.Nsec/1e6)|1)
	return starved
}
