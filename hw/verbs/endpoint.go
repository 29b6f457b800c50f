package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// Endpoint is what this interface knows of one peer: the path to it if Connect
// was called, and the source of its messages. It implements hw.Endpoint.
type Endpoint struct {
	i     *Iface
	index uint32  // among the interface's peers, and its hw.Source; immutable
	addr  address // immutable, as key
	key   [addressBytes]byte
	// name is the address by which the peer is known: its own word, or what was given to Connect until it comes. Stored
	// by the thread that makes the endpoint and by the service before ready, read by any thread.
	name atomic.Pointer[[]byte]
	// asked are the names under which Connect was called. Under i.mu.
	asked [][]byte

	// othersFrom is when Connect begins to say that other transports may be tried, as long as the peer has not
	// answered, zero: never. Immutable.
	othersFrom time.Time

	// failure is why the endpoint no longer works. Stored once, by the
	// thread that finds out first; read by any thread.
	failure atomic.Pointer[error]
	// ready says that operations may be claimed: the peer has answered once.
	// Set by the service, never cleared; a broken path only stops the queues.
	ready atomic.Bool
	// answered is closed when ready is set or the endpoint has failed.
	answered    chan struct{}
	answerGiven atomic.Bool // answered is closed

	// c is what the data plane knows of the peer: its window, whether it may send, and the positions and queue pairs of
	// its messages.
	c *transport.Peer
	// owesWindow is set when the peer is to get our window. Set by
	// SetEagerWindow, taken by the lease holder.
	owesWindow atomic.Bool

	ring     ring // into which the peer may write; stored before the peer is known
	msg      queue
	msgFence barrier // of the memory queue
	mem      memoryPath

	// refusal is an errno value that the peer gave for not connecting, 0 if
	// none since it last connected. Stored by the service, read by it and Connect; sequentially consistent.
	refusal atomic.Uint32

	// wantRejoin says that the connection for messages is being made anew. Set
	// by the service (the peer asks) and the lease holder (ours is broken),
	// cleared by the service when it has the new queue pair.
	wantRejoin atomic.Bool
	// rejoinedAt is the last position that the peer has, and 1<<32 when the
	// new connection stands. Stored by the service, taken by the lease holder.
	rejoinedAt atomic.Uint64
	// byeSeq is the last position that the peer sent before it closed, and 1<<32; 0: it has not. Stored by the service
	// under i.mu, read by it and the lease holder; sequentially consistent.
	byeSeq atomic.Uint64

	// reported is set when the peer's end has been reported, or there was nothing to report. Stored by the
	// lease holder, read by any thread; sequentially consistent.
	reported atomic.Bool

	listed bool // in Iface.todo; under todoMu

	hello   hello   // service
	memory  hello   // service: our memory queue's hand-shake
	passive passive // service

	lease leaseState
}

// leaseState belongs to the lease holder, but for what is marked.
type leaseState struct {
	phase       phase
	since       time.Time   // of the phase
	failed      time.Time   // when the endpoint was found to have failed, zero: it has not
	connected   atomic.Bool // Connect was called; set once, loaded by any thread; sequentially consistent
	eventGiven  bool        // the endpoint's event was given
	ringRefused bool        // the peer's device does not take writes into its ring
	active      time.Time
	stuck       [2]stuck // by class
	zombies     []zombie
}

// phase is how far the restoring of a broken connection has got.
type phase int

const (
	working   phase = iota
	draining        // what the old queue pair has received is being read
	rejoining       // the service makes the new connection
	dead            // events are to be given
	reclaimed       // nothing is left to do
)

// zombie is a queue pair that is stopped and will be destroyed.
type zombie struct {
	qp    *ibv.QP
	since time.Time
}

// endpointOf is an endpoint of a peer that is not entered yet. The caller has i.mu.
func (i *Iface) endpointOf(a address, name []byte, now time.Time) *Endpoint {
	e := &Endpoint{i: i, addr: a, answered: make(chan struct{})}
	e.name.Store(&name)
	a.appendTo(e.key[:0])
	e.othersFrom = i.gone.othersFrom(e.key, now)
	return e
}

