package udp

import (
	"net/netip"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// onForeign gives a datagram that is not ours to the function Config.Foreign.
func (s *stripe) onForeign(now congestion.Time, from *sock.Addr, b []byte) {
	if s.i.cfg.Foreign == nil || wire.Ours(b) {
		s.i.malformed.Add(1)
		return
	}
	answer := s.i.cfg.Foreign(from.AddrPort(), b)
	if n := len(answer); n > 0 && n <= len(b) && from.Usable() && s.budget.take(now) {
		copy(s.take(n), answer)
		s.answer(from, n)
	}
}

// SendForeign sends a datagram of the protocol of Config.Foreign. One that
// cannot be sent counts as lost. Any thread may call it, but not Foreign.
func (i *Iface) SendForeign(to netip.AddrPort, b []byte) {
	a := sock.FromAddrPort(to)
	if i.closed.Load() || !a.Usable() || len(b) == 0 || len(b) > minPacket {
		return
	}
	s := i.stripes[0]
	s.lease.lock()
	copy(s.take(len(b)), b)
	s.answer(&a, len(b))
	s.leave()
}
