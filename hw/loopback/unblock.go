package loopback

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/hot"
)

// Slots of an inbound ring whose sender was killed between claim and publication. A slot that stays taken blocks what
// is behind it. Whether its owner lives is found out only after it had time: so many polls, and so long.
const (
	patiencePolls = 1000
	patience      = time.Millisecond
	emptyPolls    = 4096 // polls of an empty ring between two checks of the tail
)

// holeSuspicion remembers a slot that is free although the tail is past it.
type holeSuspicion struct {
	pos   uint64
	since time.Time
}

// unblock is called when the slot at the head holds no message. It takes the
// slot back if a dead producer holds it, or if a hostile one made it unusable;
// true means that the head has moved. now: counts of polls do not matter, for
// callers that come seldom.
func (i *Iface) unblock(l *rxRing, owner uint32, state int, lapOK, now bool) bool {
	switch {
	case lapOK && state == hot.SlotFree && owner == 0:
		l.taken = 0
		if l.empty++; l.empty < emptyPolls && !now {
			return false
		}
		l.empty = 0
		return i.checkTail(l)
	case lapOK && state == hot.SlotTaken:
		return i.checkTaken(l, owner, now)
	}
	// No producer and no consumer writes such a word at this position.
	i.malformed("slot %d was overwritten", l.head)
	l.ring.Release(l.head)
	i.advance(l)
	return true
}

// advance goes on with the next slot, for a slot that was no message.
func (i *Iface) advance(l *rxRing) {
	i.rx.dropped.Add(1)
	l.head++
	l.empty, l.taken = 0, 0
	l.show()
}

// checkTaken checks whether the owner of the taken slot at the head is dead.
func (i *Iface) checkTaken(l *rxRing, owner uint32, now bool) bool {
	if !now {
		if l.taken++; l.taken < patiencePolls {
			return false
		}
		if l.taken == patiencePolls {
			l.since = time.Now()
			return false
		}
		if l.taken%64 != 0 || time.Since(l.since) < patience {
			return false
		}
		l.taken = 0 // if it is alive, the same patience again
	}
	if !i.ownerGone(owner) || !l.ring.Reclaim(l.head, owner) {
		return false
	}
	i.rx.reclaimed.Add(1)
	i.advance(l)
	return true
}

// ownerGone reports whether a slot that owner has taken will never be published.
func (i *Iface) ownerGone(owner uint32) bool {
	if owner-1 >= i.seg.geo.attachCount {
		return true // 0 or beyond the table: no producer has this number
	}
	a := i.seg.attach(owner - 1)
	state := atomic.LoadUint32(&a.State)
	if src := i.known(owner - 1); src != nil && src.state != sourceRefused {
		return state == hot.AttachLeaving || !i.host.alive(src.owner)
	}
	switch state {
	case hot.AttachClaimed, hot.AttachReady, hot.AttachRefused:
		return !i.host.alive(process{pid: atomic.LoadUint32(&a.PID), start: startOf(a, state)})
	}
	return true // leaving, free or nonsense
}

// startOf is the start time in an attach entry, which is there only when the
// entry is ready; 0 is unknown.
func startOf(a *hot.Attach, state uint32) uint64 {
	if state == hot.AttachClaimed {
		return 0
	}
	return atomic.LoadUint64(&a.StartTime)
}

// checkTail repairs what a hostile peer did to the tail. A sound tail is at
// most one lap away from the head, and not past it while the slot at the head
// is free, except for the instant between a claim's two stores.
func (i *Iface) checkTail(l *rxRing) bool {
	slots := int64(l.ring.Slots())
	tail := l.ring.Tail()
	ahead := int64(tail - l.head)
	if ahead < -slots || ahead > slots {
		i.malformed("tail %d is far from head %d", tail, l.head)
		swapTail(&l.ring, tail, l.head)
		return false
	}
	if ahead <= 0 {
		// A tail behind the head is sound, but producers that start there pass slots that an
		// overwritten word may make appear full. Every position below the head was claimed.
		if ahead < 0 {
			swapTail(&l.ring, tail, l.head)
		}
		l.hole = holeSuspicion{}
		return false
	}
	now := time.Now()
	if l.hole.since.IsZero() || l.hole.pos != l.head {
		l.hole = holeSuspicion{l.head, now}
		return false
	}
	if now.Sub(l.hole.since) < patience {
		return false
	}
	l.hole = holeSuspicion{}
	return i.skipHole(l, tail)
}

// skipHole passes the free slots between head and tail, which producers will
// not fill because the tail is past them.
func (i *Iface) skipHole(l *rxRing, tail uint64) bool {
	begin := l.head
	for l.head != tail && skipFree(&l.ring, l.head) {
		l.head++
	}
	if l.head == begin {
		return false
	}
	i.rx.dropped.Add(l.head - begin)
	i.malformed("%d free slots below the tail", l.head-begin)
	l.show()
	return true
}
