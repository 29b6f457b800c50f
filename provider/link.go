package provider

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/probe"
)

// link is what an endpoint knows of one peer, and the path by which it reaches the peer now. link_sweep.go removes it.
type link struct {
	peers.Use // threads that are not the lease holder hold the link while they use it
	rma.Link
	to  peers.Address // immutable
	raw []byte        // to as the interface takes it, immutable

	// path is the connected transport endpoint, nil before the first
	// connect. Written under mu, read by any thread; both sequentially
	// consistent.
	path atomic.Pointer[path]

	// transmits counts operations that wait for this peer's answer and that InFlight does not count: it is InFlight of
	// line, which is the data plane's of the link's number, or its own where the data plane has none; both pointers are
	// immutable.
	transmits *atomic.Int64
	line      *dataplane.Link

	// lines counts the lines of the hot peer table whose Link names
	// it. Changed by any thread; sequentially consistent.
	lines atomic.Int32

	// stats is the peer's line of counters, nil while there is none; hidden says
	// that there is no room for one. The lease holder's.
	stats  *stats.PeerLine
	hidden bool

	ways list.Tally // what lists have moved to and from the peer

	// probed is what probes say of path, nil: nothing. Stored by the prober, read
	// by the lease holder.
	probed atomic.Pointer[probe.Peer]

	// mu serialises connecting. It is not on the data path: a connected
	// link never takes it.
	mu       sync.Mutex
	paths    uint32         // that it has had
	attempts peers.Attempts // to connect
	listed   bool           // an address of the address vector has led here
	around   []*transport   // that do not lead to the peer
	filled   []uint32       // lines of the hot peer table that point at path
	backs    []uint32       // lines of the endpoint's backLines that do
	stall    stall          // of datagrams
}

// path is a transport endpoint, boxed so that it can be swapped atomically.
type path struct {
	rma.Path
	transport *transport
	peer      peers.Address // the peer's own, whose name may differ from the link's
	// slots is the address of the peer's inbound ring, as lines of the hot peer table have it, 0: none. Immutable.
	slots uintptr
	// former says that the peer's address was inserted into the address vector again since it was connected:
	// another endpoint may have it now. Written under link.mu, read by connect; sequentially consistent.
	former atomic.Bool
}

// newPath is the path over an endpoint of a transport.
func newPath(ep hw.Endpoint, p *transport) *path {
	return &path{Path: rma.Path{Endpoint: ep, On: &p.on}, transport: p}
}

// leave forgets the endpoint of a path whose end was reported, and what else the path has of it.
func (l *link) leave(p *path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path.Load() == p {
		gone := newPath(peers.Gone{PathLost: errors.Is(p.Err(), hw.ErrPathLost)}, p.transport)
		gone.peer, gone.slots = p.peer, p.slots
		gone.former.Store(p.former.Load())
		l.path.Store(gone)
	}
}

// linkTable holds an endpoint's links.
type linkTable struct{ links peers.Table[link, *link] }

// awaited is how many operations wait for the peer's answer.
func (l *link) awaited() int64 { return l.InFlight.Load() + l.transmits.Load() }

// ready returns the link's path if it works.
func (l *link) ready() (*path, bool) {
	p := l.path.Load()
	if p == nil || p.Err() != nil {
		return nil, false
	}
	return p, true
}

