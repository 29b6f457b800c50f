package provider

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// The kernel pins the pages of the other process, one after the other, when a
// process reads or writes them; the pages of the own process cost less, but something.
// On a huge page that is one look for all, a third of the time of a copy of 64 KiB.
// So memory that is copied to or from again and again is put on huge pages
// (hugepages.go) by its owner. Who announces messages counts by itself what it
// announces, an initiator its buffers. What it copies without its target it counts, and tells it.

const (
	// heatPlaces is how many places an endpoint counts; then it begins anew.
	heatPlaces = 4096
	// heatSample is how many bytes C copies before Go counts them, all for the place
	// of the next operation.
	heatSample = 4 << 20
)

// heat counts the bytes that are copied to and from places.
type heat struct {
	after uint64 // bytes before the owner of a place is told, 0: nothing is counted; immutable

	// total is the bytes of one-sided operations that Go has counted. Posting threads add, the lease
	// holder reads; relaxed would do.
	total atomic.Uint64
	seen  uint64 // of them by copying; the lease holder's

	// mu guards what follows. Posts of long messages and operations try it, and count nothing if
	// another thread has it.
	mu     sync.Mutex
	places map[heatPlace]heatCount
}

// heatPlace is as much memory as a huge page has.
type heatPlace struct {
	peer uint32 // its link's index plus one, 0: own memory
	key  uint64 // of the peer's region
	page uint64 // address, as the key has it, in units of hugePage
}

// heatCount is what is known of a place.
type heatCount struct {
	bytes uint64
	limit uint64 // at which its owner is told
}

// heatAgain is how many times as many bytes it takes to tell the owner of a place again, for it may
// not have helped.
const heatAgain = 8

// sample is how many bytes C copies before Go counts them.
func (h *heat) sample() uint64 {
	if h.after == 0 {
		return math.MaxUint64
	}
	return heatSample
}

// copied counts n bytes at an address of a peer's region, and extra ones at its beginning. It
// returns one of the addresses whose owner is to be told now, if any.
func (h *heat) copied(peer uint32, key, addr, n, extra uint64) (at uint64, tell bool) {
	if h.after == 0 || n < hot.HeatMin || !h.mu.TryLock() {
		return 0, false
	}
	defer h.mu.Unlock()
	for end := addr + n; addr != end; {
		part := min(hugePage-addr%hugePage, end-addr)
		if h.count(heatPlace{peer, key, addr / hugePage}, part+extra) {
			return addr, true
		}
		addr, extra = addr+part, 0
	}
	return 0, false
}

// count counts bytes of a place, and reports whether its owner is to be told now. mu is held.
func (h *heat) count(place heatPlace, n uint64) bool {
	c, ok := h.places[place]
	if !ok {
		if h.places == nil || len(h.places) == heatPlaces {
			h.places = make(map[heatPlace]heatCount)
		}
		c.limit = h.after
	}
	c.bytes += n
	tell := c.bytes >= c.limit
	if tell {
		c = heatCount{limit: min(heatAgain*c.limit, 1<<60)}
	}
	h.places[place] = c
	return tell
}

// heatOwn counts own memory, which is about to be copied to or from, and extra bytes of the first
// element.
func (e *Endpoint) heatOwn(iov []fi.IOVec, extra uint64) {
	for _, v := range iov {
		if at, tell := e.heat.copied(0, 0, uint64(v.Base), v.Len, extra); tell {
			hugePages.ask(at, 1)
		}
		extra = 0
	}
}

// heatRemote counts a one-sided operation that the posting thread does, and what C has done
// since the last.
func (e *Endpoint) heatRemote(a *RMAArgs, l *link, p *path, total uint64) {
	extra := atomic.SwapUint64(&e.hot.Copied, 0)
	e.heat.total.Add(total + extra)
	e.heatOwn(a.IOV, extra)
	for _, r := range a.Remote {
		if at, tell := e.heat.copied(l.index+1, r.Key, r.Addr, r.Len, extra); tell {
			d := directScratches.Get().(*directScratch)
			_ = p.AMShort(amHeat, at, putWord(d.head[:], r.Key), nil) // told another time if there is no room
			directScratches.Put(d)
		}
		extra = 0
	}
}

// copying tells whether this side itself has copied n bytes since it was asked the last time. The
// caller holds the progress lease.
func (e *Endpoint) copying(n uint64) bool {
	last := e.heat.seen
	e.heat.seen = e.heat.total.Load() + atomic.LoadUint64(&e.hot.Copied)
	return e.heat.seen-last >= n
}

// onHeat puts memory on huge pages that an initiator copies to or from often: what the region has
// of the place of an address.
func (e *Endpoint) onHeat(src hw.Source, addr uint64, head, payload []byte) {
	key, ok := parseWord(head)
	if !ok || e.sourceWords(src) == nil {
		e.malformed(src, "address %#x, which is said to be used often", addr)
		return
	}
	m, offset, err := e.access(src, key, addr, 1, 0)
	if err != nil {
		return // closed meanwhile
	}
	defer m.gate.leave()
	if e.heat.after == 0 || m.named != nil {
		return
	}
	first := offset - min(offset, addr%hugePage)
	n := min(offset-first+hugePage-addr%hugePage, m.length-first)
	for _, v := range m.window(e.regionIOV[:0], first, n) {
		hugePages.ask(uint64(v.Base), v.Len)
	}
}
