package loopback

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/proclock"
)

// presence is by what peers know of an interface.
type presence struct {
	lock   *proclock.Lock // that it lives; nil: the file system has none
	notice *hw.Notice     // in its segment
}

// Iface is the interface of one endpoint. It implements hw.Iface, hw.Direct
// and hw.Waiter.
type Iface struct {
	cfg  Config // with defaults; immutable
	host host   // immutable
	seg  *segment
	mark *uint32 // forkMark
	presence

	closed  atomic.Bool // set by Close; read by any thread
	stripes []*hot.Stripe
	own     []hot.Stripe // what stripes points to until FillStripe

	// mu guards peers, changes of endpoints, numbers, and bellFD. Connect, Close,
	// EnableWait, Arm and Disarm take it, and CheckPeers when a peer has died;
	// no send does.
	mu        sync.Mutex
	peers     map[target]*Endpoint
	endpoints atomic.Pointer[[]*Endpoint] // indexed by Endpoint.number, nil: not in use; see addEndpoint
	numbers   []uint32                    // not in use
	bellFD    int                         // the doorbell's socket, -1 or immutable
	bellDir   bellDir                     // immutable
	ringFD    atomic.Int32                // the socket from which we ring others, -1 until needed
	lastLog   atomic.Int64                // nanoseconds

	onPeer func(hw.PeerEvent)
	lost   atomic.Uint64 // peers

	_  [hot.CacheLine]byte // senders read what is above, the lease holder writes what follows
	rx receiver
	_  [hot.CacheLine]byte
}

// receiver is the consumer's state. It belongs to the holder of the progress
// lease, but for what is marked.
type receiver struct {
	rings    [hot.RxRings]rxRing
	inUse    *uint32 // segment.ringsInUse; stays valid after Close, for late readers
	next     uint32  // ring at which Progress begins
	handlers [hw.MaxAM]hw.Handler
	sources  []source // by attach index; grows with the first message of a higher one
	checks   peerScan
	// postponed says that the handler at work leaves its message on the ring.
	postponed bool

	dropped atomic.Uint64 // positions that gave no message to a handler
	// What Stats counts: added to by the lease holder, loaded by any thread; relaxed.
	malformed atomic.Uint64
	reclaimed atomic.Uint64
}

// Open makes the interface that is named by the socket address addr
// (sockaddr_in or sockaddr_in6, perhaps with a number: AppendNumber), and removes segments that dead processes
// left. Errors: hw.ErrInvalid; EADDRINUSE when a live interface has the name;
// ENOSPC when the memory file system is full; other errors of the file system.
func Open(addr []byte, cfg Config) (*Iface, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	name, err := parseSockaddr(addr)
	if err != nil {
		return nil, err
	}
	h, err := thisHost(cfg.Dir)
	if err != nil {
		return nil, err
	}
	h.across, h.here = cfg.Across, cfg.Here
	registerBarrier()
	lock, err := proclock.Hold(cfg.Dir)
	switch {
	case err == nil:
		h.locked = true
	case errors.Is(err, proclock.ErrUnsupported):
		cfg.Logf("loopback: peers in other pid namespaces are not reached: %v", err)
	default:
		return nil, fmt.Errorf("loopback: %w", err)
	}
	sweep(&h)
	i, err := newIface(&h, name, cfg)
	if err != nil {
		lock.Release()
		return nil, err
	}
	i.lock = lock
	return i, nil
}

// newIface makes the interface of a process that holds its lock, if it can.
func newIface(h *host, name sockaddr, cfg Config) (*Iface, error) {
	seg, err := createSegment(h, name, &cfg)
	if err != nil {
		return nil, err
	}
	i := &Iface{
		cfg: cfg, host: *h, seg: seg, presence: presence{notice: seg.notice()}, mark: forkMark(),
		peers:  map[target]*Endpoint{},
		bellFD: -1,
		onPeer: func(hw.PeerEvent) {},
	}
	i.endpoints.Store(new([]*Endpoint))
	i.rx.inUse = seg.ringsInUse()
	for n := range i.rx.rings {
		i.rx.rings[n].open(seg.ring(uint32(n)))
	}
	i.own = make([]hot.Stripe, cfg.Stripes)
	i.stripes = make([]*hot.Stripe, cfg.Stripes)
	for n := range i.own {
		i.fillStripe(n, &i.own[n])
		i.stripes[n] = &i.own[n]
	}
	i.ringFD.Store(-1)
	if i.bellDir, err = openBellDir(cfg.Dir); err != nil {
		seg.discard()
		return nil, fmt.Errorf("loopback: open directory %s: %w", cfg.Dir, err)
	}
	i.SetEagerWindow(true)
	if cfg.Memory != nil {
		cfg.Memory.join(i)
	}
	return i, nil
}

// usable reports whether calls may touch the mappings: not after Close, and not
// in a child after fork.
func (i *Iface) usable() bool { return !i.closed.Load() && atomic.LoadUint32(i.mark) != 0 }

// Attr is what the interface can do. The estimates are for a current server
// core; they order transports and are no promise.
func (i *Iface) Attr() hw.Attr {
	caps := hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered | hw.CapSameHost | hw.CapDirectRing | hw.CapWakeup |
		hw.CapFlush
	if i.cfg.UseCMA != CMANo {
		caps |= hw.CapPeerMemory | hw.CapPutZcopy | hw.CapGetZcopy |
			hw.CapNamedKeys | hw.CapOneSidedFree | hw.CapPieces | hw.CapPutPlaced
	}
	return hw.Attr{
		Caps:        caps,
		MaxAMShort:  hot.SlotBody,
		MaxAMHead:   maxHead,
		MaxAMBcopy:  int(i.seg.geo.bounceBytes),
		EagerAM:     i.cfg.Eager,
		MaxPeerIOV:  maxPeerIOV,
		MaxPutZcopy: maxOneSided, MaxGetZcopy: maxOneSided, MaxIOV: maxPeerIOV,
		Bandwidth:  12e9,
		Latency:    200e-9,
		Overhead:   40e-9,
		DeviceName: "shm",
		NUMANode:   -1,
		Priority:   100,
	}
}