// connect returns the link's path, connecting if need be. Errors: fi.EAGAIN
// while the peer may still come up, or is gone and its last messages are not delivered;
// fi.EHOSTUNREACH when it has not answered for the connect timeout, fi.ECONNRESET
// when it was there and is gone, or the path to it is and it has not answered for that time,
// fi.EACCES when it belongs to another user, fi.ESHUTDOWN after the end of a connection.
func (e *initiator) connect(l *link) (*path, error) {
	if p, ok := l.ready(); ok && !p.former.Load() {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.ready(); ok {
		return e.confirm(p)
	}
	if e.conn.disconnected() {
		return nil, fi.ESHUTDOWN
	}
	old := l.path.Load()
	if old != nil && !old.Reported() && e.state.Load() != stateClosed {
		e.rx.seekEnds()
		return nil, fi.EAGAIN // its last messages come first
	}
	now, limit := time.Now(), e.domain.cfg.ConnectTimeout
	if !l.attempts.Begin(now) {
		return nil, l.attempts.Status(now, limit)
	}
	if old != nil {
		e.forget(l)
	}
	ep, transport, err := e.connectOver(l)
	if err != nil {
		status, news := l.attempts.Fail(err, now, limit)
		if news {
			log.Warnf(log.EPCtrl, "connect to %s: %v", l.to, err)
		}
		return nil, status
	}
	l.attempts.Reset()
	l.around = nil
	l.path.Store(e.pathOf(l, ep, transport))
	e.stats.Shared(stats.SharedConnects, 1)
	return l.path.Load(), nil
}

// pathOf is the path over a transport endpoint that is connected. The caller has l.mu.
func (e *initiator) pathOf(l *link, ep hw.Endpoint, transport *transport) *path {
	own, err := peers.ParseAddress(ep.Address())
	if err != nil {
		log.Warnf(log.EPCtrl, "%s is known by a name that does not parse: %v", l.to, err)
	}
	p := newPath(ep, transport)
	p.peer = own
	e.rmas.Connected(&p.Path)
	if transport.on.OneSided() {
		p.Keys = &rkey.Peer{}
		if d, ok := ep.(hw.DevicePeer); ok {
			p.PeerDevice = d.DeviceAddress()
		}
	}
	if line := (hot.Peer{}); transport.number == 0 && e.iface.FillPeer(ep, &line) == nil {
		p.slots = line.Slots
	}
	l.paths++
	p.Serial = l.paths
	return p
}

// confirm returns the path if its peer still has its address, fi.EAGAIN while that is not known, or the peer
// is gone and its end is not reported. The caller has link.mu.
func (e *peering) confirm(p *path) (*path, error) {
	if c, ok := p.Endpoint.(hw.Confirmer); ok && p.former.Load() {
		p.transport.wake()
		if err := c.Confirm(); err != nil {
			if errors.Is(err, hw.ErrPeerDead) {
				e.rx.seekEnds()
			}
			return nil, fi.EAGAIN
		}
	}
	p.former.Store(false)
	return p, nil
}

// renew resets a link for an address that has just been inserted and is used the first time: what became of the
// endpoint that had that address before does not count, be its own still in the address vector or not.
func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts.Reset()
	if p := l.path.Load(); p != nil && l.listed {
		p.former.Store(true)
	}
	l.listed = true
}

// broken is what a post returns of which nothing went out because of err. A path that is lost is not the
// peer's end yet, or the peer has begun anew: the next post learns which.
func (e *peering) broken(err error) error {
	if !errors.Is(err, fi.ECONNRESET) {
		return err
	}
	e.rx.seekEnds()
	return fi.EAGAIN
}

// forget takes the peer's lines away from the data plane. The caller has l.mu.
func (e *peering) forget(l *link) {
	p := l.path.Load()
	if p == nil || !p.former.Load() { // else the end is of the endpoint that had the address before
		l.attempts.Lose(p != nil && errors.Is(p.Err(), hw.ErrPathLost))
	}
	for _, i := range l.filled {
		line := e.peers.At(uint64(i))
		if atomic.LoadUint32(&line.Link) == l.Index+1 {
			atomic.StoreUintptr(&line.Slots, 0)
			e.dropPath(i)
		}
	}
	l.filled = l.filled[:0]
	for _, i := range l.backs {
		if line := e.backLines.At(i); atomic.LoadUint32(&line.Link) == l.Index+1 {
			atomic.StoreUintptr(&line.Slots, 0)
		}
	}
	l.backs = l.backs[:0]
}

// lineOf returns the line of an address, which there is memory for from then on. fi.EINVAL for an address that the
// endpoint's AV cannot have, fi.ENOMEM where the kernel gives no memory.
func (e *peering) lineOf(addr fi.Addr) (*hot.Peer, error) {
	i := e.av.Line(addr)
	if line := e.peers.At(i); line != nil {
		return line, nil
	}
	if _, ok := targetAt(e.av, addr); !ok || i >= e.av.Lines() {
		return nil, fi.EINVAL
	}
	e.growMu.Lock()
	defer e.growMu.Unlock()
	if err := e.peers.Grow(int(i) + 1); err != nil {
		log.Warnf(log.EPData, "lines of %d addresses: %v", i+1, err)
		return nil, fi.ENOMEM
	}
	atomic.StoreUint64(&e.hot.PeerLimit, uint64(e.peers.Ready()))
	return e.peers.At(i), nil
}

// linkNumber is the number of the link that an address has, plus one; 0: it has none.
func (e *peering) linkNumber(addr fi.Addr) uint32 {
	line := e.peers.At(e.av.Line(addr))
	if line == nil {
		return 0
	}
	return atomic.LoadUint32(&line.Link)
}

