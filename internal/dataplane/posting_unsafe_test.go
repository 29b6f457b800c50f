package dataplane

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

const (
	fetches   = 4
	keyLog2   = 4
	laneBytes = 128
	regionKey = 77
	regionLen = 4096
)

// loop is an endpoint that sends to itself: its one peer, at address senderAddr, has its own inbound ring, bounce
// buffers and regions.
type loop struct {
	*world
	tx     *hot.CQ
	peer   *hot.Peer
	stripe *hot.Stripe
	lines  []uint64 // counters of threads
	state  *[2]uint32
	region []byte
	key    *hot.Key    // of the region, for the initiator
	served *hot.Region // and for the target
	write  *hot.Cntr
	read   *hot.Cntr
}

func newLoop(t testing.TB) *loop {
	l := &loop{world: newWorld(t)}
	w := l.world
	lane := (*hot.RxRing)(w.memory(laneBytes))
	w.ep.Inbound[0].Ring.Tail = uintptr(unsafe.Pointer(&lane.Tail))
	l.state = (*[2]uint32)(w.memory(64))
	l.state[0] = hot.RxOpen
	peers := (*[senderAddr + 1]hot.Peer)(w.memory(int(unsafe.Sizeof(hot.Peer{})) * (senderAddr + 1)))
	l.peer = &peers[senderAddr]
	w.ep.Peers, w.ep.PeerLimit = uintptr(unsafe.Pointer(peers)), senderAddr+1
	*l.peer = hot.Peer{
		Slots: w.ep.Inbound[0].Ring.Slots, Tail: w.ep.Inbound[0].Ring.Tail, RxState: uintptr(unsafe.Pointer(l.state)),
		Log2Slots: ringLog2, Exclusive: 1, Owner: 1, Peer: 5,
	}
	stripes := (*[2]hot.Stripe)(w.memory(2 * int(unsafe.Sizeof(hot.Stripe{}))))
	l.stripe = &stripes[0]
	l.stripe.Bounce, l.stripe.BounceCount = uintptr(unsafe.Pointer(unsafe.SliceData(w.bounce))), bounceCount
	l.stripe.BounceStride = uint32(len(w.bounce)) / bounceCount
	// that of the progress lease's holder has the last buffer, too
	stripes[1] = *l.stripe
	stripes[1].BounceNext = bounceCount - 1
	w.ep.Stripes = uintptr(unsafe.Pointer(stripes))
	n := stats.Lines * stats.LineWords
	at := w.memory(8 * n)
	l.lines = unsafe.Slice((*uint64)(at), n)
	w.ep.StatsThreads = uintptr(at)
	w.ep.Flags |= hot.EPFast | hot.EPTxAlways
	w.ep.InjectMax, w.ep.EagerMax = 512, bounceBytes
	l.openTx()
	l.openRegion()
	return l
}

func (l *loop) openTx() {
	l.tx = (*hot.CQ)(l.memory(int(unsafe.Sizeof(hot.CQ{}))))
	l.tx.Format = uint32(fi.CQFormatTagged)
	const log2 = 4
	l.tx.Rings, l.tx.NRings, l.tx.RingStride = uintptr(l.memory(2*(128+64<<log2))), 2, 128+64<<log2
	cqring.SetSlots(l.tx, log2)
	l.ep.TxCQ = uintptr(unsafe.Pointer(l.tx))
	l.write = (*hot.Cntr)(l.memory(int(unsafe.Sizeof(hot.Cntr{}))))
	l.read = (*hot.Cntr)(l.memory(int(unsafe.Sizeof(hot.Cntr{}))))
	l.ep.WriteCntr, l.ep.ReadCntr = uintptr(unsafe.Pointer(l.write)), uintptr(unsafe.Pointer(l.read))
}

