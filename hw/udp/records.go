package udp

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// Kinds of records in the stream, byte 7 of their header. Those that are no
// message carry an operation's number in the header's word.
const (
	recordMessage = iota
	_
	_
	recordFlush // asks for a recordFlushed
	recordFlushed
	recordKinds
)

// maxReplies bounds what waits: a peer that keeps its limits has no more
// operations in progress.
const maxReplies = 2 * maxOps

// postControl writes a record that is no message into the stream. It returns
// false if there is no room.
func (c *Endpoint) postControl(kind uint8, id uint32, payload []byte) bool {
	size, now := recordSize(0, len(payload)), c.i.now()
	if !c.fits(now, size) || c.tx.ring.open(c.i.cfg.Window) != nil {
		return false
	}
	c.beginRecord(now, kind, 0, nil, len(payload), uint64(id))
	c.tx.ring.write(payload)
	c.endRecord(0, len(payload))
	return true
}

// beginRecord writes all of a record, for which there is room, up to its payload of n bytes. That and
// endRecord follow.
func (c *Endpoint) beginRecord(now congestion.Time, kind uint8, id hw.AMID, head []byte, n int, word uint64) {
	c.lay(now, recordSize(len(head), n))
	var b [recordHeader]byte
	putRecord(b[:], id, len(head), n, word)
	b[7] = kind
	c.tx.ring.write(b[:])
	c.tx.ring.write(head)
}

// endRecord ends a record with so many bytes, and returns its size in the stream.
func (c *Endpoint) endRecord(head, n int) int {
	size := recordSize(head, n)
	c.tx.ring.pad(size - recordHeader - head - n)
	c.tx.tail += uint64(size)
	return size
}

// reply sends as many of the replies that wait as there is room for.
func (ops *transfers) reply() {
	t := &ops.c.tx
	n := 0
	for ; n < len(t.replies); n++ {
		if !ops.c.postControl(recordFlushed, t.replies[n], nil) {
			t.wanting = true
			break
		}
	}
	t.replies = t.replies[:copy(t.replies, t.replies[n:])]
}

// control performs a record that is no message, while delivering. It returns
// false if it must wait, and marks the stream as broken if it is malformed. Answers
// of a connection that is dead are not read.
func (ops *transfers) control(r *record, payload []byte) bool {
	id := uint32(r.word)
	if r.kind == recordFlush && len(ops.c.deliver.replies)+int(ops.c.deliver.owed) >= maxReplies {
		return ops.c.at() == dead
	}
	switch {
	case r.kind == recordFlush && len(payload) == 0:
		ops.c.deliver.replies = append(ops.c.deliver.replies, id)
	case r.kind == recordFlushed && len(payload) == 0:
		ops.c.deliver.results = append(ops.c.deliver.results, id)
	default:
		ops.c.deliver.broken = true
	}
	return true
}

// answered takes in, with the lease, what was collected while delivering.
func (ops *transfers) answered() {
	ops.c.tx.replies = append(ops.c.tx.replies, ops.c.deliver.replies...)
	ops.c.deliver.replies = ops.c.deliver.replies[:0]
	ops.reply()
	ops.c.deliver.owed = int32(len(ops.c.tx.replies))
	for _, id := range ops.c.deliver.results {
		if o := ops.find(id); o != nil && o.kind == opFlush {
			o.moved = 1
			ops.flushed()
		}
	}
	ops.c.deliver.results = ops.c.deliver.results[:0]
}

// flushed ends the flushes that have been answered if no put or get is in
// progress: those posted later are waited for too, which is more than asked.
func (ops *transfers) flushed() {
	for _, o := range ops.list {
		if o.kind == opPut || o.kind == opGet {
			return
		}
	}
	for _, o := range ops.list {
		if o.kind == opFlush && o.moved >= 1 {
			ops.complete(o, nil)
		}
	}
}
