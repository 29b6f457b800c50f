package links

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Connect returns the link's path, connecting if need be. Errors: fi.EAGAIN
// while the peer may still come up, or is gone and its last messages are not delivered;
// fi.EHOSTUNREACH when it has not answered for the connect timeout, fi.ECONNRESET
// when it was there and is gone, or the path to it is and it has not answered for that time,
// fi.EACCES when it belongs to another user, fi.ESHUTDOWN after the end of a connection.
func (s *Links) Connect(l *Link) (*Path, error) {
	if p, ok := l.Ready(); ok && !p.former.Load() {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.Ready(); ok {
		return s.confirm(p)
	}
	if s.host.Disconnected() {
		return nil, fi.ESHUTDOWN
	}
	old := l.path.Load()
	if old != nil && !old.Reported() && !s.host.Closed() {
		s.host.SeekEnds()
		return nil, fi.EAGAIN // its last messages come first
	}
	now, limit := time.Now(), s.config.ConnectTimeout
	if !l.attempts.Begin(now) {
		return nil, l.attempts.Status(now, limit)
	}
	if old != nil {
		s.forget(l)
	}
	ep, transport, err := s.connectOver(l)
	if err != nil {
		status, news := l.attempts.Fail(err, now, limit)
		if news {
			log.Warnf(log.EPCtrl, "connect to %s: %v", l.To, err)
		}
		return nil, status
	}
	l.attempts.Reset()
	l.around = nil
	l.path.Store(s.pathOf(l, ep, transport))
	return l.path.Load(), nil
}

// pathOf is the path over a transport endpoint that is connected. The caller has l.mu.
func (s *Links) pathOf(l *Link, ep hw.Endpoint, transport *Transport) *Path {
	own, err := peers.ParseAddress(ep.Address())
	if err != nil {
		log.Warnf(log.EPCtrl, "%s is known by a name that does not parse: %v", l.To, err)
	}
	p := NewPath(ep, transport)
	p.Peer = own
	s.host.Connected(&p.Path)
	if transport.On.OneSided() {
		p.Keys = &rkey.Peer{}
		if d, ok := ep.(hw.DevicePeer); ok {
			p.PeerDevice = d.DeviceAddress()
		}
	}
	if line := (hot.Peer{}); transport.Number == 0 && s.local.FillPeer(ep, &line) == nil {
		p.Slots = line.Slots
	}
	l.paths++
	p.Serial = l.paths
	return p
}

// confirm returns the path if its peer still has its address, fi.EAGAIN while that is not known, or the peer
// is gone and its end is not reported. The caller has link.mu.
func (s *Links) confirm(p *Path) (*Path, error) {
	if c, ok := p.Endpoint.(hw.Confirmer); ok && p.former.Load() {
		p.Via.Notify()
		if err := c.Confirm(); err != nil {
			if errors.Is(err, hw.ErrPeerDead) {
				s.host.SeekEnds()
			}
			return nil, fi.EAGAIN
		}
	}
	p.former.Store(false)
	return p, nil
}

// connectOver connects to the peer of a link over the first transport that leads to it. One with an address of another
// network namespace may share memory with us (FI_WEFT_SHM_ACROSS), and one with an address of this host may share no
// memory with us: it has a /dev/shm or an FI_WEFT_SHM_DIR of its own, as containers do. Then it is reached as on
// another host. Errors as of hw.Iface's Connect; hw.ErrNoPath without a transport.
func (s *Links) connectOver(l *Link) (hw.Endpoint, *Transport, error) {
	here := s.host.Here(l.To.Name)
	if len(s.transports) > 1 && (s.apart || !here && !s.config.Across()) {
		return l.connectFirst(s.transports[1:])
	}
	own := s.transports[0]
	ep, err := own.Connect(l.raw)
	at := l.path.Load()
	if err == nil || len(s.transports) == 1 || !errors.Is(err, hw.ErrUnreachable) || at != nil && at.Via == own {
		return ep, own, err // one that shared memory with us is gone, or starts again and will
	}
	far, p, farErr := l.connectFirst(s.transports[1:])
	if farErr != nil {
		return nil, own, peers.WithEnd(err, farErr) // it may still come up
	}
	// The peer has answered, and it made its segment before it could.
	ep, err = own.Connect(l.raw)
	if err == nil || !errors.Is(err, hw.ErrUnreachable) {
		return ep, own, err
	}
	if here {
		l.detour(own, err)
	}
	return far, p, nil
}

// connectFirst connects over the first of some transports that leads to the peer. One where nothing answers yet is
// waited for; after another error the next is tried, and what the last one says counts, and that the peer has ended if
// any says so.
func (l *Link) connectFirst(list []*Transport) (hw.Endpoint, *Transport, error) {
	for _, p := range list {
		p.Notify() // the answer is worth polling for
	}
	var before error
	for i, p := range list {
		ep, err := p.Connect(l.raw)
		err = peers.WithEnd(err, before)
		if err == nil || i == len(list)-1 || errors.Is(err, hw.ErrUnreachable) && !errors.Is(err, hw.ErrNoPath) {
			return ep, p, err
		}
		l.detour(p, err)
		before = err
	}
	return nil, nil, hw.ErrNoPath
}

// DatagramPatience is how long nothing goes out to a peer before datagrams to it
// are dropped.
const DatagramPatience = 100 * time.Millisecond

// stall is what a link remembers of a peer that takes nothing.
type stall struct {
	since time.Time // zero: it took the last
	tail  uint64    // of its ring then: C's posts move it
}

// NoLink is the text of an error of Of, or of a connection that leads nowhere.
func NoLink(err error) string {
	if errors.Is(err, fi.EINVAL) {
		return "not in the address vector"
	}
	return err.Error()
}

// Stalled notes the outcome of a try to send a datagram to an address, and reports whether to try no more.
func (s *Links) Stalled(dest fi.Addr, l *Link, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.stall = stall{}
		return false
	}
	if !errors.Is(err, fi.EAGAIN) {
		return true
	}
	tail := uint64(0)
	if line := s.Line(dest); line != nil && atomic.LoadUintptr(&line.Slots) != 0 {
		tail = atomic.LoadUint64(wordAt(line.Tail))
	}
	if l.stall.since.IsZero() || l.stall.tail != tail {
		l.stall = stall{time.Now(), tail}
	}
	return time.Since(l.stall.since) >= DatagramPatience
}
