package cxi

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
)

// Endpoint is what this interface knows of one peer: the path to it if Connect was called, and the source of its
// messages. It implements hw.Endpoint.
type Endpoint struct {
	i     *Iface
	q     *txQueue    // immutable, as what follows to high
	index uint32      // among the interface's peers, and its hw.Source
	addr  address     // of the peer
	to    nic.Address // its messages
	high  uint64      // upper half of the match bits of messages to it
	// name is the address by which the peer is known: its own word, or what was given to Connect until it comes. Stored
	// by the thread that makes the endpoint and by the lease holder.
	name atomic.Pointer[[]byte]
	// names are those under which Connect was called. Under i.mu.
	names [][]byte

	// failure is why the endpoint no longer works. Stored once, by the thread that
	// finds out first; read by any thread.
	failure atomic.Pointer[error]
	// ready says that messages may be posted: the peer's NIC has answered, or the peer has sent. Set by the thread
	// that sees it.
	ready  atomic.Bool
	stream uint32 // number of what is sent to the peer among the interface's streams, from 1. Immutable
	// before is an endpoint to the same interface that has failed and not ended yet: what it has posted may still
	// arrive, so that nothing is posted here. Stored before the endpoint is published, and by the lease holder; read by
	// and so learns that the peer is there.
	before atomic.Pointer[Endpoint]
	// connected says that Connect has given the endpoint out. Stored by Connect.
	connected atomic.Bool
	// closed is 1 while the peer's eager window is. Stored by the lease holder.
	closedWindow atomic.Uint32
	// owesWindow is set when our window must be sent to the peer. Set by SetEagerWindow, taken by the lease holder.
	owesWindow atomic.Bool
	// asked says that a question to the peer's NIC is on its way. Set by the asking thread, cleared under the
	// queue's lock.
	asked atomic.Bool
	// confirmed is what has become of the question of Confirm. Under the queue's lock.
	confirmed confirmation
	// suspect asks CheckPeers to ask the peer's NIC. Set by the thread that finds an operation failed or the path
	// lost, taken by CheckPeers.
	suspect atomic.Bool
	// heard says that the peer or its NIC has answered. Set by the thread that sees it, taken by CheckPeers.
	heard atomic.Bool
	// fenced says that posts must wait for what was posted before fence. Set by Fence, cleared under the queue's lock.
	fenced atomic.Bool
	// reported is set when the peer's end has been reported, or there was nothing to report. Stored by the
	// lease holder, read by any thread; sequentially consistent.
	reported atomic.Bool
	// lostSince is when the path broke, in nanoseconds, 0: it has not. Under the queue's lock.
	lostSince int64

	w       window // under the queue's lock, as what follows
	greeted bool   // the first message is in the window
	ops     opList
	fence   mark
	word    lastWord

	path       *seam.Path // what C sends with; nil: C does not drive the interface. Immutable
	polls, row uint32     // messages in a row, and since which poll of C; under the queue's lock

	listed bool // in Iface.todo; under todoMu

	lease leaseState
}

// leaseState belongs to the lease holder.
type leaseState struct {
	stream    uint32 // number of the peer's stream, 0: its first message has not come
	next      uint16 // position of the next message
	source    bool   // it has sent messages for handlers
	closed    bool   // it has closed in order
	active    time.Time
	failed    bool // the lease holder knows that the endpoint has failed
	reported  bool // the endpoint's events were given
	reclaimed bool
}

// newEndpoint makes the endpoint of a peer. The caller has i.mu. Errors: hw.ErrNoResource.
func (i *Iface) newEndpoint(a address, name []byte) (*Endpoint, error) {
	i.streams++
	e := &Endpoint{i: i, addr: a, to: a.at(indexMessages), high: a.matchHigh(), stream: i.streams}
	e.name.Store(&name)
	if o := i.ids.Load().find(a.id()); o != nil && o.addr.nonce == a.nonce {
		e.before.Store(o)
	}
	list := *i.peers.Load()
	e.index = uint32(len(list))
	if n := slices.Index(list, nil); n >= 0 {
		e.index = uint32(n)
	}
	if e.index >= maxPeers {
		return nil, fmt.Errorf("cxi: %d peers: %w", maxPeers, hw.ErrNoResource)
	}
	e.q = i.tx[int(e.index)%len(i.tx)]
	e.w.init(i.cfg.depth())
	e.lease.active = time.Now()
	if i.driver.transport.Len() != 0 {
		i.driver.paths.attach(e)
	}
	grown := slices.Clone(list)
	if int(e.index) == len(grown) {
		grown = append(grown, nil)
	}
	grown[e.index] = e
	i.peers.Store(&grown)
	i.ids.Store(i.ids.Load().with(e))
	return e, nil
}

// idTable finds peers by their match id. It is replaced as a whole.
type idTable struct {
	shift uint
	slots []*Endpoint
}

func newIDTable(peers int) *idTable {
	t := &idTable{shift: 32 - 4, slots: make([]*Endpoint, 16)}
	for len(t.slots) < 2*peers+2 {
		t.shift--
		t.slots = make([]*Endpoint, 2*len(t.slots))
	}
	return t
}

// place is where a peer is, or would be.
func (t *idTable) place(id uint32) int {
	n := int(id * 0x9e3779b1 >> t.shift)
	for t.slots[n] != nil && t.slots[n].addr.id() != id {
		n = (n + 1) % len(t.slots)
	}
	return n
}