// newEndpoint makes the endpoint of a peer. The caller has i.mu. Errors: hw.ErrNoResource.
func (i *Iface) newEndpoint(a address, name []byte) (*Endpoint, error) {
	e := i.endpointOf(a, name, time.Now())
	if err := i.enter(e); err != nil {
		return nil, err
	}
	i.byKey[e.key] = e
	return e, nil
}

// enter gives an endpoint its number and its message queue, with a queue pair in
// state INIT. The caller has i.mu. Errors: hw.ErrNoResource.
func (i *Iface) enter(e *Endpoint) error {
	list := *i.peers.Load()
	e.index = uint32(len(list))
	for n, p := range list {
		if p == nil {
			e.index = uint32(n)
			break
		}
	}
	if e.index >= maxPeers {
		return fmt.Errorf("verbs: %d peers: %w", maxPeers, hw.ErrNoResource)
	}
	if err := i.blocks.attach(e, &e.msg); err != nil {
		return err
	}
	e.msg.ID = queueID(classMessage, e.index)
	e.msg.reports(i.sendCQs[int(e.index)%len(i.sendCQs)])
	e.c = i.rx.transport.NewPeer(e.msg.SendQueue)
	if err := e.newMessageQP(); err != nil {
		return err
	}
	grown := append([]*Endpoint(nil), list...)
	if int(e.index) == len(grown) {
		grown = append(grown, nil)
	}
	grown[e.index] = e
	i.giveRing(e)
	i.peers.Store(&grown)
	i.rx.transport.SetPeer(e.index, e.c)
	return nil
}

// makeQP makes a connected queue pair for queue q (nil: a passive one) in state INIT.
func (i *Iface) makeQP(q *queue, access uint32) (*ibv.QP, error) {
	c := ibv.QPConfig{Send: i.sendCQs[0].cq, Recv: i.recvCQ, SRQ: i.srq, MaxSend: 1, MaxSGE: 1}
	if q != nil {
		c.Send, c.MaxSend, c.MaxInline = q.cq.cq, int(q.Mask+1), slotBytes
		c.MaxSGE = max(i.maxIOV(), int(q.GatherMax))
	}
	qp, err := i.d.newQP(c)
	if few := max(1, i.maxIOV()); err != nil && c.MaxSGE > few { // more than goes with so many places
		c.MaxSGE = few
		if qp, err = i.d.newQP(c); err == nil {
			q.GatherMax = uint32(few)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("verbs: no room for another queue pair: %w: %w", err, hw.ErrNoResource)
	}
	if err := qp.Init(i.d.port, access, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("verbs: %w", err), qp.Close())
	}
	return qp, nil
}

// newQP makes a queue pair, without bytes in its requests if the device refuses so many.
func (d *MemoryDomain) newQP(c ibv.QPConfig) (*ibv.QP, error) {
	qp, err := d.pd.NewQP(c)
	if c.MaxInline > 0 && errors.Is(err, unix.EINVAL) {
		c.MaxInline = 0
		qp, err = d.pd.NewQP(c)
	}
	return qp, err
}

// newMessageQP gives the stopped message queue a fresh queue pair. Writes
// without bytes need the right to write, though they touch nothing, and so do those
// into the peer's ring, the only key that peers get over a connection for messages.
func (e *Endpoint) newMessageQP() error {
	qp, err := e.i.makeQP(&e.msg, ibv.RemoteWrite)
	if err != nil {
		return err
	}
	e.msg.use(qp)
	e.c.QPNums = [2]uint32{qp.Num, e.c.QPNums[0]}
	return nil
}

// Address is the address by which the peer is known.
func (e *Endpoint) Address() []byte { return *e.name.Load() }

// DeviceAddress is that of the peer's interface.
func (e *Endpoint) DeviceAddress() []byte { return e.addr.appendTo(nil) }

