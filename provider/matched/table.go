package matched

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
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
	case k == kindAtomic, k == kindFetch, leaves && n <= uint64(e.attr.MaxInject):
		return wayInline
	case leaves && n <= copyBytes && e.copies.memory != nil:
		return wayCopied
	}
	return wayMapped
}

// operation is one that the device has, from its post to its last event. Threads without the runtime store it: it has
// no pointers.
type operation struct {
	used       bool
	kind       kind
	tagged     bool
	generation uint32
	to         hw.MatchAddress // of what goes to a peer
	order      uint64          // of receives, in the order of their posts

	context, flags, buf, len, tag uint64
	inject                        bool
	memory                        uint32 // number of its registration, 0: none
	copied                        uint16 // the buffer that it goes from, 0: none
}

// table has the operations that the device has, by number. The number with its generation is the context of events: one
// that comes late finds nothing.
type table struct {
	// mu guards everything, and which copies are free. It is taken once for a post and once for each event, never
	// while the device is called.
	mu    order.Lock
	ops   []operation
	free  []uint32 // its capacity is that of ops
	order uint64
	// claims are messages that were set aside for receives, in the order in which they were found.
	claims []claim
}

// claim is a message that was set aside for the receive with a context of the application's.
type claim struct {
	context uint64
	tagged  bool
	name    hw.Claim
}

func newTable(n int) *table {
	t := &table{ops: make([]operation, n), free: make([]uint32, 0, n)}
	for k := n - 1; k >= 0; k-- {
		t.free = append(t.free, uint32(k))
	}
	return t
}

// add enters an operation and returns its context, false if there are as many as there may be, or with fi.Fence one to
// its peer is under way.
func (t *table) add(o *operation) (context uint64, ok bool) {
	t.mu.Take()
	defer t.mu.Give()
	if o.flags&fi.Fence != 0 && t.underway(o.to) {
		return 0, false
	}
	return t.enter(o)
}

// enter is add of an operation that nothing has to end before. The caller has mu.
func (t *table) enter(o *operation) (context uint64, ok bool) {
	if len(t.free) == 0 {
		return 0, false
	}
	n := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.order++
	p := &t.ops[n]
	generation := p.generation
	*p = *o
	p.used, p.generation, p.order = true, generation, t.order
	return uint64(generation)<<32 | uint64(n), true
}

// underway reports whether an operation to a peer has not ended. The caller has mu. It needs nothing of the runtime.
func (t *table) underway(to hw.MatchAddress) bool {
	for n := range t.ops {
		if o := &t.ops[n]; o.used && !o.kind.receives() && o.to == to {
			return true
		}
	}
	return false
}

// at is the operation with a context, nil: it has ended. The caller has mu.
func (t *table) at(context uint64) *operation {
	if n := uint32(context); n < uint32(len(t.ops)) && t.ops[n].used && t.ops[n].generation == uint32(context>>32) {
		return &t.ops[n]
	}
	return nil
}

// end gives the place of an operation back. The caller has mu.
func (t *table) end(p *operation, context uint64) {
	p.used, p.memory = false, 0
	p.generation++
	t.free = t.free[:len(t.free)+1]
	t.free[len(t.free)-1] = uint32(context)
}

// take returns an operation, and ends it if last. False: it has ended.
func (t *table) take(context uint64, last bool) (o operation, ok bool) {
	t.mu.Take()
	defer t.mu.Give()
	p := t.at(context)
	if p == nil {
		return o, false
	}
	o = *p
	if last {
		t.end(p, context)
	}
	return o, true
}

// find returns the context, for the device, of the oldest receive with a context of the application's.
func (t *table) find(context uint64) (name uint64, ok bool) {
	t.mu.Take()
	defer t.mu.Give()
	least := ^uint64(0)
	for n := range t.ops {
		if o := &t.ops[n]; o.used && o.kind == kindReceive && o.context == context && o.order < least {
			name, ok, least = uint64(o.generation)<<32|uint64(n), true, o.order
		}
	}
	return name, ok
}

// setAside keeps a claim.
func (t *table) setAside(c claim) {
	t.mu.Take()
	defer t.mu.Give()
	t.claims = append(t.claims, c)
}

// claimed gives out the oldest claim of a context.
func (t *table) claimed(context uint64, tagged bool) (c claim, ok bool) {
	t.mu.Take()
	defer t.mu.Give()
	for k, c := range t.claims {
		if c.context == context && c.tagged == tagged {
			t.claims = slices.Delete(t.claims, k, k+1)
			return c, true
		}
	}
	return c, false
}

// notTaken puts a claim back that was given out, as the oldest.
func (t *table) notTaken(c claim) {
	t.mu.Take()
	defer t.mu.Give()
	t.claims = slices.Insert(t.claims, 0, c)
}

// room is how many operations there is room for.
func (t *table) room() int {
	t.mu.Take()
	defer t.mu.Give()
	return len(t.free)
}
