// Package members is what endpoints of a device that matches their messages are to each other beside these: how
// addresses lead to them, and the messages of weft's own for their collective operations. These are those of package
// coll: the interface that matches also has active messages, and reaches a peer that has them by the name of its
// endpoint.
//
// [Groups] belongs to the holder of the endpoint's progress lease, but for what is said to be any thread's.
package members

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/control"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/names"
)

// Endpoint is what is needed of the endpoint: any thread may call its methods but the last three, which are as
// coll.Leased has them. The others are as coll.Endpoint has them.
type Endpoint interface {
	Enabled() bool
	Acquire() error
	Release()
	Completes(flags uint64) bool
	CountsAt(c *cq.Counter) error
	Notify()
	Progress()
	WithLease(f func(*coll.Protocol))
	Complete(context uint64, completes bool, status fi.Errno)
	Stats() coll.Counters
	Closed() bool
}

// Options are what the groups of an endpoint need. All are set.
type Options struct {
	Endpoint  Endpoint
	Iface     hw.Iface // with active messages, whose address is the endpoint's name
	Directory *Directory
	Config    *config.Config
	Eager     uint64 // bytes of the longest message that goes with its payload
}

// Groups are an endpoint's groups as the holder of the progress lease has them.
type Groups struct {
	Endpoint
	Protocol *coll.Protocol // immutable, as what follows to pool

	o     Options
	own   names.Name
	short int // bytes of the longest message that goes without a bounce buffer
	on    coll.Transport
	peers *peerList
	born  time.Time
	pool  *mem.Pool // of messages that came early

	out       control.Queue[destination]
	kept      int  // bytes that those count as
	shut      bool // the eager window is closed
	checked   time.Time
	malformed uint64
}

// Open prepares an endpoint for collective operations, before its first progress. Errors: fi.EINVAL.
func Open(o Options) (*coll.Groups, *Groups, error) {
	own, err := names.Decode(names.Matched, o.Iface.Address())
	if err != nil {
		return nil, nil, fmt.Errorf("the device has no messages of weft's own: %w", err)
	}
	a := o.Iface.Attr()
	g := &Groups{Endpoint: o.Endpoint, o: o, own: own, short: a.MaxAMShort, born: time.Now(),
		pool: mem.NewPool(1 << 20)}
	g.on = coll.Transport{Iface: o.Iface, Caps: a.Caps, MaxAMBcopy: a.MaxAMBcopy, DeviceName: a.DeviceName,
		Eager: o.Eager, Notify: func() {}}
	g.peers = &peerList{g: g, of: map[names.Name]*peer{}}
	var groups *coll.Groups
	groups, g.Protocol = coll.New(anyThread{o.Endpoint, g.peers}, g, coll.Settings{Config: o.Config})
	for id, h := range g.Protocol.Handlers() {
		o.Iface.SetHandler(id, h)
	}
	o.Iface.OnPeerEvent(g.onPeer)
	return groups, g, nil
}

// Close gives the memory back. No group is left, and the interface is closed. g may be nil.
func (g *Groups) Close() {
	if g == nil {
		return
	}
	g.Protocol.Close()
	if err := g.pool.Close(); err != nil {
		log.Warnf(log.EPCtrl, "close endpoint: memory of messages: %v", err)
	}
}

// Pump goes on with what waits, as far as there is room. g may be nil.
func (g *Groups) Pump() {
	if g != nil {
		g.out.Flush()
		g.Protocol.Pump()
	}
}

// Busy reports whether Pump has something to do that no event of the device says. g may be nil.
func (g *Groups) Busy() bool { return g != nil && (g.out.Len() != 0 || g.Protocol.Busy()) }

// Check finds peers that are gone, if it is time. g may be nil.
func (g *Groups) Check(now time.Time) {
	if g != nil && now.Sub(g.checked) >= g.o.Config.PeerCheckInterval {
		g.checked = now
		g.o.Iface.CheckPeers()
		g.pool.Reclaim()
	}
}

// Refused is how many messages of weft's own no peer should have sent. g may be nil.
func (g *Groups) Refused() uint64 {
	if g == nil {
		return 0
	}
	return g.malformed
}

