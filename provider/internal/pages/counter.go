package pages

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

const (
	// places is how many places a counter counts; then it begins anew.
	places = 4096
	// sample is how many bytes the data plane copies before they are counted, all for the place of the next operation.
	sample = 4 << 20
	// again is how many times as many bytes it takes until a place is reported again, for its move may not have helped.
	again = 8
	// pieceSample is how many bytes of lists are copied for each piece of them that is counted.
	pieceSample = 1 << 20
	// spread is 2^64 by the golden ratio: the multiples of it, modulo 2^64, are spread evenly (Knuth, The Art of
	// Computer Programming, volume 3, 6.4).
	spread = 0x9e3779b97f4a7c15
)

// Counter counts the bytes that are copied to and from places, each as much memory as a huge page has. The owner of a
// place is notified when it has been used often. What a sender offers to others and an initiator's buffers are counted
// by themselves; what an initiator copies without its target it counts for the target.
type Counter struct {
	after uint64 // bytes before a place is reported, 0: nothing is counted; immutable
	least uint64 // bytes of the shortest copy that counts; immutable

	// total is the bytes of one-sided operations that were counted. Posting threads add, the lease holder reads;
	// relaxed would do.
	total atomic.Uint64
	seen  uint64 // of them by Copying; the lease holder's
	// pieces is the bytes of lists. Posting threads add; relaxed would do.
	pieces atomic.Uint64

	// mu guards what follows. Posts of long messages and operations try it, and count nothing if another thread has it.
	mu     sync.Mutex
	places map[place]count
}

// place is memory of the size of a huge page.
type place struct {
	peer uint32 // 0: own memory
	key  uint64 // of the peer's region
	page uint64 // address, as the key has it, in units of Size
}

// count is what is known of a place.
type count struct {
	bytes uint64
	limit uint64 // at which it is reported
}

// Init has places reported after so many bytes, 0: never. Copies below least bytes do not count. Called before the
// counter is used.
func (c *Counter) Init(after, least uint64) { c.after, c.least = after, least }

// On reports whether anything is counted.
func (c *Counter) On() bool { return c.after != 0 }

// Sample is how many bytes the data plane copies before they are counted.
func (c *Counter) Sample() uint64 {
	if !c.On() {
		return math.MaxUint64
	}
	return sample
}

// Total adds the bytes of a one-sided operation.
func (c *Counter) Total(n uint64) { c.total.Add(n) }

// Copying reports whether this side has copied n bytes since the last call, with what the data plane has counted and
// was not taken. The caller has the progress lease.
func (c *Counter) Copying(n, untaken uint64) bool {
	last := c.seen
	c.seen = c.total.Load() + untaken
	return c.seen-last >= n
}

// Copied counts n bytes at an address of a peer's region, and extra ones at its beginning; peer 0 is own memory. It
// returns one of the addresses whose owner is to be notified now, if any. Any thread.
func (c *Counter) Copied(peer uint32, key, addr, n, extra uint64) (at uint64, notify bool) {
	if !c.On() || n < c.least || !c.mu.TryLock() {
		return 0, false
	}
	defer c.mu.Unlock()
	for end := addr + n; addr != end; {
		part := min(Size-addr%Size, end-addr)
		if c.count(place{peer, key, addr / Size}, part+extra) {
			return addr, true
		}
		addr, extra = addr+part, 0
	}
	return 0, false
}

// Own counts own memory, which is about to be copied to or from, and extra bytes of the first element. Background moves
// what is used often. Any thread.
func (c *Counter) Own(iov []fi.IOVec, extra uint64) {
	for _, v := range iov {
		if at, often := c.Copied(0, 0, uint64(v.Base), v.Len, extra); often {
			Background.Ask(at, 1)
		}
		extra = 0
	}
}

// Piece is a piece of a list that is counted for others.
type Piece struct {
	N      int     // which of the list's
	within uint64  // where in it, in units of 2^-64 of its length
	times  float64 // how many of its bytes one of them stands for
}

// Pieces adds the bytes of n pieces of a list, and extra ones of others, and calls f for those of the pieces that are
// to be counted: one for each pieceSample bytes, spread so that over some posts each place of the list comes as often
// as it is copied. Lists with pieces shorter than hot.AccessPieceMin, in the mean, do not count. Any thread.
func (c *Counter) Pieces(n int, bytes, extra uint64, f func(Piece)) {
	if n == 0 || !c.On() || bytes/uint64(n) < hot.AccessPieceMin {
		return
	}
	end := c.pieces.Add(bytes + extra)
	for i := (end - bytes - extra) / pieceSample; i != end/pieceSample; i++ {
		which, within := bits.Mul64(i*spread, uint64(n))
		f(Piece{N: int(which), within: within, times: pieceSample * float64(n) / float64(bytes)})
	}
}

// CopiedPiece is Copied for a piece of n bytes, with those that it stands for.
func (c *Counter) CopiedPiece(p Piece, peer uint32, key, addr, n uint64) (at uint64, notify bool) {
	if n == 0 || !c.mu.TryLock() {
		return 0, false
	}
	defer c.mu.Unlock()
	offset, _ := bits.Mul64(p.within, n)
	addr += offset
	return addr, c.count(place{peer, key, addr / Size}, uint64(p.times*float64(n)))
}

// count counts bytes of a place, and reports whether its owner is to be notified now. The caller has mu.
func (c *Counter) count(p place, n uint64) bool {
	k, ok := c.places[p]
	if !ok {
		if c.places == nil || len(c.places) == places {
			c.places = make(map[place]count)
		}
		k.limit = c.after
	}
	k.bytes += n
	notify := k.bytes >= k.limit
	if notify {
		k = count{limit: min(again*k.limit, 1<<60)}
	}
	c.places[p] = k
	return notify
}
