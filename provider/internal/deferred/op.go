package deferred

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// NumberBit is set in the numbers of operations, which take the place of contexts that are addresses.
const NumberBit = 1 << 63

// States of an operation. Changed under Queue.mu.
const (
	waiting = iota // for its counter
	fired          // in the list, or blocked
	posted         // or being posted
	gone
)

// Op is an operation that waits for a counter. Its exported fields are set before [Queue.Add] and do not change.
type Op struct {
	Number   uint64      // of [Queue.Number]
	Deferred bool        // deferred work, which waits for value and error value together; else triggered
	User     uint64      // how the application names it: context, or address of its structure
	Context  uint64      // of the operation's completion
	On       *cq.Counter // that it waits for
	At       uint64      // the value of On at which it is posted
	Done     *cq.Counter // counts the end of deferred work, nil: none does
	Backlog  *Backlog    // of the receive context that tries again; nil: an operation on a counter
	Sequence Sequence
	Post     func() error   // posts the operation; fi.EAGAIN: there is no room
	Fail     func(fi.Errno) // reports one that could not be posted, nil: it always can

	counter  *cq.Counter // that the operation changes; retained until it is gone, as Done is; nil: none
	trigger  cq.Trigger
	retained bool // On is, until the operation is posted or gone; under Queue.mu
	state    int  // under Queue.mu
}

// Sequence is what keeps its order: the operations of an endpoint to one address, or the receives of a context.
type Sequence struct {
	Owner any // the endpoint or receive context, a pointer
	Dest  fi.Addr
}

// Completes returns what the operation's completion names: the number of deferred work, 0 for a triggered operation.
func (w *Op) Completes() uint64 {
	if w.Deferred {
		return w.Number
	}
	return 0
}

// release gives up the counters of an operation that is gone and was not posted.
func (w *Op) release() {
	if w.retained {
		w.On.Release()
	}
	for _, c := range []*cq.Counter{w.Done, w.counter} {
		if c != nil {
			c.Release()
		}
	}
}

// Backlog counts the operations of a receive context and its endpoints that are ready and not posted: progress has
// work while it is not empty.
type Backlog struct {
	// Notify is called after the number has grown, and makes a thread make progress of the context. Set before the
	// context is used. It may be called with the queue locked: it calls nothing of this package.
	Notify func()
	// n is added to by the thread that counts, subtracted from by the one that posts, read by threads that make
	// progress; sequentially consistent.
	n atomic.Int32
}

// Empty reports whether nothing is to be posted.
func (b *Backlog) Empty() bool { return b.n.Load() == 0 }

func (b *Backlog) add() {
	if b != nil {
		b.n.Add(1)
		b.Notify()
	}
}

func (b *Backlog) subtract() {
	if b != nil {
		b.n.Add(-1)
	}
}
