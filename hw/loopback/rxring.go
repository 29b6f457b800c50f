package loopback

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/mpsc"
)

// rxRing is the consumer's side of one inbound ring. It belongs to the holder
// of the progress lease, but for what is marked.
type rxRing struct {
	ring mpsc.Ring
	head uint64       // position of the next message
	in   *hot.Inbound // where pollers see head; stored once for each batch; own, or the data plane's
	own  hot.Inbound

	empty uint32    // polls of an empty ring since its tail was checked
	taken uint32    // polls of a slot that stays taken
	since time.Time // when the first of these was
	hole  holeSuspicion
}

// ringOf is the number of the ring that the sender in an attach entry writes to.
func ringOf(entry uint32) uint32 { return min(entry, hot.RxRings-1) }

// ownsRing reports whether that ring is the sender's alone.
func ownsRing(entry uint32) bool { return entry < hot.RxRings-1 }

// useRing raises the number of rings in use so that it includes one.
func (s *segment) useRing(n uint32) {
	for {
		used := atomic.LoadUint32(s.ringsInUse())
		if used > n || atomic.CompareAndSwapUint32(s.ringsInUse(), used, n+1) {
			return
		}
	}
}

// open begins with a ring at its first position.
func (l *rxRing) open(r mpsc.Ring) {
	l.ring, l.in, l.own.Ring = r, &l.own, r.Hot()
	mpsc.SetHead(l.in, 0)
}

// seen is the position of the next message, as pollers see it: the data plane delivers, too.
func (l *rxRing) seen() uint64 { return atomic.LoadUint64(&l.in.Head) }

// show has pollers see head.
func (l *rxRing) show() { mpsc.SetHead(l.in, l.head) }

// ready reports whether the ring has a message. Any thread may ask.
func (l *rxRing) ready() bool { return mpsc.Arrived(l.in) }

// renew makes an empty ring that has no sender as good as new for the next one,
// whatever was written there.
func (l *rxRing) renew() {
	for pos := l.head; pos != l.head+l.ring.Slots(); pos++ {
		setFree(&l.ring, pos)
	}
	order.Store64(l.ring.TailWord(), l.head)
	order.Store64(outbound.FreeWord(&l.ring), 0)
	l.hole = holeSuspicion{}
}

// active are the rings that have, or had, a sender. Any thread may ask. A peer
// may have written anything there.
func (r *receiver) active() []rxRing { return r.rings[:min(atomic.LoadUint32(r.inUse), hot.RxRings)] }
