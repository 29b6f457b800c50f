package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// When a thread that polls in vain yields its processor.
//
// More threads that poll than processors stand in each other's way: the thread that is waited for does not run while
// those that wait use their time up. So a thread that does nothing but poll, and has found nothing so many times in a
// row, yields. How many times that is it finds out.
//
// A yield that returned at once was of no use, and the next comes later. One that let other threads run that poll was
// right, and the next comes sooner: a thread that polls in its turn yields as well. One to a thread that computes would
// give away all of the processor, so the next comes later, too. That thread runs for long without a sign of polling;
// threads that poll leave such a sign for the others of their process, so many of them are not mistaken for it, however
// long all of their turns take.
//
// However late, a yield comes before turnNanos has been polled twice. So a thread that has its processor for itself
// spends a thousandth of its polling on yields, one that polls beside others never seems to them to compute, and those
// that all once were late learn to be early again.
//
// Where yields are right, the thread that is waited for may all the same be running, on another processor, and then it
// is better to wait a little more than to be away. So a thread is patient if that was worth it lately, and else tries
// it now and then.

// Polls in a row that find nothing before a yield (hot.YieldMin is the least of all): if it is worth being patient, and
// of a new thread.
const (
	yieldPatient = 256
	yieldFirst   = 1024
)

// Yields for which a thread stays patient after something came late, and of which one is tried with patience otherwise.
const (
	patience    = 4
	patienceTry = 16
)

// Times in ns.
const (
	// above it another thread must have run during a yield: a yield to no thread takes 200 to 500, an empty poll some 10
	awayNanos     = 1500
	awayLongNanos = 1000000 // above it one that ran without a sign does not poll
	denseNanos    = 2000    // for each poll; above it the thread has done other things than poll
	turnNanos     = 250000  // of polling after which the number of polls is large enough
)

// seat is a processor, as threads of this process that poll see it.
type seat struct {
	// seen is when one was last there, ns. Written and read by those that begin or end a yield there; relaxed: an old
	// time costs a wrong guess.
	seen uint64
	_    [56]byte
}

// seats are by processor; those with the same number modulo their count share one.
var seats [256]seat

func seatOf(processor uint32) *uint64 { return &seats[processor%uint32(len(seats))].seen }

// Values of Poll.Step of an idle thread.
const (
	idleBegin   = iota
	idleClock   // the time is known
	idleYielded // and it has yielded
)

// idle is what a thread does after polls in vain for its turn: it yields if it has done nothing but poll since the
// last time. p is its last poll, with Step 0 at first; the result is a code of hot.Poll.
func idle(p *hot.Poll) uintptr {
	t := (*hot.Thread)(pointer(p.Thread))
	switch p.Step {
	case idleBegin:
		p.Step = idleClock
		return hot.PollClock
	case idleClock:
		dense := p.Clock-t.Since < uint64(t.Turn)*denseNanos
		t.Empty = 0
		if !dense {
			t.Since = p.Clock
			return hot.DeliveryDone
		}
		order.Store64(seatOf(p.Processor), p.Clock)
		p.Last, p.Step = p.Clock, idleYielded
		return hot.PollYield
	}
	at := seatOf(p.Processor) // perhaps another one
	seen, since := atomic.LoadUint64(at), p.Last
	order.Store64(at, p.Clock)
	if seen > p.Last && seen < p.Clock {
		since = seen
	}
	t.Limit = nextLimit(t.Limit, p.Clock-p.Last, p.Clock-since, p.Last-t.Since)
	t.Since = p.Clock
	t.Turn = nextTurn(t)
	return hot.DeliveryDone
}

// nextLimit is the limit for the next yield, from how long this one took, how long another thread ran without a sign,
// and for how long the thread had polled.
func nextLimit(limit uint32, away, ran, polled uint64) uint32 {
	switch {
	case away > awayNanos && ran < awayLongNanos:
		return max(limit/2, hot.YieldMin)
	case polled < turnNanos:
		return limit * 2
	}
	return limit
}

func nextTurn(t *hot.Thread) uint32 {
	n := t.Yields
	t.Yields++
	if t.Limit < yieldPatient && (n < patience || n%patienceTry == 0) {
		return yieldPatient
	}
	return t.Limit
}
