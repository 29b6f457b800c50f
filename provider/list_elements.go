package provider

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/note"
	"github.com/weft-fabric/weft/provider/pieces"
	"github.com/weft-fabric/weft/provider/rkey"
)

// What a post of a list leaves is posted as reads and writes of single elements, some at a time, at the points
// where deferred work is (package deferred): there the thread holds nothing.

// listOp is a post of a list that is not copied at once.
type listOp struct {
	list *List
	args ListArgs // without the picks
	// the elements that are left; the posting thread's, then of the one that runs the work queue
	sel       pieces.Selection
	total     uint64 // bytes of the operation
	completes bool
	to        *link          // to the owner; immutable from the post on
	link      *link          // the same from begin on, nil before
	plain     *plainOp       // it is a read or write, nil: a post of the application's list
	note      *note.Outgoing // its notification, nil: none; immutable from the post on
	slot      uint32
	next      int      // in sel, of the thread that runs the work queue
	one       listArgs // likewise
	soon      together // likewise

	// registered is the list's memory that a device knows until the post ends, by port; nil: none was asked yet.
	// Written by the thread that runs the work queue, while elements are under way or to be posted.
	registered rkey.Local
	asked      *port

	// pending counts the elements that are posted and have not ended, and one for the post. Added to by
	// the thread that runs the work queue, taken from by it and by threads that end an element; sequentially
	// consistent, as what follows.
	pending atomic.Int64
	done    atomic.Uint64 // bytes of the elements that have ended well
	first   atomic.Uint64 // the first element that failed, above its errno; noFailure: none
	halted  atomic.Bool   // canceled
}

const (
	noFailure = ^uint64(0)
	// listWindow is how many elements of a post are under way at a time.
	listWindow = 256
	// listBit is set in the numbers that stand for elements in the place of deferred work: the slot of the
	// operation, and the element.
	listBit     = 1 << 62
	elementBits = 20
	elementMask = 1<<elementBits - 1
	maxListOps  = 1 << 16 // of one endpoint, that are under way
)

// listOps are the operations of an endpoint, by slot. The lock is taken once for each element that goes by
// itself, and when an operation begins and ends.
type listOps struct {
	mu    sync.Mutex
	slots []*listOp
	free  []uint32
	// copying counts the goroutines that are at an operation. Added to by posts, taken off by the goroutines, read
	// when the endpoint closes; sequentially consistent.
	copying atomic.Int32
	// batches is what the data plane copies elements by, one, empty before the first list that needs it. It is freed
	// with the endpoint.
	batches mem.Array[dataplane.Batches]
}

// forPosts returns the address of batches. The error wraps fi.ENOMEM.
func (o *listOps) forPosts() (uintptr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batches.Len() == 0 {
		all, err := mem.NewSparseArray[dataplane.Batches](1)
		if err != nil {
			return 0, fmt.Errorf("batches of elements: %v: %w", err, fi.ENOMEM)
		}
		o.batches = all
	}
	return o.batches.At(0).Address(), nil
}

func (o *listOps) add(op *listOp) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch n := len(o.free); {
	case n != 0:
		op.slot, o.free = o.free[n-1], o.free[:n-1]
		o.slots[op.slot] = op
	case len(o.slots) == maxListOps:
		return false
	default:
		op.slot = uint32(len(o.slots))
		o.slots = append(o.slots, op)
	}
	return true
}

func (o *listOps) remove(op *listOp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots[op.slot] = nil
	o.free = append(o.free, op.slot)
}

func (o *listOps) at(slot uint64) *listOp {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slot >= uint64(len(o.slots)) {
		return nil
	}
	return o.slots[slot]
}

// cancel asks for the end of an operation with a context, and reports whether there is one.
func (o *listOps) cancel(context uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.slots {
		if op != nil && op.plain == nil && op.args.Context == context && !op.halted.Swap(true) {
			return true
		}
	}
	return false
}

// stopped reports that no further elements are to begin.
func (op *listOp) stopped() bool { return op.halted.Load() || op.list.closed.Load() }

// begin has the elements that are left go. The caller holds the link, and calls PostReady. fi.EAGAIN: too
// many operations are under way, and this one is not.
func (op *listOp) begin(l *link) error {
	e := op.list.ep
	op.pending.Store(1)
	if !e.lists.add(op) {
		if op.done.Load() != 0 { // some is copied: it cannot be that nothing happened
			op.fail(op.sel.Number(0), fi.ENOMEM)
			op.finish()
			return nil
		}
		return fi.EAGAIN
	}
	op.link = l
	l.inFlight.Add(1) // fences wait for it, and the link stays
	if mapped := op.takeMapped(); len(mapped) != 0 {
		e.lists.copying.Add(1)
		go op.copyMapped(mapped)
		return nil
	}
	e.domain.work.AddSeries(op, &e.rx.deferred)
	return nil
}

