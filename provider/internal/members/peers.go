package members

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
)

// peerList are the peers of a matched endpoint's groups.
type peerList struct {
	g *Groups // immutable

	mu   sync.Mutex // joins, and groups that close, only
	of   map[names.Name]*peer
	list []*peer // those in of
	next uint32  // number of the next
}

// peer is a member of groups, as long as one is open.
type peer struct {
	g      *Groups // immutable, as what follows to number
	name   names.Name
	raw    []byte
	number uint32
	uses   int // by groups; under peerList.mu
	// joined says that a group has begun to use the peer: what became of attempts before is nothing to it. Set by the
	// joining thread, taken by the lease holder.
	joined atomic.Bool

	attempts peers.Attempts // the lease holder's, as what follows
	path     *path          // nil: not connected
	// doubted says that a group has begun to use the peer since path was made or confirmed: another endpoint may have
	// its address by now.
	doubted bool
}

// path is a connection to a peer.
type path struct {
	hw.Endpoint
	on *coll.Transport
}

func (p *path) Transport() hw.Endpoint { return p.Endpoint }
func (p *path) Over() *coll.Transport  { return p.on }

// use returns the peer of a name with a use of it.
func (l *peerList) use(n names.Name, raw []byte) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[n]
	if p == nil {
		p = &peer{g: l.g, name: n, raw: raw, number: l.next}
		l.next++
		l.of[n] = p
		l.list = append(l.list, p)
	}
	p.uses++
	p.joined.Store(true)
	return p
}

// all are the peers. Any thread may call it.
func (l *peerList) all() []*peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Release ends a use of the peer.
func (p *peer) Release() {
	l := p.g.peers
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.uses--; p.uses == 0 {
		delete(l.of, p.name)
		l.list = slices.DeleteFunc(l.list, func(o *peer) bool { return o == p })
	}
}

// Number names the peer to PeerLost.
func (p *peer) Number() uint32 { return p.number }

// Ready returns the path if it works.
func (p *peer) Ready() (coll.Path, bool) {
	if p.path == nil || p.path.Err() != nil {
		return nil, false
	}
	return p.path, true
}

// Connect returns the path, connecting if need be. One from before a group has joined is confirmed first. A peer that
// is gone is like one that was never there: the groups that have sent it something know by PeerLost. Errors: fi.EAGAIN
// while it is not connected; fi.EHOSTUNREACH when it has not answered for the time that there is, or has no messages of
// weft's own; and those of peers.Attempts.Fail.
func (p *peer) Connect() (coll.Path, error) {
	if p.joined.Swap(false) {
		p.attempts.Reset()
		p.doubted = p.path != nil
	}
	if at, ok := p.Ready(); ok {
		return at, p.confirm()
	}
	if p.path != nil {
		if !p.path.Reported() {
			return nil, fi.EAGAIN // its last messages come first
		}
		p.path, p.doubted = nil, false
	}
	now, limit := time.Now(), p.g.o.Config.ConnectTimeout
	if !p.attempts.Begin(now) {
		return nil, p.attempts.Status(now, limit)
	}
	ep, err := p.g.o.Iface.Connect(p.raw)
	if err != nil {
		status, news := p.attempts.Fail(err, now, limit)
		if news || status == fi.EHOSTUNREACH {
			log.Warnf(log.EPCtrl, "collective operations with %s: %v", p.name, err)
		}
		return nil, status
	}
	p.attempts.Reset()
	p.path = &path{ep, &p.g.on}
	return p.path, nil
}

// confirm finds out whether the peer of a doubted path is there: fi.EAGAIN until that is known, and then until its end
// is reported if it is gone.
func (p *peer) confirm() error {
	if c, ok := p.path.Endpoint.(hw.Confirmer); ok && p.doubted {
		if err := c.Confirm(); err != nil {
			return fi.EAGAIN
		}
	}
	p.doubted = false
	return nil
}

// sends reports whether a source is the peer.
func (p *peer) sends(src hw.Source) bool {
	return p.path != nil && p.g.o.Iface.SourceReaches(src, p.raw)
}

// destination is where a message goes that may wait for room: a peer, or the sender behind a source.
type destination struct {
	g    *Groups
	peer *peer     // nil: an answer
	src  hw.Source // of an answer
}

// Send sends a message (control.Destination).
func (t destination) Send(id hw.AMID, header uint64, head []byte) error {
	if t.peer != nil {
		p, err := t.peer.Connect()
		if err == nil {
			err = outcome.OfPost(p.AMShort(id, header, head, nil))
		}
		return err
	}
	ep, err := t.g.o.Iface.Connect(t.g.o.Iface.SourceAddress(t.src))
	if err == nil {
		err = ep.AMShort(id, header, head, nil)
	}
	return outcome.OfPost(err)
}
