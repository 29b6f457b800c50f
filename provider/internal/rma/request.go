package rma

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Request is a read, write or atomic that the target answers. It lies off
// the Go heap, in its stripe's request table.
//
// The thread that posts it owns it until its last message is about to be sent, or
// until it is queued for progress; from then on the holder of the progress lease
// does. It is ended once, by the thread that claims it: see live.
type Request struct {
	context uint64
	flags   uint64 // flagIsRead and those behind it
	work    uint64 // the number of the deferred work that it is, or 0
	total   uint64 // bytes of the operation, of an atomic's result
	data    uint64
	dest    uint64 // fi.Addr
	link    uint32
	by      uint32 // serial of the path over which its first messages go, or with flagByDevice its deviceOp's slot
	count   uint32
	iov     [wire.IOVLimit]fi.IOVec // local memory, of an atomic the result's
	parts   uint32
	part    uint32 // that the next message is of
	// elements is how many of a list it is, which are one message and no parts, with flagElements.
	elements uint32
	remote   [wire.IOVLimit]fi.RMAIOVec
	sent     uint64 // bytes of the part
	done     uint64 // bytes of the operation that messages were sent for

	// of an atomic
	kind     atomics.Kind
	op       fi.Op
	datatype fi.Datatype
	operands uint32
	operand  [wire.IOVLimit]fi.IOVec
	compares uint32
	compare  [wire.IOVLimit]fi.IOVec

	// left is what is still to be answered: parts of a write, bytes of the
	// others. Stored before the first message, then the lease holder's.
	left atomic.Uint64
	// status is the first error. The lease holder's; the owner reads it when left says that it has come.
	status fi.Errno
	// failed is where, of elements of a list: which of them of a write, in which of the bytes of a read. Likewise.
	failed uint64
	// live is the generation of the request's id when all its messages are
	// sent, else 0. Stored by the owner before the last message, changed to 0
	// by compare-and-swap by the thread that ends the request; sequentially
	// consistent.
	live atomic.Uint32
}

const (
	flagIsRead uint64 = 1 << iota
	flagIsAtomic
	flagIsFetch
	flagHasData
	flagCompletes
	flagAsked     // a completion was asked for by fi.Completion
	flagSegmented // in segments; left is added to as they are posted
	flagDelivers  // a write in segments ends when the peer's memory has it
	flagMessages  // the peer does not let its memory be reached
	flagByDevice  // the transport's device does it: see deviceOp
	flagOrdered   // counted in Link.order
	flagHolds     // and there as one that later ones wait for
	flagListed    // an element of a list
	flagElements  // several of a list; the lower bits of work are the place of the first in the selection
)

// set copies a request that was built elsewhere, but for live.
func (req *Request) set(r *Request) {
	req.context, req.flags, req.total, req.data = r.context, r.flags, r.total, r.data
	req.work, req.dest = r.work, r.dest
	req.link, req.count, req.iov = r.link, r.count, r.iov
	req.parts, req.part, req.remote, req.sent, req.done = r.parts, 0, r.remote, 0, 0
	req.elements, req.failed = r.elements, 0
	req.kind, req.op, req.datatype = r.kind, r.op, r.datatype
	req.operands, req.operand, req.compares, req.compare = r.operands, r.operand, r.compares, r.compare
	req.status = fi.Success
	req.left.Store(r.left.Load())
}

// countedAs is the kind of operations as which a request counts.
func (req *Request) countedAs() tally.Kind {
	switch {
	case req.flags&flagIsAtomic != 0:
		return tally.Atomic
	case req.flags&flagIsRead != 0:
		return tally.Read
	}
	return tally.Write
}

// units is what the target answers for: bytes of a read or of an atomic's
// result, elements of the others. An answer to nothing counts as one.
func (req *Request) units() uint64 {
	if req.flags&(flagIsRead|flagIsFetch) != 0 {
		return max(1, req.total)
	}
	return max(1, uint64(req.parts+req.elements))
}

// operations is how many operations of an application it is.
func (req *Request) operations() uint64 { return max(1, uint64(req.elements)) }

// dropEmpty drops remote elements without bytes, but one of an operation on
// nothing: an answer to such a message, after those to all bytes, would end nothing.
func (req *Request) dropEmpty() {
	kept := uint32(0)
	for i, v := range req.remote[:req.parts] {
		if v.Len != 0 || kept == 0 && uint32(i)+1 == req.parts {
			req.remote[kept] = v
			kept++
		}
	}
	req.parts = kept
	req.left.Store(req.units())
}

// dataWaits reports whether the last message, which carries the CQ data of a write, is sent only when the target has
// accepted all elements before its own: the target keeps nothing of an operation whose first elements it has refused.
func (req *Request) dataWaits() bool { return req.flags&flagHasData != 0 && req.parts > 1 }

// ends is what a message for remote element i ends, the last for it or not.
func (req *Request) ends(i uint32, last bool) wire.Ends {
	switch {
	case !last:
		return wire.EndsNothing
	case i+1 == req.parts:
		return wire.EndsOperation
	}
	for _, later := range req.remote[i+1 : req.parts] {
		if later.Key == req.remote[i].Key {
			return wire.EndsShared
		}
	}
	return wire.EndsElement
}

// mark has a message of a write, from an offset in element i on, say what it ends, and carry CQ data if that is the
// operation. The target admits data with all of the one element, or this side sends it when all else is answered
// (dataWaits): none comes of a write that is refused.
func (req *Request) mark(w *wire.Write, i uint32, from uint64, last bool) {
	ends := req.ends(i, last)
	w.SetEnds(ends)
	if ends.Operation() && req.flags&flagHasData != 0 {
		w.Flags |= wire.WriteData
		if req.parts == 1 && from != 0 {
			w.Flags |= wire.WriteRest
		}
	}
}

// refusedAt takes in where an operation of several elements has failed first. False: not among them.
func (req *Request) refusedAt(at uint64) bool {
	most := uint64(req.elements)
	if req.flags&flagIsRead != 0 {
		most = req.total
	}
	if at >= most {
		return false
	}
	req.failed = at
	return true
}

// together is what remains to be known of a request that is elements of a list, as it ends.
func (req *Request) together() list.Together {
	return list.Together{Work: req.work, Total: req.total, Failed: req.failed, Count: req.elements,
		Read: req.flags&flagIsRead != 0}
}

// locate returns the remote element in which byte at of an operation is: its
// number, itself, where in it, and how much of it follows.
func (req *Request) locate(at uint64) (number int, part *fi.RMAIOVec, offset, left uint64) {
	for i := range req.remote[:req.parts] {
		number, part = i, &req.remote[i]
		if at < part.Len {
			break
		}
		at -= part.Len
	}
	return number, part, at, part.Len - at
}

// byMessages makes a request that the device did not do one that goes as messages.
func (req *Request) byMessages() {
	req.flags &^= flagByDevice
	req.part, req.sent, req.done = 0, 0, 0
	req.dropEmpty()
}