// linkOf returns the link of an address of the endpoint's AV and holds it for
// the caller, which releases it. fi.EINVAL for an address that is not in it, fi.ENOMEM;
// of a connected endpoint fi.ENOTCONN or fi.ESHUTDOWN.
func (e *initiator) linkOf(addr fi.Addr) (*link, error) {
	if e.conn != nil {
		if err := e.conn.Ready(); err != nil {
			return nil, err
		}
	}
	line, err := e.lineOf(addr)
	if err != nil {
		return nil, err
	}
	shared := e.av.Shared()
	for {
		// Another process may change a shared address vector at any time:
		// this runs, and drops the lines of addresses that are gone.
		seen := e.av.Generation()
		n := atomic.LoadUint32(&line.Link)
		if n != 0 && !shared {
			if l := e.linkAt(n - 1); l != nil && l.Hold() {
				if atomic.LoadUint32(&line.Link) == n { // else its number may be another's by now
					return l, nil
				}
				l.Release()
			}
			continue
		}
		to, ok := targetAt(e.av, addr)
		if !ok {
			return nil, fi.EINVAL
		}
		l := e.holdLinkTo(to)
		if n == l.Index+1 {
			return l, nil
		}
		if n != 0 { // removed and inserted by another process meanwhile
			l.Release()
			e.clearLine(line)
			continue
		}
		l.renew()
		if atomic.CompareAndSwapUint32(&line.Link, 0, l.Index+1) {
			l.lines.Add(1)
			if e.av.Generation() == seen {
				return l, nil
			}
			e.clearLine(line) // the address may have been removed meanwhile
		}
		l.Release()
	}
}

// clearLine takes the link away from a line.
func (e *linkTable) clearLine(line *hot.Peer) {
	if i := atomic.SwapUint32(&line.Link, 0); i != 0 {
		e.linkAt(i - 1).lines.Add(-1) // it is there: the line counted
	}
}

// linkAt returns the link of a number, nil if there is none.
func (e *linkTable) linkAt(i uint32) *link { return e.links.At(i) }

// linkTo returns the link to a peer's interface, making it if need be. Links are removed under the progress lease.
func (e *leasedEP) linkTo(a peers.Address) *link {
	l := e.holdLinkTo(a)
	l.Release()
	return l
}

// holdLinkTo returns the link to a peer's interface and holds it for the caller.
func (e *initiator) holdLinkTo(a peers.Address) *link {
	made := e.links.Made()
	l := e.links.Hold(a, func(number uint32) *link {
		l := &link{Link: rma.Link{Index: number}, to: a, raw: a.Raw(), line: e.requests.lineOf(e.hot, number)}
		l.transmits = &l.line.InFlight
		return l
	})
	if e.links.Made() != made {
		forgetStrangers(&e.peering)
	}
	return l
}

// fill writes a connected peer into its line of the table by which the data plane
// posts (hot.Peer), or its way over a driven transport (fillPath). A shared address
// vector has no lines: the data plane would not see that another process changes it.
func (e *peering) fill(addr fi.Addr, l *link, p *path) {
	i := uint32(e.av.Line(addr))
	line := e.peers.At(uint64(i))
	if line == nil || e.av.Shared() || atomic.LoadUintptr(&line.Slots) != 0 || e.hasPath(i) {
		return
	}
	seen := e.av.Generation()
	defer func() {
		if e.av.Generation() != seen {
			atomic.StoreUintptr(&line.Slots, 0)
			e.dropPath(i)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if cur := l.path.Load(); cur != p || p.Err() != nil || e.conn.disconnected() {
		return
	}
	if far := p.transport.number != 0; far && !e.fillPath(i, p) || !far && e.iface.FillPeer(p.Endpoint, line) != nil {
		return
	}
	if !slices.Contains(l.filled, i) {
		l.filled = append(l.filled, i)
	}
}

// dropAddress is called when an address is removed from the AV.
func (e *peering) dropAddress(addr fi.Addr) {
	first := e.av.Line(addr)
	for i := first; i < first+1<<e.av.RxCtxBits(); i++ {
		if line := e.peers.At(i); line != nil {
			atomic.StoreUintptr(&line.Slots, 0)
			e.dropPath(uint32(i))
			e.clearLine(line)
		}
	}
	e.senders.Drop(addr)
	e.transportSenders.Drop(addr)
}

// targetAt returns what a send to an address reaches, false if it is not in the
// address vector or has the index of a receive context that cannot exist.
func targetAt(a *AV, addr fi.Addr) (peers.Address, bool) {
	base, index := a.Peer(addr)
	n, ok := a.Name(base)
	return peers.Address{Name: n, Number: uint8(index)}, ok && index < info.MaxCtx
}