// find returns the peer with a match id, nil if there is none.
func (t *idTable) find(id uint32) *Endpoint { return t.slots[t.place(id)] }

// with is the table with e, in place of another with its match id.
func (t *idTable) with(e *Endpoint) *idTable {
	list := []*Endpoint{e}
	for _, o := range t.slots {
		if o != nil && o.addr.id() != e.addr.id() {
			list = append(list, o)
		}
	}
	return tableOf(list)
}

// without is the table without e.
func (t *idTable) without(e *Endpoint) *idTable {
	return tableOf(slices.DeleteFunc(slices.Clone(t.slots), func(o *Endpoint) bool { return o == nil || o == e }))
}

func tableOf(list []*Endpoint) *idTable {
	t := newIDTable(len(list))
	for _, e := range list {
		t.slots[t.place(e.addr.id())] = e
	}
	return t
}

// Address is the address by which the peer is known.
func (e *Endpoint) Address() []byte { return *e.name.Load() }

// DeviceAddress is that of the peer's interface.
func (e *Endpoint) DeviceAddress() []byte { return e.addr.appendTo(nil) }

// String names the peer for people.
func (e *Endpoint) String() string { return e.addr.String() }

// EagerOpen reports whether the peer welcomes eager payloads.
func (e *Endpoint) EagerOpen() bool { return e.closedWindow.Load() == 0 && e.failure.Load() == nil }

// Wake does nothing: a message wakes by itself.
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

// end ends the endpoint, and reports whether this call was the first to. Any thread.
func (e *Endpoint) end(err error) bool {
	if !e.failure.CompareAndSwap(nil, &err) {
		return false
	}
	e.i.notify(e)
	return true
}

// errClosed is what calls after Close return.
var errClosed = fmt.Errorf("cxi: interface is closed: %w", unix.EBADF)

// Connect returns the endpoint to the interface at address, and makes it if there is none, after its NIC has
// answered that it is there.
func (i *Iface) Connect(name []byte) (hw.Endpoint, error) {
	e, err := i.connect(name)
	if err = i.named.again(name, err); err != nil {
		return nil, err
	}
	return e, nil
}

func (i *Iface) connect(name []byte) (hw.Endpoint, error) {
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
	if a.vni != i.addr.vni || a.pidBits != i.addr.pidBits {
		return nil, fmt.Errorf("cxi: peer %s is not in VNI %d: %w: %w", &a, i.addr.vni, hw.ErrNoPath, hw.ErrUnreachable)
	}
	e, err := i.endpointTo(a, bytes.Clone(name))
	if err != nil {
		return nil, err
	}
	i.awaitAnswer(e)
	if err := e.Err(); err != nil {
		kind := hw.ErrUnreachable // it was there, as one was that has said its address, and may be again
		if i.cfg.AwaitPeer && i.named == nil && !e.ready.Load() {
			kind = hw.ErrNoPath
		}
		return nil, fmt.Errorf("cxi: peer %s: %w: %w", e, err, kind)
	}
	if (i.cfg.AwaitPeer || i.cfg.ConnectWait > 0) && !e.ready.Load() {
		return nil, fmt.Errorf("cxi: the NIC of peer %s has not answered: %w", e, hw.ErrUnreachable)
	}
	e.connected.Store(true)
	return e, nil
}

// endpointTo finds or makes the endpoint of a peer and asks its NIC.
func (i *Iface) endpointTo(a address, name []byte) (*Endpoint, error) {
	if i.closed.Load() {
		return nil, errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.ids.Load().find(a.id())
	if e != nil && e.addr.nonce != a.nonce {
		if !i.named.says(a) {
			return nil, fmt.Errorf("cxi: peer %s has greeted meanwhile: %w", e, hw.ErrUnreachable)
		}
		e.end(fmt.Errorf("another interface has the place of peer %s: %w", e, hw.ErrPeerDead))
		e = nil
	}
	if e == nil {
		var err error
		if e, err = i.newEndpoint(a, name); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(e.names, func(n []byte) bool { return bytes.Equal(n, name) }) {
		e.names = append(e.names, name)
	}
	return e, nil
}

// awaitAnswer asks the peer's NIC, unless it has answered before, and waits as long as the configuration says.
func (i *Iface) awaitAnswer(e *Endpoint) {
	for end := time.Now().Add(i.cfg.ConnectWait); !e.ready.Load() && e.failure.Load() == nil; time.Sleep(20 * time.Microsecond) {
		e.q.take()
		e.ask()
		e.q.q.Ring()
		e.q.poll()
		e.q.give()
		if e.q.anyCompleted.Load() {
			i.bell.Ring()
		}
		if e.ready.Load() || !time.Now().Before(end) {
			return
		}
	}
}

// SourceReaches reports whether a Connect to address would reach the source.
func (i *Iface) SourceReaches(src hw.Source, name []byte) bool {
	e := i.peer(uint32(src))
	if e == nil {
		return false
	}
	if bytes.Equal(e.Address(), name) {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(e.names, func(n []byte) bool { return bytes.Equal(n, name) })
}

// SourceAddress is the address of a remote interface that sent to us.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	if e := i.peer(uint32(src)); e != nil {
		return e.Address()
	}
	return nil
}
