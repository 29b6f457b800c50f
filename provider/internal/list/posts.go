package list

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/slots"
)

// Posts are the posts of lists of an endpoint that are under way, by slot.
type Posts struct {
	ep  Endpoint       // immutable
	cfg *config.Config // immutable

	under slots.Table[Op]
	// copying counts the goroutines that are at an operation. Added to by posts, taken off by the goroutines, read
	// when the endpoint closes; sequentially consistent.
	copying atomic.Int32
	// moving counts the posts of which a device has been given elements. Added to by the thread that runs the work
	// queue, taken off at their ends, read by any thread; sequentially consistent.
	moving atomic.Int32
	// batches is what the data plane copies elements by, one, empty before the first list that needs it. It is freed
	// with the endpoint. Under preparing, which is taken while a list is prepared.
	batches   mem.Array[dataplane.Batches]
	preparing sync.Mutex
}

// Init makes them those of an endpoint.
func (o *Posts) Init(ep Endpoint, cfg *config.Config) { o.ep, o.cfg = ep, cfg }

// The number of an element, or of consecutive ones by the place of the first in the post, has workBit set, which the
// numbers of deferred work have not, and the slot of the operation.
const (
	workBit     = 1 << 62
	elementBits = 20
	elementMask = 1<<elementBits - 1
)

// Work is the number of an element of the operation in a slot.
func Work(slot, n uint32) uint64 { return workBit | uint64(slot)<<elementBits | uint64(n) }

// IsWork reports whether a number without package deferred's is that of elements.
func IsWork(work uint64) bool { return work&workBit != 0 }

// Place is the element, or the place of the first, that a number has.
func Place(work uint64) int { return int(work & elementMask) }

// forPosts returns the address of batches. The error wraps fi.ENOMEM.
func (o *Posts) forPosts() (uintptr, error) {
	o.preparing.Lock()
	defer o.preparing.Unlock()
	if o.batches.Len() == 0 {
		all, err := mem.NewSparseArray[dataplane.Batches](1)
		if err != nil {
			return 0, fmt.Errorf("batches of elements: %w: %w", err, fi.ENOMEM)
		}
		o.batches = all
	}
	return o.batches.At(0).Address(), nil
}

// At returns the operation of a number, nil if there is none.
func (o *Posts) At(work uint64) *Op { return o.under.At(work &^ workBit >> elementBits) }

// Cancel asks for the end of an operation with a context, and reports whether there is one.
func (o *Posts) Cancel(context uint64) (found bool) {
	o.under.Each(func(op *Op) bool {
		found = op.plain.Plain == nil && op.args.Context == context && !op.halted.Swap(true)
		return !found
	})
	return found
}

// Ended takes in the end of an element of n bytes.
func (o *Posts) Ended(work uint64, status fi.Errno, n uint64) {
	op := o.At(work)
	if op == nil {
		return
	}
	if status == fi.Success {
		op.done.Add(n)
	} else {
		op.fail(uint32(Place(work)), status)
	}
	if op.pending.Add(-1) == 0 {
		end(op)
	}
}

// fail notes that an element has failed.
func (op *Op) fail(n uint32, status fi.Errno) {
	mine := uint64(n)<<32 | uint64(uint32(status))
	for old := op.first.Load(); mine < old; old = op.first.Load() {
		if op.first.CompareAndSwap(old, mine) {
			return
		}
	}
}

// Together is a request of several elements that ends. Failed says of one that failed where: of a write the number of
// the element in the request, of a read the byte.
type Together struct {
	Work, Total, Failed uint64
	Count               uint32
	Read                bool
}

// TogetherEnded takes in the end of a request of several elements: those before the first that failed are done.
func (o *Posts) TogetherEnded(t Together, status fi.Errno) {
	op := o.At(t.Work)
	if status == fi.Success {
		op.done.Add(t.Total)
	} else {
		sel, done := op.Elements(), uint64(0)
		i := Place(t.Work)
		for end := i + int(t.Count) - 1; i < end; i++ {
			n := sel.At(i).Len
			if t.Read && done+n > t.Failed || !t.Read && t.Failed == 0 {
				break
			}
			if !t.Read {
				t.Failed--
			}
			done += n
		}
		op.done.Add(done)
		op.fail(sel.Number(i), status)
	}
	if op.pending.Add(-1) == 0 {
		end(op)
	}
}

// Moving reports whether a device has been given elements of posts that are under way.
func (o *Posts) Moving() bool { return o.moving.Load() != 0 }

// Go runs f in a goroutine, for which Rest waits.
func (o *Posts) Go(f func()) {
	o.copying.Add(1)
	go func() {
		defer o.copying.Add(-1)
		f()
	}()
}

// Rest has no further elements begin, and waits until no goroutine is at an operation, for a time at most: it returns
// how many are. The process that one waits for may be stopped, and copies what it is at when it goes on, so the memory
// is not the application's yet.
func (o *Posts) Rest(limit time.Duration) int {
	o.halt()
	for end := time.Now().Add(limit); o.copying.Load() != 0; time.Sleep(restPause) {
		if time.Now().After(end) {
			break
		}
	}
	return int(o.copying.Load())
}

// restPause is the pause between two loads of Rest.
const restPause = 100 * time.Microsecond

// Free frees what the endpoint, which closes, has for lists. No list is open. Errors: what the system says.
func (o *Posts) Free() error { return o.batches.Free() }

// halt has no further elements begin.
func (o *Posts) halt() {
	o.under.Each(func(op *Op) bool {
		op.halted.Store(true)
		return true
	})
}