// onPeer ends what waits for a peer that is gone.
func (g *Groups) onPeer(ev hw.PeerEvent) {
	if ev.HasSource {
		g.Protocol.SourceLost(ev.Source)
		// Requests of its successor have the same numbers.
		g.out.Drop(func(to *destination) bool { return to.peer == nil && to.src == ev.Source })
	}
	if ev.Endpoint == nil {
		return
	}
	for _, p := range g.peers.all() {
		if p.path != nil && p.path.Endpoint == ev.Endpoint {
			log.Infof(log.EPCtrl, "peer %s is gone", p.name)
			g.Protocol.PeerLost(p.number, fi.ECONNRESET)
			g.out.Drop(func(to *destination) bool { return to.peer == p })
		}
	}
}

// anyThread is an endpoint as its collective operations have it in any thread.
type anyThread struct {
	Endpoint
	peers *peerList
}

// Member finds what an address leads to: nil for the endpoint itself.
func (h anyThread) Member(addr fi.Addr) (names.Name, coll.Peer, error) {
	o := &h.peers.g.o
	n, raw, err := o.Directory.name(addr)
	if err != nil {
		return n, nil, log.Reject(log.EPCtrl, matched.Errno(err), "address %d: %v", addr, err)
	}
	if bytes.Equal(raw, o.Iface.Address()) {
		return n, nil, nil
	}
	return n, h.peers.use(n, raw), nil
}

// Now is the time of a clock that is not set.
func (g *Groups) Now() congestion.Time { return congestion.Time(time.Since(g.born)) + 1 }

// Transports are the one that there is.
func (g *Groups) Transports() []*coll.Transport { return []*coll.Transport{&g.on} }

// Name is the endpoint's own.
func (g *Groups) Name() names.Name { return g.own }

// TransportOf is the one that there is.
func (g *Groups) TransportOf(hw.Source) *coll.Transport { return &g.on }

// IsFrom reports whether a source is a peer.
func (g *Groups) IsFrom(src hw.Source, p coll.Peer) bool { return p.(*peer).sends(src) }

// Post sends a message with its payload.
func (g *Groups) Post(p coll.Path, id hw.AMID, header uint64, head, data []byte) error {
	if len(head)+len(data) <= g.short {
		return outcome.OfPost(p.AMShort(id, header, head, data))
	}
	return outcome.OfPost(p.AMBcopy(id, header, head, len(data), func(to []byte) { copy(to, data) }, 0))
}

// Send sends a message without payload, now or when there is room.
func (g *Groups) Send(to coll.Peer, id hw.AMID, header uint64, head []byte) {
	g.out.Send(destination{g: g, peer: to.(*peer)}, id, header, head)
}

// Answer is Send to the peer behind a source.
func (g *Groups) Answer(src hw.Source, id hw.AMID, header uint64, head []byte) {
	g.out.Send(destination{g: g, src: src}, id, header, head)
}

// Hold keeps a payload, and closes the eager window when too much is kept.
func (g *Groups) Hold(payload []byte, cost int) (addr uint64, err error) {
	if len(payload) != 0 {
		if addr, err = g.pool.Get(len(payload)); err != nil {
			return 0, err
		}
		copy(mem.Bytes(addr, len(payload)), payload)
	}
	if g.kept += cost; g.kept > g.o.Config.UnexpectedBytes {
		g.setWindow(false)
	}
	return addr, nil
}

// Unhold gives the memory back, and opens the window when half of what is kept at most is left.
func (g *Groups) Unhold(addr uint64, n, cost int) {
	if addr != 0 {
		g.pool.Put(addr, n)
	}
	if g.kept -= cost; g.kept <= g.o.Config.UnexpectedBytes/2 {
		g.setWindow(true)
	}
}

func (g *Groups) setWindow(open bool) {
	if g.shut == open {
		g.shut = !open
		g.o.Iface.SetEagerWindow(open)
	}
}

// Malformed counts and logs a message that a peer should not have sent.
func (g *Groups) Malformed(src hw.Source, format string, args ...any) {
	g.malformed++
	log.Warnf(log.EPData, "from % x: "+format, append([]any{g.o.Iface.SourceAddress(src)}, args...)...)
}
