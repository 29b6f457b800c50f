package matched

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/regcache"
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

// operation is one that the device has, from its post to its last event.
type operation struct {
	used       bool
	kind       kind
	posted     bool // id is set
	tagged     bool
	generation uint32
	id         hw.MatchID      // of a receive
	to         hw.MatchAddress // of what goes to a peer
	order      uint64          // of receives, in the order of their posts

	context, flags, buf, len, tag uint64
	inject                        bool
	memory                        *regcache.Entry // nil: none is registered
	copied                        uint16          // the buffer that it goes from, 0: none
}

// table has the operations that the device has, by number. The number with its generation is the context of events: one
// that comes late finds nothing.
type table struct {
	mu    sync.Mutex // guards everything; taken once for a post and once for each event, never while the device is called
	ops   []operation
	free  []uint32
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 || o.flags&fi.Fence != 0 && t.underway(o.to) {
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

// underway reports whether an operation to a peer has not ended. The caller has mu.
func (t *table) underway(to hw.MatchAddress) bool {
	return slices.ContainsFunc(t.ops, func(o operation) bool {
		return o.used && !o.kind.receives() && o.to == to
	})
}

// at is the operation with a context, nil: it has ended. The caller has mu.
func (t *table) at(context uint64) *operation {
	if n := uint32(context); n < uint32(len(t.ops)) && t.ops[n].used && t.ops[n].generation == uint32(context>>32) {
		return &t.ops[n]
	}
	return nil
}

// posted notes by which id an operation can be cancelled, if it has not ended.
func (t *table) posted(context uint64, id hw.MatchID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.at(context); o != nil {
		o.id, o.posted = id, true
	}
}

// take returns an operation, and ends it if last. False: it has ended.
func (t *table) take(context uint64, last bool) (o operation, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.at(context)
	if p == nil {
		return o, false
	}
	o = *p
	if last {
		p.used, p.memory = false, nil
		p.generation++
		t.free = append(t.free, uint32(context))
	}
	return o, true
}

// find returns the id of the oldest receive with a context of the application's.
func (t *table) find(context uint64) (id hw.MatchID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	least := ^uint64(0)
	for n := range t.ops {
		if o := &t.ops[n]; o.used && o.kind == kindReceive && o.posted && o.context == context && o.order < least {
			id, ok, least = o.id, true, o.order
		}
	}
	return id, ok
}

// setAside keeps a claim.
func (t *table) setAside(c claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims = append(t.claims, c)
}

// claimed gives out the oldest claim of a context.
func (t *table) claimed(context uint64, tagged bool) (c claim, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims = slices.Insert(t.claims, 0, c)
}

// room is how many operations there is room for.
func (t *table) room() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.free)
}
