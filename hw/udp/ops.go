package udp

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
)

// opKind is what an operation in progress is.
type opKind uint8

const (
	opFree  opKind = iota
	opPut          // bytes of ours go to the peer's memory
	opGet          // bytes of the peer's memory come
	opServe        // bytes of a region of ours go to the peer, which gets them
	opFlush        // a record of the peer's says that all before has been performed
)

// operation is one that is in progress on a connection. It belongs to the
// lease holder.
type operation struct {
	kind  opKind
	id    uint32 // index in the table, and a generation above opIndexBits
	segs  []hw.Segment
	total uint64
	addr  uint64
	key   uint64 // of the region
	next  uint64 // opPut, opServe: bytes sent once
	moved uint64 // bytes arrived below which nothing is missing
	done  recovery.Ranges
	lost  recovery.Ranges

	theirs uint32 // opServe: the peer's number for it
	c      *hw.Completion
}

const (
	opIndexBits = 10
	maxOps      = 1 << opIndexBits
	// maxServed bounds the operations of a peer that are served at a time, and
	// with maxOps what of it waits for an answer.
	maxServed = 128
)

// transfers are the one-sided operations of one connection: puts, gets and flushes of this side, and what is
// served of the peer's. It sends their bytes, performs what the peer asks for, and completes what has ended.
type transfers struct {
	opTable
	c *Endpoint // immutable
}

// opTable holds the operations of one connection.
type opTable struct {
	list    []*operation // by index
	free    []uint32
	sending []*operation // that have bytes to send, or may have again
	served  int
	busy    int // operations of our own in progress
}

// begin takes an entry, nil if there is none.
func (t *opTable) begin(kind opKind) *operation {
	var o *operation
	if n := len(t.free); n > 0 {
		o = t.list[t.free[n-1]]
		t.free = t.free[:n-1]
	} else {
		if len(t.list) == maxOps {
			return nil
		}
		o = &operation{id: uint32(len(t.list))}
		t.list = append(t.list, o)
	}
	o.kind = kind
	if kind == opServe {
		t.served++
	} else {
		t.busy++
	}
	return o
}

// end gives an entry back. Its number is not used again for long.
func (t *opTable) end(o *operation) {
	if o.kind == opServe {
		t.served--
	} else {
		t.busy--
	}
	clear(o.segs)
	done, lost := o.done, o.lost
	done.Clear()
	lost.Clear()
	*o = operation{id: o.id + maxOps, segs: o.segs[:0], done: done, lost: lost}
	t.free = append(t.free, o.id&(maxOps-1))
	for n, other := range t.sending {
		if other == o {
			t.sending = append(t.sending[:n], t.sending[n+1:]...)
			break
		}
	}
}

// find returns the operation with a number, nil if it has ended.
func (t *opTable) find(id uint32) *operation {
	if at := id & (maxOps - 1); at < uint32(len(t.list)) {
		if o := t.list[at]; o.id == id && o.kind != opFree {
			return o
		}
	}
	return nil
}

// waiting returns the first operation that has bytes to send, nil if none has.
func (t *opTable) waiting() *operation {
	for _, o := range t.sending {
		if o.lost.Len() > 0 || o.next < o.total {
			return o
		}
	}
	return nil
}

// arrived takes in that bytes of the operation have arrived, and reports whether
// these were the last.
func (o *operation) arrived(s recovery.Span) bool {
	o.lost.Remove(s)
	if s.To > o.moved {
		o.done.Add(recovery.Span{From: max(s.From, o.moved), To: s.To})
		o.moved = o.done.Advance(o.moved)
	}
	return o.moved >= o.total
}

// ended is an operation that has ended and has its completion updated by Progress.
type ended struct {
	c   *hw.Completion
	err error
}

// complete ends an operation of ours.
func (ops *transfers) complete(o *operation, err error) {
	if o.c != nil {
		ops.c.s.ended = append(ops.c.s.ended, ended{o.c, err})
		ops.c.s.ready.Add(1)
	}
	ops.end(o)
}

// abandon ends all operations with err. What the peer is answered stays.
func (ops *transfers) abandon(err error) {
	for _, o := range ops.list {
		if o.kind != opFree {
			ops.complete(o, err)
		}
	}
}
