package provider

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// link is an endpoint's path to one peer. Links are never removed while the
// endpoint is open: a thread may be using one.
type link struct {
	index uint32 // in Endpoint.links, immutable
	name  names.Name
	raw   []byte // name as the interface takes it, immutable

	// path is the connected transport endpoint, nil before the first
	// connect. Written under mu, read by any thread; both sequentially
	// consistent.
	path atomic.Pointer[path]

	// inFlight counts requests that wait for this peer's acknowledgement.
	// Added to by posting threads, subtracted from by the lease holder.
	inFlight atomic.Int64

	// mu serialises connecting. It is not on the data path: a connected
	// link never takes it.
	mu      sync.Mutex
	since   time.Time // first of the failed attempts to connect, zero: none
	nextTry time.Time
	lost    bool      // the peer was connected once and is gone
	filled  []fi.Addr // lines of the hot peer table that point at path
}

// path is a transport endpoint, boxed so that it can be swapped atomically.
type path struct {
	hw.Endpoint
	name names.Name // the peer's own, which may differ from the link's
}

// retryInterval is the pause between two attempts to connect to a peer that
// does not answer.
const retryInterval = time.Millisecond

// ready returns the link's path if it works.
func (l *link) ready() (hw.Endpoint, bool) {
	p := l.path.Load()
	if p == nil || p.Err() != nil {
		return nil, false
	}
	return p.Endpoint, true
}

// connect returns the link's path, connecting if need be. Errors: fi.EAGAIN
// while the peer may still come up, fi.EHOSTUNREACH when it has not answered
// for the connect timeout, fi.ECONNRESET when it was there and is gone,
// fi.EACCES when it belongs to somebody else.
func (e *Endpoint) connect(l *link) (hw.Endpoint, error) {
	if p, ok := l.ready(); ok {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.ready(); ok {
		return p, nil
	}
	now := time.Now()
	if now.Before(l.nextTry) {
		return nil, e.unreachable(l, now)
	}
	l.nextTry = now.Add(retryInterval)
	if old := l.path.Load(); old != nil {
		e.forget(l)
	}
	p, err := e.iface.Connect(l.raw)
	switch {
	case err == nil:
		l.since, l.nextTry, l.lost = time.Time{}, time.Time{}, false
		own, err := names.FromSockaddr(p.Address())
		if err != nil {
			log.Warnf(log.EPCtrl, "%s is known by a name that does not parse: %v", l.name, err)
		}
		l.path.Store(&path{p, own})
		return p, nil
	case errors.Is(err, hw.ErrNoResource):
		return nil, fi.EAGAIN
	case errors.Is(err, hw.ErrPermission):
		log.Warnf(log.EPCtrl, "connect to %s: %v", l.name, err)
		return nil, fi.EACCES
	case errors.Is(err, hw.ErrInvalid):
		log.Warnf(log.EPCtrl, "connect to %s: %v", l.name, err)
		return nil, fi.EINVAL
	}
	if l.since.IsZero() {
		l.since = now
	}
	return nil, e.unreachable(l, now)
}

// unreachable says how a failing link looks to the caller. l.mu is held.
func (e *Endpoint) unreachable(l *link, now time.Time) error {
	if l.lost {
		return fi.ECONNRESET
	}
	if !l.since.IsZero() && now.Sub(l.since) > e.domain.cfg.ConnectTimeout {
		return fi.EHOSTUNREACH
	}
	return fi.EAGAIN
}

// forget takes the peer's lines away from the C path. l.mu is held.
func (e *Endpoint) forget(l *link) {
	l.lost = true
	for _, addr := range l.filled {
		line := e.line(addr)
		if atomic.LoadUint32(&line.Link) == l.index+1 {
			atomic.StoreUintptr(&line.Slots, 0)
		}
	}
	l.filled = l.filled[:0]
}

// line returns the hot line of an address, which must be below PeerLimit.
func (e *Endpoint) line(addr fi.Addr) *hot.Peer { return e.peers.At(uint32(addr)) }

// linkOf returns the link of an address of the endpoint's AV, fi.EINVAL for
// an address that is not in it.
func (e *Endpoint) linkOf(addr fi.Addr) (*link, error) {
	if uint64(addr) >= e.hot.PeerLimit {
		return nil, fi.EINVAL
	}
	line := e.line(addr)
	shared := e.av.Shared()
	for {
		// Another process may change a shared address vector at any time:
		// this looks, and drops the lines of addresses that are gone.
		seen := e.av.Generation()
		if i := atomic.LoadUint32(&line.Link); i != 0 && !shared {
			return (*e.links.Load())[i-1], nil
		}
		name, ok := e.av.Name(addr)
		if !ok {
			return nil, fi.EINVAL
		}
		l := e.linkTo(name)
		if shared {
			return l, nil
		}
		atomic.StoreUint32(&line.Link, l.index+1)
		if e.av.Generation() == seen {
			return l, nil
		}
		atomic.StoreUint32(&line.Link, 0) // the address may have been removed meanwhile
	}
}

// linkTo returns the link to a named peer, making it if need be.
func (e *Endpoint) linkTo(name names.Name) *link {
	e.linkMu.Lock()
	defer e.linkMu.Unlock()
	if l := e.linkByName[name]; l != nil {
		return l
	}
	old := *e.links.Load()
	l := &link{index: uint32(len(old)), name: name, raw: name.AppendSockaddr(nil)}
	list := append(old[:len(old):len(old)], l)
	e.links.Store(&list)
	e.linkByName[name] = l
	return l
}

// fill publishes a connected peer to the C path. A shared address vector has
// no lines: C cannot see that another process changed it.
func (e *Endpoint) fill(addr fi.Addr, l *link, p hw.Endpoint) {
	line := e.line(addr)
	if e.av.Shared() || atomic.LoadUintptr(&line.Slots) != 0 {
		return
	}
	seen := e.av.Generation()
	defer func() {
		if e.av.Generation() != seen {
			atomic.StoreUintptr(&line.Slots, 0)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if cur := l.path.Load(); cur == nil || cur.Endpoint != p || p.Err() != nil {
		return
	}
	if e.iface.FillPeer(p, line) != nil {
		return
	}
	l.filled = append(l.filled, addr)
}

// dropAddress is called when an address is removed from the AV.
func (e *Endpoint) dropAddress(addr fi.Addr) {
	if uint64(addr) >= e.hot.PeerLimit {
		return
	}
	line := e.line(addr)
	atomic.StoreUintptr(&line.Slots, 0)
	atomic.StoreUint32(&line.Link, 0)
	for i := range e.sourcesSeen.Load() {
		src := e.sourceLines.At(i)
		atomic.CompareAndSwapUint64(&src.Addr, uint64(addr)+1, 0)
	}
}