// Withdraw implements hw.Publisher.
func (i *Iface) Withdraw() {
	if i.cfg.Memory != nil {
		i.cfg.Memory.leave(i)
	}
}

// Memory is the domain whose regions the interface publishes.
func (i *Iface) Memory() hw.MemoryDomain {
	if i.cfg.Memory == nil {
		return nil
	}
	return i.cfg.Memory
}

// Address is the socket address in canonical form: padding and flow label are 0.
// The number follows if there is one.
func (i *Iface) Address() []byte { return i.seg.id.name.bytes() }

// SetHandler installs the handler of id, before the first Progress.
func (i *Iface) SetHandler(id hw.AMID, h hw.Handler) { i.rx.handlers[id] = h }

// Postpone leaves the message of the handler that calls it at the head of its ring: those behind it wait, other rings
// do not.
func (i *Iface) Postpone() { i.rx.postponed = true }

// OnPeerEvent installs the function that CheckPeers calls.
func (i *Iface) OnPeerEvent(f func(hw.PeerEvent)) { i.onPeer = f }

// SetEagerWindow publishes to senders whether eager payloads are welcome. Any thread
// may call it. An open interface starts with it open.
func (i *Iface) SetEagerWindow(open bool) {
	if !i.usable() {
		return
	}
	if open {
		atomic.OrUint32(i.seg.rxState(), hot.RxOpen)
	} else {
		atomic.AndUint32(i.seg.rxState(), ^uint32(hot.RxOpen))
	}
}

// Stats returns the counters. Any thread may call it.
func (i *Iface) Stats() hw.Stats {
	return hw.Stats{
		Delivered: i.delivered(),
		Malformed: i.rx.malformed.Load(),
		Reclaimed: i.rx.reclaimed.Load(),
		PeersLost: i.lost.Load(),
	}
}

// delivered is the number of positions that the heads have passed, without those
// that gave no message. It saves counting them one by one.
func (i *Iface) delivered() uint64 {
	passed := uint64(0)
	for n := range i.rx.rings {
		word := &i.rx.rings[n].in.Head
		if i.closed.Load() {
			word = &i.rx.rings[n].own.Head
		}
		passed += atomic.LoadUint64(word)
	}
	return passed - min(passed, i.rx.dropped.Load()) // which runs ahead by what one batch drops
}

// logf writes a line, but at most ten in a second, so that a hostile peer
// cannot fill the log.
func (i *Iface) logf(format string, args ...any) {
	now := time.Now().UnixNano()
	last := i.lastLog.Load()
	if now-last >= int64(100*time.Millisecond) && i.lastLog.CompareAndSwap(last, now) {
		i.cfg.Logf("loopback %s: %s", i.seg.id.name.String(), fmt.Sprintf(format, args...))
	}
}

// Revoke implements hw.Direct. Release ↔ Endpoint.revoked of a peer behind its copy.
func (i *Iface) Revoke() { atomic.OrUint32(i.seg.rxState(), hot.RxRevoked) }

// closeWait bounds how long Close waits for peers to fetch the messages that
// still stand in this interface's bounce buffers.
const closeWait = time.Second

// Close removes the segment and gives all memory back. Messages that stand in
// bounce buffers get a second to be fetched by live peers; what was
// not fetched then is lost, with what was sent to that peer after it. Messages
// that fit into slots arrive in any case. The caller has stopped all threads that
// use the interface, but for those that poll for messages (Pending, or C with
// what FillEP wrote): they find none from now on. In a child after fork nothing
// happens.
func (i *Iface) Close() error {
	if atomic.LoadUint32(i.mark) == 0 || i.closed.Load() {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.rx.rings {
		l := &i.rx.rings[n]
		atomic.StoreUint64(&l.own.Head, l.seen()) // for Stats
	}
	if i.closed.Swap(true) {
		return nil
	}
	i.Withdraw()
	atomic.AndUint32(i.seg.rxState(), ^uint32(hot.RxOpen))
	atomic.OrUint32(i.seg.rxState(), hot.RxGone)
	endpoints := i.connected()
	for _, e := range endpoints {
		e.leave()
	}
	for end := time.Now().Add(closeWait); i.seg.bouncesInUse(*i.endpoints.Load()) && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
	i.seg.remove()
	i.closeBells()
	for _, e := range endpoints {
		e.release()
	}
	for n := range i.rx.sources {
		i.rx.sources[n].reset()
	}
	i.stripes = nil
	i.seg.mem.retire(&ownRanges)
	i.lock.Release()
	return nil
}

// bouncesInUse reports whether a live peer, one of some endpoints, has still to fetch a message of the segment's owner.
func (s *segment) bouncesInUse(endpoints []*Endpoint) bool {
	for n := range s.geo.bounceCount {
		b := s.bounce(n)
		if atomic.LoadUint32(&b.State) == 0 {
			continue
		}
		if e := holder(endpoints, b); e != nil && !e.lost() {
			return true
		}
	}
	return false
}

// errClosed is what calls after Close return, and all calls after fork.
var errClosed = fmt.Errorf("loopback: interface is closed, or was opened before fork: %w", unix.EBADF)