// Pump posts elements as far as there is room, and reports whether it is done with that. The caller runs the work
// queue.
func (op *listOp) Pump() bool {
	if op.plain != nil {
		return op.pumpPlain()
	}
	for op.next < op.sel.Len() && op.first.Load() == noFailure {
		n := op.sel.Number(op.next)
		if op.stopped() {
			op.fail(n, fi.ECANCELED)
			break
		}
		if op.pending.Load() > listWindow {
			return false
		}
		op.pending.Add(1)
		count, err := op.postNext()
		if err != nil || count == 0 {
			op.pending.Add(-1) // it is not the last: the post counts too
		}
		switch {
		case err == nil:
		case fi.ErrnoOf(err) == fi.EAGAIN:
			return false
		default:
			op.fail(n, fi.ErrnoOf(err))
		}
		op.next += max(count, 1)
		op.soon.path = nil
	}
	if op.pending.Add(-1) == 0 {
		op.finish()
	}
	return true
}

// postNext posts the next elements, as many as go as one request, and returns how many that are. 0: one has no bytes,
// and there is nothing to post.
func (op *listOp) postNext() (int, error) {
	l, p, err := op.list.ep.peerFor(op.list.addr, 0)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	if t := op.together(p); t.count > 1 {
		return t.count, op.postTogether(l, t)
	}
	el := op.sel.At(op.next)
	if el.Len == 0 && !op.list.ep.domain.cfg.TokenWays.Message {
		return 0, nil // nothing that a device could move
	}
	return 1, op.postElement(l, p, &el)
}

// postElement posts the next element as an operation of its own.
func (op *listOp) postElement(l *link, p *path, el *dataplane.Element) error {
	e, a := op.list.ep, op.one.fill(op.list, el, &op.args)
	a.Flags = op.args.Flags & fi.DeliveryComplete
	if op.note != nil && !op.args.Read {
		a.Flags = fi.DeliveryComplete // they are done before it goes
	}
	a.local = op.register(p)
	a.work = listBit | uint64(op.slot)<<elementBits | uint64(op.sel.Number(op.next))
	total, err := e.checkRMA(a)
	if err != nil {
		return err
	}
	return a.post(e, l, p, total)
}

// listSlot is the slot of an operation, of the number that stands for elements of it.
func listSlot(work uint64) uint64 { return work &^ listBit >> elementBits }

// listEnded takes in the end of an element of n bytes.
func (e *initiator) listEnded(work uint64, status fi.Errno, n uint64) {
	op := e.lists.at(listSlot(work))
	if op == nil {
		return
	}
	if status == fi.Success {
		op.done.Add(n)
	} else {
		op.fail(uint32(work&elementMask), status)
	}
	if op.pending.Add(-1) == 0 {
		op.finish()
	}
}

// fail notes that an element has failed.
func (op *listOp) fail(n uint32, status fi.Errno) {
	mine := uint64(n)<<32 | uint64(uint32(status))
	for old := op.first.Load(); mine < old; old = op.first.Load() {
		if op.first.CompareAndSwap(old, mine) {
			return
		}
	}
}

// finish takes in that all elements have ended. The operation completes, or its notification goes, and then it does.
func (op *listOp) finish() {
	e := op.list.ep
	op.unregister()
	op.list.posts.Add(-1)
	if op.link != nil {
		e.lists.remove(op)
		op.link.inFlight.Add(-1)
	}
	status := fi.Success
	if first := op.first.Load(); first != noFailure {
		status = fi.Errno(uint32(first))
	}
	if op.note != nil {
		e.notes.Out.Settle(op.note, status)
		return
	}
	op.complete(status)
}

// NoteEnded completes the operation, of which the notification has ended.
func (op *listOp) NoteEnded(status fi.Errno) { op.complete(status) }

// complete completes the operation. Nothing of it is under way. With a status and no element that failed the
// notification has failed.
func (op *listOp) complete(status fi.Errno) {
	if op.plain != nil {
		op.completePlain(status)
		return
	}
	e := op.list.ep
	entry := cq.Entry{Context: op.args.Context, Flags: rmaKind(op.args.Read), Src: fi.AddrNotAvail}
	failed := status != fi.Success
	switch {
	case failed:
		if e.txCQ != nil {
			entry.Len, entry.Data = op.done.Load(), uint64(op.list.shape.Count)
			if first := op.first.Load(); first != noFailure {
				entry.Data = first >> 32
			}
			e.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	case op.completes:
		e.txCQ.Complete(entry)
	}
	e.countEnd(e.accessCntr(entry.Flags), 0, op.args.Flags&fi.Completion != 0, failed, op.total)
}

// copied counts elements that are copied, and their bytes.
func (op *listOp) copied(elements, n uint64) {
	op.done.Add(n)
	if op.plain == nil {
		op.to.countWay(&op.list.ep.initiator, WayIPC, elements, n)
	}
}
