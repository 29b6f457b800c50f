package messages

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
func (s *Sender) sendLossy(m *Send, total uint64) error {
	if m.Flags&(ackFlags|fi.Fence) != 0 {
		return log.Reject(log.EPData, fi.EBADFLAGS,
			"send: flags %#x are not for a datagram", m.Flags&(ackFlags|fi.Fence))
	}
	if total > uint64(s.hot.EagerMax) {
		return log.Reject(log.EPData, fi.EMSGSIZE, "send: datagram of %d bytes, at most %d", total, s.hot.EagerMax)
	}
	l, err := s.host.LinkOf(m.Dest)
	if err != nil {
		return log.Reject(log.EPData, err, "send to address %d: not in the address vector", m.Dest)
	}
	defer l.Release()
	p, err := s.links.Connect(l)
	if err == nil {
		s.links.Publish(m.Dest, l, p)
		p.Via.Notify()
		err = fi.EAGAIN
		if p.EagerOpen() {
			_, err = s.sendEager(m, p, total)
		}
	}
	if !s.links.Stalled(m.Dest, l, err) {
		return err
	}
	return s.drop(m, total, err)
}

// drop completes a datagram that does not go out. fi.EAGAIN if there is no
// room for the completion.
func (s *Sender) drop(m *Send, total uint64, why error) error {
	lease, ok := s.stripes.Acquire(0)
	if !ok {
		return fi.EAGAIN
	}
	defer s.stripes.Release(lease)
	completes, ring := s.completes(m), m.ring(s.hot)
	if completes && !s.host.Room(ring) {
		return fi.EAGAIN
	}
	s.sent(m, completes, ring, total)
	log.Debugf(log.EPData, "datagram to address %d dropped: %v", m.Dest, why)
	return nil
}
