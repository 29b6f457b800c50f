package list

import "github.com/weft-fabric/weft/fi"

// A read or write of an application with memory of a device is a post of a list that is made for it, and that nothing
// else posts: the list chooses the way of each piece. If a piece cannot go by a mapping, all of it goes as messages.

// Plain is such a read or write.
type Plain interface {
	// Post posts all of it as messages, as an operation whose end [Posts.Ended] takes in by the number. Errors as of
	// Endpoint.Post.
	Post(work uint64) error
	// Notify notifies the peer of a write that is in place, if that has data for it. Errors as of Endpoint.Post.
	Notify(to Peer) error
	// Complete completes it. copied: it has not gone as messages.
	Complete(status fi.Errno, completes, copied bool)
}

// plainOp is what a post has of the one that it is.
type plainOp struct {
	Plain
	posted   bool // as messages
	notified bool // the peer
}

// NewPlain makes a list for reads or writes. It is not closed, and uses no endpoint. False: some piece would go as a
// message, or does not fit, or all would be copied by the posting thread.
func (o *Posts) NewPlain(list []Piece) (*List, bool) {
	b := o.newList()
	for i := range list {
		if b.add(&list[i]) != nil {
			return nil, false
		}
	}
	for i := range b.shape.Runs {
		if !b.shape.Runs[i].Direct && !b.shape.Runs[i].Mapped {
			return nil, false
		}
	}
	return b.List, b.mapped
}

// PostPlain posts a read or write of all elements over a path. completes: it writes a completion. Errors as of
// [List.Post].
func (l *List) PostPlain(o Plain, a *Args, completes bool, to Peer, over Path) error {
	op := &Op{list: l, args: *a, sel: l.all(), total: l.Bytes(), completes: completes, plain: plainOp{Plain: o}}
	op.first.Store(noFailure)
	all := l.all()
	return op.move(&all, to, over)
}

// pumpPlain goes on with a read or write, of which all is copied or nothing is. It reports false when there is no room.
// The caller runs the work queue.
func (op *Op) pumpPlain() bool {
	o := &op.plain
	if op.sel.Len() != 0 && op.first.Load() == noFailure && !o.posted {
		op.pending.Add(1)
		o.posted = true
		if err := o.Post(op.work(0)); err != nil {
			op.pending.Add(-1)
			if fi.ErrnoOf(err) == fi.EAGAIN {
				o.posted = false
				return false
			}
			op.fail(0, fi.ErrnoOf(err))
		}
	}
	if !o.posted && !o.notified && op.first.Load() == noFailure {
		if err := o.Notify(op.to); fi.ErrnoOf(err) == fi.EAGAIN {
			return false
		} else if err != nil {
			op.fail(0, fi.ErrnoOf(err))
		}
		o.notified = true
	}
	return op.pending.Add(-1) != 0 || op.endQueued()
}
