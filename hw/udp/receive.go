package udp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// receive takes in what has come to the socket, up to a bound. It returns the
// time, as of its last poll, and whether anything came.
func (s *stripe) receive() (now congestion.Time, some bool) {
	for range receiveBatches {
		// The time before the poll: a thread that loses its processor does so at
		// the end of a system call, and what comes meanwhile is late, not slow.
		before := s.i.now()
		n, full, err := s.socket.Receive(s.in, time.Duration(before))
		if err != nil {
			s.socket.Errors(s.onSendError)
			continue
		}
		if n == 0 {
			s.endDoomed()
			s.drainStamps()
			s.emptyAt = before
			return before, some
		}
		some = true
		// The wall clock is read first: a thread that loses its processor between the two takes an arrival for
		// late then. One that is taken for early makes a path's least delay less than it is, for seconds.
		var wall time.Duration
		if s.in.Stamped() {
			wall = time.Duration(time.Now().UnixNano())
		}
		now = s.i.now()
		for k := range n {
			if !s.in.Message(k, &s.message) {
				s.i.malformed.Add(1)
				continue
			}
			s.split(now, s.arrival(now, wall))
		}
		s.settle(now)
		if !full && len(s.doomed) == 0 { // else until there is nothing, whatever the sockets
			s.emptyAt = before
			return now, some
		}
		if s.in.WasSingle() {
			return now, some // Progress asked for no more
		}
	}
	return s.i.now(), some
}

// arrival is when the message being read came to this host. The kernel's stamp
// is of the wall clock, which may be set at any time; the message came after
// the socket was last seen empty in any case.
func (s *stripe) arrival(now congestion.Time, wall time.Duration) congestion.Time {
	if s.message.Driver != 0 {
		return max(min(now, s.i.fromMonotonic(s.message.Driver)), s.emptyAt)
	}
	if s.message.Stamp == 0 {
		return now
	}
	return now.Add(-min(max(wall-s.message.Stamp, 0), now.Sub(s.emptyAt)))
}

// split hands on the datagrams of the message being read.
func (s *stripe) split(now, at congestion.Time) {
	m := &s.message
	b := m.Bytes
	for len(b) > 0 {
		n := min(max(m.Segment, 1), len(b))
		first := b[:n:n]
		s.dispatch(now, at, &m.From, first, m.Marked)
		b = b[n:]
		if len(b) >= n && !m.Marked {
			b = b[s.handleTrain(now, at, &m.From, first, b):]
		}
	}
}

// dispatch takes in one datagram. b is changed.
func (s *stripe) dispatch(now, at congestion.Time, from *sock.Addr, b []byte, marked bool) {
	switch wire.TypeOf(b) {
	case wire.TypeData:
		s.data(now, at, from, b, marked)
	case wire.TypeInit:
		s.onInit(now, from, b)
	case wire.TypeRetry:
		s.onRetry(now, from, b)
	case wire.TypeAccept:
		s.onAccept(now, from, b)
	case wire.TypeMoved:
		s.onMoved(now, b)
	case wire.TypeReset:
		s.onReset(now, from, b)
	default:
		s.onForeign(now, from, b)
	}
}

// reset answers a packet of a connection that does not exist.
func (s *stripe) reset(now congestion.Time, to *sock.Addr, h *wire.Header) {
	if !to.Usable() || !s.budget.take(now) {
		return
	}
	h.PutReset(s.take(wire.ResetSize))
	s.answer(to, wire.ResetSize)
}

// take returns n bytes of a datagram to be built, and answer sends it.
func (s *stripe) take(n int) []byte {
	if s.out.Full(n) {
		s.flush()
	}
	return s.out.Take(n)
}

func (s *stripe) answer(to *sock.Addr, n int) {
	s.out.Add(s.socket, to, sock.NoOwner, s.out.Take(n), nil, true)
}

// onReset takes in that the peer does not know a connection.
func (s *stripe) onReset(now congestion.Time, from *sock.Addr, b []byte) {
	var h wire.Header
	if h.Parse(b) != nil {
		s.i.malformed.Add(1)
		return
	}
	c := s.byPeer[peerKey{*from, h.CID}]
	if c == nil || !c.sentNumber(&h) {
		return // forged, or of a connection that is forgotten here, too
	}
	c.life.hint(now, "the peer does not know the connection")
}

// sentNumber reports whether h may be of a packet of ours.
func (c *Endpoint) sentNumber(h *wire.Header) bool {
	next := c.tx.sent.Number()
	return wire.Near(h.Number, next) < next
}

// onSendError takes in an error that the kernel reports of a datagram that was sent.
func (s *stripe) onSendError(t *sock.SendError) {
	if t.Left != nil {
		s.left(t.Left)
		return
	}
	now := s.i.now()
	if t.Local && t.Err == unix.EMSGSIZE && t.MTU > 0 {
		for _, c := range s.conns { // said by this host's kernel, of its interface
			if c != nil && c.addr == t.To && c.alive() {
				c.tx.mtu.TooBig(t.MTU - sock.Overhead(&c.addr))
			}
		}
		return
	}
	switch wire.TypeOf(t.Quoted) {
	case wire.TypeInit:
		var p wire.Init
		if t.Err == unix.ECONNREFUSED && len(t.Quoted) >= wire.InitSize && p.Parse(t.Quoted[:wire.InitSize]) == nil {
			if c := s.conn(p.Client.CID); c != nil && c.addr == t.To {
				c.dial.refused = true
			}
		}
	case wire.TypeData:
		var h wire.Header
		if h.Parse(t.Quoted) != nil {
			return
		}
		c := s.byPeer[peerKey{t.To, h.CID}]
		if c == nil || !c.sentNumber(&h) {
			return // not a datagram of ours: forged
		}
		switch {
		case t.Err == unix.ECONNREFUSED:
			c.life.hint(now, "the port is closed")
		case t.Err == unix.EMSGSIZE && t.MTU > 0:
			c.tx.mtu.TooBig(t.MTU - sock.Overhead(&c.addr))
		}
	}
}
