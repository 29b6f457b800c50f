package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// Unreliable datagrams (FI_EP_DGRAM) go the way of eager messages. What cannot
// go out is dropped, as if it had been lost on the way: no sender waits for a
// peer that is not there or does not receive. A receiver drops what it cannot
// hold; it never closes its eager window. In between a sender waits a little
// (fi.EAGAIN) for a receiver that is only slow.

// sendLossy sends a datagram of total bytes, or drops it. Errors: fi.EAGAIN,
// fi.EBADFLAGS for flags that ask for an answer, fi.EMSGSIZE, fi.EINVAL for an
// address that is not in the AV.
func (e *initiator) sendLossy(s *SendArgs, total uint64) error {
	if s.Flags&(ackFlags|fi.Fence) != 0 {
		return log.Reject(log.EPData, fi.EBADFLAGS,
			"send: flags %#x are not for a datagram", s.Flags&(ackFlags|fi.Fence))
	}
	if total > uint64(e.hot.EagerMax) {
		return log.Reject(log.EPData, fi.EMSGSIZE, "send: datagram of %d bytes, at most %d", total, e.hot.EagerMax)
	}
	l, err := e.linkOf(s.Dest)
	if err != nil {
		return log.Reject(log.EPData, err, "send to address %d: not in the address vector", s.Dest)
	}
	defer l.Release()
	p, err := e.links.Connect(l)
	if err == nil {
		e.links.Publish(s.Dest, l, p)
		p.Via.Wake()
		err = fi.EAGAIN
		if p.EagerOpen() {
			_, err = e.sendEager(s, p, total)
		}
	}
	if !e.links.Stalled(s.Dest, l, err) {
		return err
	}
	return e.drop(s, err)
}

// drop completes a datagram that does not go out. fi.EAGAIN if there is no
// room for the completion.
func (e *initiator) drop(s *SendArgs, why error) error {
	lease, ok := e.tx.stripes.Acquire(0)
	if !ok {
		return fi.EAGAIN
	}
	defer e.tx.stripes.Release(lease)
	if e.bound.completes(s) {
		if !e.bound.txCQ.Room(1 + lease) {
			return fi.EAGAIN
		}
		if entry := txEntry(s.Context, s.Tagged); !e.bound.txCQ.TryComplete(1+lease, entry) {
			e.bound.txCQ.Complete(entry)
		}
	}
	total := uint64(0)
	for _, v := range s.IOV {
		total += v.Len
	}
	e.countWork(e.bound.txCntr.Load(), s.work, s.Flags&fi.Completion != 0, false, total)
	log.Debugf(log.EPData, "datagram to address %d dropped: %v", s.Dest, why)
	return nil
}
