package matched

import (
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/freering"
	"github.com/weft-fabric/weft/internal/order"
)

// kind says what an operation is.
type kind uint8

const (
	kindSend kind = iota
	kindReceive
	kindSearch
	kindDiscard // a receive that throws away what was set aside
	kindRead
	kindWrite
	kindAtomic
	kindFetch // an atomic operation with a result
)

// receives reports whether an operation is a receive or a search.
func (k kind) receives() bool { return k == kindReceive || k == kindSearch || k == kindDiscard }

// access is what the device does to the memory of an operation.
func (k kind) access() hw.Access {
	if k == kindReceive || k == kindRead {
		return hw.LocalWrite
	}
	return 0
}

// way is how the bytes of an operation get to the device, or from it.
type way uint8

const (
	wayNone   way = iota // there are none
	wayInline            // with the command
	wayCopied            // from a copy, if a buffer is free; else as wayMapped
	wayMapped            // the memory is registered
)

// way is that of so many bytes. It needs nothing of the runtime.
func (e *Endpoint) way(k kind, n uint64) way {
	leaves := k == kindSend || k == kindWrite
	switch {
	case n == 0 || k == kindDiscard:
		return wayNone
	case k == kindAtomic, k == kindFetch, leaves && n <= uint64(e.attr.MaxInject),
		k == kindWrite && n <= uint64(e.attr.MaxWrite):
		return wayInline
	case leaves && n <= copyBytes && e.copies.memory != nil:
		return wayCopied
	}
	return wayMapped
}

// operation is one that the device has. Threads without the runtime store it: it has no pointers.
type operation struct {
	kind   kind
	tagged bool
	inject bool
	copied uint16          // the buffer that it goes from, 0: none
	memory uint32          // number of its registration, 0: none
	hint   uint32          // number of the thread that posts it, or any: which stripe it is to be of
	to     hw.MatchAddress // of what goes to a peer

	context, flags, buf, len, tag uint64
}

// place is where an operation is kept. The thread that has taken it fills it ([table.enter]), and the holder of the
// progress lease ends it ([table.end]). Calls that search the whole table read some words beside both, and word before
// and after: if that has changed, the operation has ended meanwhile.
type place struct {
	// word is odd while the place is in use, and another number each time. Stored by enter behind all else, by end and
	// by revoke (release); read by any thread (acquire).
	word uint32
	// owner is the operation's context, peer where it goes, none of a receive, and number that of a receive among all,
	// from 1, else 0. Stored by enter (release), read by any thread (acquire).
	owner, peer, number uint64
	operation
}

// tableStripe is a part of a table, from which one thread at a time takes.
type tableStripe struct {
	lease  order.Lock    // of the taker of both rings. The holder of the progress lease is their giver
	first  uint32        // its first place; immutable
	_      [44]byte      // the ring begins a line
	free   freering.Ring // places, from first
	copies freering.Ring // buffers of copies
}

// table has the operations that the device has. A thread that posts leases a stripe while it takes a place, and
// progress gives places back without a lease, so that posts of several threads and progress do not wait for each
// other. The context of an operation's events is
//
//	63        32 31    24 23       0
//	+-----------+--------+--------+
//	|   word    | stripe | place  |
//	+-----------+--------+--------+
//
// An event that comes late finds another word, and nothing.
type table struct {
	stripes []tableStripe // a power of two; immutable, as mask and alone
	mask    uint32
	alone   order.Word
	places  []place
	// receives is how many were entered. Added to by threads that post, by one that is alone as a release store.
	receives uint64
	claims   claims
}

const (
	contextWord   = 32
	contextStripe = 24
	placeMask     = 1<<contextStripe - 1
	maxStripes    = 1 << 6
	leastPlaces   = 16 // of a stripe, where there are several
)