// String names the peer for people.
func (e *Endpoint) String() string { return e.addr.String() }

// EagerOpen reports whether the peer welcomes eager payloads.
func (e *Endpoint) EagerOpen() bool { return e.c.Window.Load() == 0 && e.failure.Load() == nil }

// Wake does nothing: a message wakes by itself, or the peer polls.
func (e *Endpoint) Wake() {}

// Err is nil, or why the endpoint no longer works.
func (e *Endpoint) Err() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// Reported reports whether the peer's end has been reported.
func (e *Endpoint) Reported() bool { return e.reported.Load() }

// fail ends the endpoint for a reason that people want to know. Any thread.
func (e *Endpoint) fail(err error) {
	if e.end(err) {
		e.i.logf("%v", err)
	}
}

// end ends the endpoint, and reports whether no other call did before. Any thread.
func (e *Endpoint) end(err error) bool {
	if !e.failure.CompareAndSwap(nil, &err) {
		return false
	}
	e.c.Blocked.Or(transport.PeerFailed)
	e.answer()
	e.i.notify(e)
	return true
}

// answer releases the threads that wait in Connect.
func (e *Endpoint) answer() {
	if !e.answerGiven.Swap(true) {
		close(e.answered)
	}
}

// graveyard remembers the device addresses of the last peers that are gone. Each has its own number: one that has
// closed never comes back. One to which the path was lost may still be there.
type graveyard struct {
	set  map[[addressBytes]byte]time.Time // until when it is not connected to, zero: it has closed
	ring [1024][addressBytes]byte
	next int
}

func newGraveyard() graveyard { return graveyard{set: map[[addressBytes]byte]time.Time{}} }

// add enters a peer, which is not connected to until a time, zero: it has closed.
func (g *graveyard) add(k [addressBytes]byte, until time.Time) {
	if _, known := g.set[k]; !known {
		delete(g.set, g.ring[g.next])
		g.ring[g.next] = k
		g.next = (g.next + 1) % len(g.ring)
	}
	g.set[k] = until
}

// known reports whether a peer is among them.
func (g *graveyard) known(k [addressBytes]byte) bool {
	_, known := g.set[k]
	return known
}

// has reports whether a peer is not to be connected to now.
func (g *graveyard) has(k [addressBytes]byte, now time.Time) bool {
	until, known := g.set[k]
	return known && (until.IsZero() || now.Before(until))
}

// closed reports whether a peer is known to have closed.
func (g *graveyard) closed(k [addressBytes]byte) bool {
	until, known := g.set[k]
	return known && until.IsZero()
}

// answerSoon is how long a peer that was lost may take to answer before other transports are tried: the queue pairs of
// its service answer by themselves, and a packet and its answer may be lost a few times.
const answerSoon = 100 * time.Millisecond

// othersFrom is Endpoint.othersFrom of an endpoint that is made now. The network may not lead to a peer that was lost
// any more, while another one does.
func (g *graveyard) othersFrom(k [addressBytes]byte, now time.Time) time.Time {
	if !g.known(k) {
		return time.Time{}
	}
	return now.Add(answerSoon)
}

// seekAgain has all peers be connected to again that may still be there.
func (g *graveyard) seekAgain(now time.Time) {
	for k, until := range g.set {
		if !until.IsZero() {
			g.set[k] = now
		}
	}
}

