package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/ordering"
)

// Send posts a message of total bytes, which is checked. It connects the link of the address, of which the data plane
// sends the next message then, and chooses how the message goes. Errors: fi.EAGAIN when nothing happened and the caller
// may try again after progress; fi.EINVAL for memory of a device that is injected; those of the link, and of a peer
// that cannot be reached; of datagrams fi.EBADFLAGS and fi.EMSGSIZE.
func (s *Sender) Send(m *Send, total uint64) error {
	if m.injects() && m.onDevice() {
		return log.Reject(log.EPData, fi.EINVAL, "inject: only memory of the process itself")
	}
	if s.lossy {
		return s.sendLossy(m, total)
	}
	l, err := s.host.LinkOf(m.Dest)
	if err != nil {
		return log.Reject(log.EPData, err, "send to address %d: %v", m.Dest, links.NoLink(err))
	}
	defer l.Release()
	p, err := s.links.Connect(l)
	if err != nil {
		return s.counts.Refused(err)
	}
	s.links.Publish(m.Dest, l, p)
	if m.Flags&fi.Fence != 0 && (l.Awaited() != 0 || s.pendings.To(m.Dest)) {
		return fi.EAGAIN
	}
	if !s.rules.InTurn(&l.Order, ordering.Send) {
		return fi.EAGAIN
	}
	open := p.EagerOpen()
	eager := p.Via.Eager
	p.Via.Notify()
	switch {
	case m.tracked(p):
		return s.sendTracked(m, l, p, total, open && total <= eager)
	case open && total <= eager:
		return s.sendShort(m, l, p, total)
	}
	return s.sendTracked(m, l, p, total, false)
}