// newTable makes a table of n operations, in so many stripes or fewer. A thread that is alone by a word needs no lease.
func newTable(n, stripes int, alone order.Word) *table {
	stripes = max(1, min(stripes, maxStripes, n/leastPlaces))
	stripes = 1 << (bits.Len(uint(stripes)) - 1)
	t := &table{places: make([]place, n), stripes: make([]tableStripe, stripes), mask: uint32(stripes - 1),
		alone: alone}
	for k := range t.stripes {
		s := &t.stripes[k]
		s.lease.Alone(alone)
		s.first = uint32(k * n / stripes)
		s.free.Open(0, uint32((k+1)*n/stripes)-s.first)
	}
	t.claims.lock.Alone(alone)
	return t
}

// spot is a place that was taken, by its number in a stripe, and with it a buffer for a copy, 0: none.
type spot struct {
	stripe, place, buffer uint32
}

// take takes a place of a stripe, and with copied a buffer. False: it has not both. The caller has the lease.
func (s *tableStripe) take(copied bool) (place, buffer uint32, ok bool) {
	if place, ok = s.free.Take(); ok && copied {
		if buffer, ok = s.copies.Take(); !ok {
			s.free.Undo(place)
		}
	}
	return place, buffer, ok
}

// take takes a place, and with copied a buffer: of the first stripe from a hint on that has them, and that no other
// thread takes from now. False: there is none; busy says that a stripe was passed by. It needs nothing of the runtime.
func (t *table) take(hint uint32, copied bool) (at spot, ok, busy bool) {
	for k := range uint32(len(t.stripes)) {
		at = spot{stripe: (hint + k) & t.mask}
		s := &t.stripes[at.stripe]
		if !s.lease.Grab() {
			busy = true
			continue
		}
		at.place, at.buffer, ok = s.take(copied)
		s.lease.Give()
		if ok {
			return at, true, busy
		}
	}
	return spot{}, false, busy
}

// spins is how often claim tries stripes that other threads take from: some hundred nanoseconds.
const spins = 50

// claim is take for a thread that waits a moment. It needs nothing of the runtime.
func (t *table) claim(hint uint32, copied bool) (at spot, ok bool) {
	at.stripe = hint & t.mask
	if s := &t.stripes[at.stripe]; s.lease.Grab() {
		at.place, at.buffer, ok = s.take(copied)
		s.lease.Give()
		if ok {
			return at, true
		}
	}
	return t.claimAny(hint, copied)
}

// claimAny is claim where the first stripe has none, or is another thread's.
func (t *table) claimAny(hint uint32, copied bool) (at spot, ok bool) {
	busy := true
	for n := 0; n < spins && busy && !ok; n++ {
		at, ok, busy = t.take(hint, copied)
	}
	return at, ok
}

// enter enters an operation in a place that was taken for it, and returns its context. It needs nothing of the runtime.
func (t *table) enter(at spot, o *operation) (context uint64) {
	p := &t.places[t.stripes[at.stripe].first+at.place]
	peer, number := uint64(o.to), uint64(0)
	if o.kind.receives() {
		peer = uint64(hw.AnyAddress)
	}
	if o.kind == kindReceive {
		number = t.nextReceive()
	}
	p.operation = *o
	order.Store64(&p.owner, o.context)
	order.Store64(&p.peer, peer)
	order.Store64(&p.number, number)
	order.Store32(&p.word, p.word+1)
	return uint64(p.word)<<contextWord | uint64(at.stripe)<<contextStripe | uint64(at.place)
}

// nextReceive is the number of a receive. It needs nothing of the runtime.
func (t *table) nextReceive() uint64 {
	if !t.alone.Alone() {
		return atomic.AddUint64(&t.receives, 1)
	}
	order.Store64(&t.receives, t.receives+1)
	return t.receives
}