// openRegion makes a region that both sides know under regionKey.
func (l *loop) openRegion() {
	at := l.memory(regionLen)
	l.region = unsafe.Slice((*byte)(at), regionLen)
	regions := (*[1 << keyLog2]hot.Region)(l.memory(int(unsafe.Sizeof(hot.Region{})) << keyLog2))
	table := (*uintptr)(l.memory(8))
	keys := (*[1 << keyLog2]hot.Key)(l.memory(int(unsafe.Sizeof(hot.Key{}))<<keyLog2 +
		int(unsafe.Sizeof(hot.Claim{}))*hot.Claims))
	place := hot.KeyPlace(regionKey, 1<<keyLog2)
	regions[place] = hot.Region{
		State: hot.RegionLive, Access: hot.KeyRead | hot.KeyWrite | hot.KeyDirect, Key: regionKey,
		Addr: uint64(uintptr(at)), Len: regionLen,
	}
	l.served = &regions[place]
	l.key = &keys[place]
	*l.key = hot.Key{
		State: 1, Name: regionKey, Addr: uint64(uintptr(at)), Len: regionLen, Access: hot.KeyRead | hot.KeyWrite,
	}
	l.peer.Keys, l.peer.KeyCount = uintptr(unsafe.Pointer(keys)), 1<<keyLog2
	*table = uintptr(unsafe.Pointer(regions)) | keyLog2
	l.ep.Regions = uintptr(unsafe.Pointer(table))
	l.ep.PendingCount = fetches
	l.ep.Pendings = uintptr(l.memory(int(unsafe.Sizeof(hot.Pending{})) * fetches))
}

// bytes maps memory for a payload.
func (l *loop) bytes(n int) []byte { return unsafe.Slice((*byte)(l.memory(max(n, 1))), n) }

func at(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// completed takes a transmit's completion off the queue of a ring.
func (l *loop) completed() (hot.CQE, bool) {
	for n := range l.tx.NRings {
		view := cqring.SlotsOf(l.tx, n)
		ring := mpsc.View(&view)
		head := (*uint64)(pointer(l.tx.Rings + uintptr(n)*uintptr(l.tx.RingStride)))
		if ring.Ready(*head) {
			e := *(*hot.CQE)(ring.Slot(*head))
			ring.Release(*head)
			order.Store64(head, *head+1)
			return e, true
		}
	}
	return hot.CQE{}, false
}

// address is that of a thread.
func address(t *hot.Thread) uintptr { return uintptr(unsafe.Pointer(t)) }

// thread is what threads have counted.
func (l *loop) thread(what int) (n uint64) {
	for line := 0; line < len(l.lines); line += stats.LineWords {
		n += atomic.LoadUint64(&l.lines[line+what])
	}
	return n
}

// message is a post of a payload.
func (l *loop) message(payload []byte, kind uint32, tag, context uint64) hot.Post {
	return hot.Post{
		EP: uintptr(unsafe.Pointer(l.ep)), Buf: at(payload), Len: uint64(len(payload)), Dest: senderAddr, Header: tag,
		Kind: kind, Context: context,
	}
}

// serve takes in what was posted, as the shim does.
func (l *loop) serve() (codes []uintptr) {
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(l.ep))}
	for {
		code := deliver(&d)
		codes = append(codes, code)
		if code == hot.DeliveryDone || code == hot.DeliveryGo {
			return codes
		}
	}
}

// atomic is a post of an atomic operation on an element of the region.
func (l *loop) atomic(kind uint32, op fi.Op, d fi.Datatype, offset uint64, operand, compare, result []byte) hot.Post {
	p := hot.Post{
		EP: uintptr(unsafe.Pointer(l.ep)), Buf: at(operand), Len: 1, Dest: senderAddr, Header: offset, Key: regionKey,
		Atomic: kind, Op: uint32(op), Datatype: uint32(d),
	}
	if compare != nil {
		p.Compare = at(compare)
	}
	if result != nil {
		p.Result = at(result)
	}
	return p
}

// path makes the peer one that is reached by a backend's function, and returns the path's address.
func (l *loop) path(most uint32) uintptr {
	l.peer.Slots = 0
	path := (*hot.Path)(l.memory(int(unsafe.Sizeof(hot.Path{}))))
	path.Max = most
	paths := (*[senderAddr + 1]uintptr)(l.memory(8 * (senderAddr + 1)))
	paths[senderAddr] = uintptr(unsafe.Pointer(path))
	l.ep.Paths, l.ep.TransportActive = uintptr(unsafe.Pointer(paths)), 1
	return paths[senderAddr]
}

// deliverOne takes in one arrival.
func deliverOne(d *hot.Delivery, l *loop) bool {
	in := &l.ep.Inbound[0]
	owner, state, lapOK := mpsc.View(&in.Ring).Load(in.Head)
	if state != hot.SlotReady || !lapOK {
		return false
	}
	return takeOne(d, l.ep, &l.recv, owner, (*hot.Slot)(mpsc.View(&in.Ring).Slot(in.Head))) == next
}
