package exchange

import "slices"

// mark is what is known of a peer without a record: nothing goes either way.
type mark uint8

const (
	markLost mark = 1 << iota
	markAway      // is not needed and does not relay any more
	markNear      // is on this member's host
)

// keptRecords is how many records an operation keeps at most beyond those that it needs, for what they say of
// paths.
const keptRecords = 256

// records are the peers of which more is kept than a mark: those with bytes to exchange, and those that
// relays have to do with. A record has a number of its own, its slot, by which heaps and lists keep it.
type records struct {
	slots []int32 // by peer: of its record, plus 1; 0: it has none
	ids   []int32 // by slot: the peer
	recs  []*peer // by slot
	marks []mark  // by peer
	air   []*[Deepest]flight
}

func newRecords(n int) *records { return &records{slots: make([]int32, n), marks: make([]mark, n)} }

// slot is a peer's, below 0: it has no record.
func (r *records) slot(i int32) int32 { return r.slots[i] - 1 }

// find is a peer's record, nil: it has none.
func (r *records) find(i int32) *peer {
	if s := r.slots[i]; s != 0 {
		return r.recs[s-1]
	}
	return nil
}

// add gives a peer a record.
func (r *records) add(i int32, p *peer) {
	r.ids, r.recs = append(r.ids, i), append(r.recs, p)
	r.slots[i] = int32(len(r.ids))
}

// reserve gives each peer with bytes to exchange a record, and takes those from the others when there are more
// than keptRecords of these.
func (r *records) reserve(out, in []int64) {
	needed, missing := 0, 0
	for i := range out {
		if out[i]|in[i] != 0 {
			needed++
			if r.slots[i] == 0 {
				missing++
			}
		}
	}
	if len(r.recs)+missing-needed > keptRecords {
		r.drop(out, in, needed)
	}
	r.ids, r.recs = slices.Grow(r.ids, missing), slices.Grow(r.recs, missing)
	block := make([]peer, missing)
	for i := range out {
		if out[i]|in[i] != 0 && r.slots[i] == 0 {
			p := &block[0]
			block = block[1:]
			p.lost = r.marks[i]&markLost != 0
			r.add(int32(i), p)
		}
	}
}

// drop takes the records from the peers without bytes to exchange, and leaves room for so many.
func (r *records) drop(out, in []int64, room int) {
	ids, recs := r.ids, r.recs
	r.ids, r.recs, r.air = make([]int32, 0, room), make([]*peer, 0, room), nil
	block := make([]peer, 0, room)
	for s, i := range ids {
		if r.slots[i] = 0; out[i]|in[i] != 0 {
			block = append(block, *recs[s])
			r.add(i, &block[len(block)-1])
		} else if recs[s].lost {
			r.marks[i] |= markLost
		}
	}
}

// takeAir gives a peer memory for chunks on their way, and putAir takes it back.
func (r *records) takeAir(p *peer) {
	if n := len(r.air); n != 0 {
		p.flight, r.air = r.air[n-1], r.air[:n-1]
		return
	}
	p.flight = new([Deepest]flight)
}

func (r *records) putAir(p *peer) {
	if p.flight != nil {
		r.air, p.flight = append(r.air, p.flight), nil
	}
}

// at is a peer's record. One that has none gets one.
func (e *Engine) at(i int32) *peer {
	if s := e.known.slots[i]; s != 0 {
		return e.known.recs[s-1]
	}
	return e.newcomer(i)
}

// newcomer gives a record to a peer that has none.
func (e *Engine) newcomer(i int32) *peer {
	m := e.known.marks[i]
	p := &peer{lost: m&markLost != 0, away: m&markAway != 0, near: m&markNear != 0, over: true, in: inPeer{over: true}}
	e.known.add(i, p)
	return p
}

// gone reports whether a peer is lost.
func (e *Engine) gone(i int32) bool {
	if p := e.known.find(i); p != nil {
		return p.lost
	}
	return e.known.marks[i]&markLost != 0
}