// add enters an operation and returns its context, false if there are as many as there may be, or with fi.Fence one to
// its peer is under way.
func (t *table) add(o *operation) (context uint64, ok bool) {
	if o.flags&fi.Fence != 0 && t.underway(o.to) {
		return 0, false
	}
	for {
		at, ok, busy := t.take(o.hint, false)
		if ok {
			return t.enter(at, o), true
		}
		if !busy {
			return 0, false
		}
		runtime.Gosched()
	}
}

// copy takes a buffer for a copy, 0: there is none.
func (t *table) copy(hint uint32) uint16 {
	for k := range uint32(len(t.stripes)) {
		s := &t.stripes[(hint+k)&t.mask]
		s.lease.Take()
		n, ok := s.copies.Take()
		s.lease.Give()
		if ok {
			return uint16(n)
		}
	}
	return 0
}

// copyOf is the stripe of a buffer.
func (t *table) copyOf(buffer uint16) *tableStripe {
	return &t.stripes[int(buffer-1)*len(t.stripes)/copyCount]
}

// uncopy gives back a buffer that was taken, and that the device has not got.
func (t *table) uncopy(buffer uint16) {
	s := t.copyOf(buffer)
	s.lease.Take()
	s.copies.Undo(uint32(buffer))
	s.lease.Give()
}

// underway reports whether an operation to a peer that was posted before has not ended. It needs nothing of the
// runtime.
func (t *table) underway(to hw.MatchAddress) bool {
	for n := range t.places {
		p := &t.places[n]
		word := atomic.LoadUint32(&p.word)
		if word&1 != 0 && atomic.LoadUint64(&p.peer) == uint64(to) && atomic.LoadUint32(&p.word) == word {
			return true
		}
	}
	return false
}

// at is the operation with a context, and its stripe, nil: it has ended. Lease, or a thread that has posted it in vain.
// It needs nothing of the runtime.
func (t *table) at(context uint64) (*place, *tableStripe) {
	k, n := uint32(context)>>contextStripe, uint32(context)&placeMask
	if k >= uint32(len(t.stripes)) {
		return nil, nil
	}
	s := &t.stripes[k]
	if n += s.first; n >= uint32(len(t.places)) {
		return nil, nil
	}
	p := &t.places[n]
	if word := uint32(context >> contextWord); word&1 == 0 || atomic.LoadUint32(&p.word) != word {
		return nil, nil
	}
	return p, s
}

// end gives the place of an operation back, and its buffer. Lease. It needs nothing of the runtime.
func (t *table) end(p *place, s *tableStripe, context uint64) {
	buffer := p.copied
	order.Store32(&p.word, p.word+1)
	s.free.Put(uint32(context) & placeMask)
	if buffer != 0 {
		t.copyOf(buffer).copies.Put(uint32(buffer))
	}
}

// revoke gives back the place of an operation that the device has not got. The caller has the stripe's lease. It needs
// nothing of the runtime.
func (t *table) revoke(p *place, s *tableStripe, context uint64) {
	order.Store32(&p.word, p.word+1)
	s.free.Undo(uint32(context) & placeMask)
}

// find returns the context, for the device, of the oldest receive with a context of the application's.
func (t *table) find(context uint64) (name uint64, ok bool) {
	least := ^uint64(0)
	for k := range t.stripes {
		s := &t.stripes[k]
		end := uint32(len(t.places))
		if k+1 < len(t.stripes) {
			end = t.stripes[k+1].first
		}
		for n := s.first; n < end; n++ {
			p := &t.places[n]
			word := atomic.LoadUint32(&p.word)
			owner, number := atomic.LoadUint64(&p.owner), atomic.LoadUint64(&p.number)
			if word&1 != 0 && owner == context && number-1 < least && atomic.LoadUint32(&p.word) == word {
				name, ok = uint64(word)<<contextWord|uint64(k)<<contextStripe|uint64(n-s.first), true
				least = number - 1
			}
		}
	}
	return name, ok
}

// room is how many operations there is room for.
func (t *table) room() (n int) {
	for k := range t.stripes {
		n += t.stripes[k].free.Len()
	}
	return n
}