// Connect returns the endpoint to the interface at address, and makes it if
// there is none. It does not wait for the peer unless the configuration says so.
func (i *Iface) Connect(name []byte) (hw.Endpoint, error) {
	device := name
	if i.cfg.Resolve != nil {
		var err error
		if device, err = i.cfg.Resolve(name); err != nil {
			return nil, err
		}
	}
	a, err := parseAddress(device)
	if err != nil {
		if i.cfg.Resolve != nil { // of another kind of device
			return nil, fmt.Errorf("%w: %w", err, hw.ErrNoPath)
		}
		return nil, err
	}
	if err := i.reachable(&a); err != nil {
		return nil, err
	}
	e, err := i.endpointTo(a, append([]byte(nil), name...))
	if err != nil {
		return nil, err
	}
	if i.cfg.AwaitPeer && !e.ready.Load() {
		return nil, e.unanswered(time.Now())
	}
	e.lease.connected.Store(true)
	if i.cfg.ConnectWait > 0 {
		select {
		case <-e.answered:
		case <-time.After(i.cfg.ConnectWait):
			if err := e.refused(); err != nil {
				return nil, fmt.Errorf("verbs: %w", err)
			}
			return nil, fmt.Errorf("verbs: peer %s does not answer: %w", e, hw.ErrUnreachable)
		}
		if err := e.Err(); err != nil {
			return nil, fmt.Errorf("verbs: peer %s: %w: %w", e, err, hw.ErrUnreachable)
		}
	}
	return e, nil
}

// unanswered is the error of a Connect that awaits the peer while the hand-shake runs.
func (e *Endpoint) unanswered(now time.Time) error {
	err := fmt.Errorf("verbs: peer %s has not answered: %w", e, hw.ErrUnreachable)
	if !e.othersFrom.IsZero() && !now.Before(e.othersFrom) {
		return fmt.Errorf("%w: %w", err, hw.ErrNoPath)
	}
	return err
}

// reachable judges whether the own port can talk to another kind of port.
func (i *Iface) reachable(a *address) error {
	if a.ethernet != i.addr.ethernet || a.ethernet && a.kind != i.addr.kind {
		return fmt.Errorf("verbs: peer %s is on another kind of network: %w: %w", a, hw.ErrNoPath, hw.ErrUnreachable)
	}
	return nil
}

// endpointTo finds or makes the endpoint of a peer and has the service connect it.
func (i *Iface) endpointTo(a address, name []byte) (*Endpoint, error) {
	if i.closed.Load() {
		return nil, errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var key [addressBytes]byte
	a.appendTo(key[:0])
	e := i.byKey[key]
	if e == nil && i.gone.closed(key) {
		return nil, fmt.Errorf("verbs: peer %s has closed its interface: %w: %w: %w", &a, hw.ErrPeerDead, hw.ErrNoPath,
			hw.ErrUnreachable)
	}
	if e == nil && i.gone.has(key, time.Now()) { // else its own hello has come
		return nil, fmt.Errorf("verbs: peer %s is gone: %w: %w", &a, hw.ErrNoPath, hw.ErrUnreachable)
	}
	if e == nil {
		var err error
		if e, err = i.newEndpoint(a, name); err != nil {
			return nil, err
		}
		i.svc.do(func() { i.svc.connect(e) })
	}
	if err := e.Err(); err != nil && i.cfg.AwaitPeer && !e.ready.Load() {
		return nil, fmt.Errorf("verbs: peer %s: %w: %w", e, err, hw.ErrNoPath)
	} else if err != nil {
		return nil, fmt.Errorf("verbs: peer %s: %w: %w", e, err, hw.ErrUnreachable)
	}
	if !slices.ContainsFunc(e.asked, func(n []byte) bool { return bytes.Equal(n, name) }) {
		e.asked = append(e.asked, name)
	}
	return e, nil
}

// errPath is why an endpoint has failed whose peer may be there.
var errPath = fmt.Errorf("%w: %w", hw.ErrPathLost, hw.ErrPeerDead)

// lost is why an endpoint has failed that was not connected, for a reason which is not that the peer is gone: if the
// peer has answered before it may be there.
func (e *Endpoint) lost(reason error) error {
	if e.ready.Load() {
		return fmt.Errorf("%w: %w", reason, errPath)
	}
	return fmt.Errorf("%w: %w", reason, hw.ErrPeerDead)
}

// errClosed is what calls after Close return.
var errClosed = fmt.Errorf("verbs: interface is closed: %w", unix.EBADF)
