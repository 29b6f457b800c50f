package list

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/pieces"
)

// What a post of a list leaves is posted as reads and writes of single elements, some at a time, at the points
// where deferred work is (package deferred): there the thread holds nothing.

// Op is a post of a list that is not copied at once.
type Op struct {
	list *List
	args Args // without the picks
	// the elements that are left; the posting thread's, then of the one that runs the work queue
	sel       pieces.Selection
	total     uint64 // bytes of the operation
	completes bool
	to        Peer           // the owner; immutable from the post on
	begun     bool           // it has a slot; set once, before any element goes
	plain     plainOp        // it is a read or write; without one: a post of the application's list
	note      *note.Outgoing // its notification, nil: none; immutable from the post on
	slot      uint32
	next      int      // in sel, of the thread that runs the work queue
	one       Element  // likewise
	soon      together // likewise
	places    places   // likewise, and of the end
	stream    stream   // likewise

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
	// window is how many elements of a post are under way at a time.
	window = 256
)

// Of reports whether the operation is one of the endpoint's.
func (op *Op) Of(o *Posts) bool { return op.list.of == o }

// Elements is the selection of the operation, for any thread while one of its requests is under way.
func (op *Op) Elements() pieces.Selection {
	return pieces.Selection{List: &op.list.shape, Picks: op.sel.Picks}
}

// stopped reports that no further elements are to begin.
func (op *Op) stopped() bool { return op.halted.Load() || op.list.closed.Load() }

// begin has the elements that are left go. The caller has a use of the peer, and calls PostReady. fi.EAGAIN: too
// many operations are under way, and this one is not.
func (op *Op) begin() error {
	o := op.list.of
	op.pending.Store(1)
	slot, ok := o.under.Take(op)
	if !ok {
		if op.done.Load() != 0 { // some is copied: it cannot be that nothing happened
			op.fail(op.sel.Number(0), fi.ENOMEM)
			end(op)
			return nil
		}
		return fi.EAGAIN
	}
	op.slot, op.begun = slot, true
	op.to.Count(1) // fences wait for it, and the link stays
	if mapped := op.takeMapped(); len(mapped) != 0 {
		o.Go(func() { op.copyMapped(mapped) })
		return nil
	}
	o.ep.Enter(op)
	return nil
}

// Pump posts elements as far as there is room, and reports whether it is done with that. The caller runs the work
// queue.
func (op *Op) Pump() bool {
	if op.plain.Plain != nil {
		return op.pumpPlain()
	}
	var corked Path // over which the last element went that another was to follow
	full := false
	op.stream.asked = false
	for op.next < op.sel.Len() && op.first.Load() == noFailure {
		n := op.sel.Number(op.next)
		if op.stopped() {
			op.fail(n, fi.ECANCELED)
			break
		}
		if full = op.pending.Load() > window; full {
			break
		}
		op.pending.Add(1)
		count, err := op.postNext(&corked)
		if err != nil || count == 0 {
			op.pending.Add(-1) // it is not the last: the post counts too
		}
		if full = fi.ErrnoOf(err) == fi.EAGAIN; full {
			break
		}
		if err != nil {
			op.fail(n, fi.ErrnoOf(err))
			op.next++
		}
		op.soon.path = nil
	}
	if corked != nil {
		corked.Uncork()
	}
	if full {
		return false
	}
	return op.pending.Add(-1) != 0 || op.endQueued()
}

// postNext posts the next elements, those that go as one request or that a device takes, and goes on behind them. It
// returns how many. 0: one has no bytes, and there is nothing to post, or there is an error.
func (op *Op) postNext(corked *Path) (int, error) {
	o := op.list.of
	to, over, err := o.ep.Connect(op.list.addr, 0)
	if err != nil {
		return 0, err
	}
	defer to.Release()
	if t := op.together(over); t.count > 1 {
		if err = op.postTogether(to, t); err == nil {
			op.next += t.count
		}
		return t.count, err
	}
	if count, err := op.stream.post(op, to, over, corked); count != 0 || err != nil {
		return count, err
	}
	el := &op.one
	el.Element = op.sel.At(op.next)
	if el.Len == 0 && !o.cfg.TokenWays.Message {
		op.next++
		return 0, nil // nothing that a device could move
	}
	if el.More = op.next+1 < op.sel.Len() && op.pending.Load() <= window; el.More {
		*corked = over
	}
	if err = op.postElement(to, over, el); err == nil {
		op.next++
	}
	return 1, err
}

// postElement posts the next element as an operation of its own.
func (op *Op) postElement(to Peer, over Path, el *Element) error {
	el.Dest, el.Read, el.Listed = op.list.addr, op.args.Read, true
	el.Flags = op.places.flags(op)
	el.Later = op.places.later(op, over, el.Flags)
	el.Registered = op.register(over)
	el.Work = op.work(op.sel.Number(op.next))
	return op.list.of.ep.Post(to, over, el)
}

// end takes in that all elements have ended.
func end(op *Op) {
	if !op.endQueued() {
		op.list.of.ep.Enter(op)
	}
}

// endQueued is end for the thread that runs the work queue: false says that there is no room, or that elements are left
// which a device has refused, and Pump is to be called again. What was written is put in its place, and the operation
// completes, or its notification goes, and then it does.
func (op *Op) endQueued() bool {
	o := op.list.of
	if op.stream.again(op) {
		op.pending.Store(1)
		return false
	}
	switch op.places.put(op) {
	case placeFull:
		op.pending.Store(1)
		return false
	case placing:
		return true
	}
	op.unregister()
	op.stream.count(op)
	op.list.posts.Add(-1)
	if op.begun {
		o.under.Give(op.slot)
		op.to.Count(-1)
	}
	status := fi.Success
	if first := op.first.Load(); first != noFailure {
		status = fi.Errno(uint32(first))
	}
	if op.note != nil {
		o.ep.Notes().Settle(op.note, status)
		return true
	}
	op.complete(status)
	return true
}

// NoteEnded completes the operation, of which the notification has ended.
func (op *Op) NoteEnded(status fi.Errno) { op.complete(status) }

// complete completes the operation. Nothing of it is under way. With a status and no element that failed the
// notification has failed.
func (op *Op) complete(status fi.Errno) {
	if o := &op.plain; o.Plain != nil {
		o.Complete(status, op.completes, !o.posted)
		return
	}
	entry := cq.Entry{Context: op.args.Context, Flags: fi.RMA | fi.Write, Src: fi.AddrNotAvail}
	if op.args.Read {
		entry.Flags = fi.RMA | fi.Read
	}
	if status != fi.Success {
		entry.Len, entry.Data = op.done.Load(), uint64(op.list.shape.Count)
		if first := op.first.Load(); first != noFailure {
			entry.Data = first >> 32
		}
	}
	op.list.of.ep.Complete(&entry, status, op.completes, op.args.Flags&fi.Completion != 0, op.total)
}

// copied counts elements that are copied, and their bytes.
func (op *Op) copied(elements, n uint64) {
	op.done.Add(n)
	if op.plain.Plain == nil {
		op.list.of.ep.Count(op.to, WayIPC, elements, n)
	}
}
