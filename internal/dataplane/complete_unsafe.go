package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// Completions of what is delivered, in the array of the caller of fi_cq_read (put) or in the queue (completeTo), and
// counters.

// Bytes of an entry of fi_cq_read in each format.
const (
	contextBytes = 8
	msgBytes     = 24
	dataBytes    = 40
	taggedBytes  = 48
)

// entryBytes are those bytes by the format.
var entryBytes = [8]uintptr{
	fi.CQFormatContext: contextBytes, fi.CQFormatMsg: msgBytes, fi.CQFormatData: dataBytes,
	fi.CQFormatTagged: taggedBytes,
}

// put writes a completion to a reader, which has room for it.
func put(to *hot.Reader, format uint32, e *hot.CQE) {
	putWords(to, format, e.Context, e.Flags, e.Len, e.Buf, e.Data, e.Tag)
	putSource(to, e.Src)
}

// putWords is put of all but the source.
func putWords(to *hot.Reader, format uint32, context, flags, length, buf, data, tag uint64) {
	words := (*[6]uint64)(pointer(to.Buf))
	size := uintptr(contextBytes)
	switch fi.CQFormat(format) {
	case fi.CQFormatTagged:
		words[5] = tag
		fallthrough
	case fi.CQFormatData:
		words[3], words[4] = buf, data
		fallthrough
	case fi.CQFormatMsg:
		words[1], words[2] = flags, length
		size = entryBytes[format%uint32(len(entryBytes))]
	}
	words[0] = context
	to.Buf += size
	to.Left--
}

// putSource is put of the source, for a reader that wants it.
func putSource(to *hot.Reader, src uint64) {
	if to.Src != 0 {
		*(*uint64)(pointer(to.Src)) = src
		to.Src += 8
	}
}

// spot is where a completion goes: a reader, or a slot of ring 0 of the queue. The thread that takes one fills it.
// Its addresses are no pointers, which would need write barriers.
type spot struct {
	reader uintptr // of the hot.Reader, 0: the queue
	slot   uintptr // of the hot.CQE
	pos    uint64
}

// take finds a spot at a reader, nil: in the queue. False: the ring is full, or others wait for room there.
func (s *spot) take(q *hot.CQ, to *hot.Reader) bool {
	s.reader = 0
	if to != nil && to.Left != 0 {
		s.reader = uintptr(unsafe.Pointer(to))
		return true
	}
	if atomic.LoadUint64(&q.Overflow) != 0 {
		return false
	}
	view := cqring.SlotsOf(q, 0)
	slot, pos, ok := mpsc.View(&view).Claim(0, cqring.Exclusive(q))
	s.slot, s.pos = uintptr(slot), pos
	return ok
}

// fill writes the completion, and reports whether it is in the queue.
func (s *spot) fill(q *hot.CQ, e *hot.CQE) bool {
	if s.reader != 0 {
		put((*hot.Reader)(pointer(s.reader)), q.Format, e)
		return false
	}
	c := (*hot.CQE)(pointer(s.slot))
	c.Context, c.Flags, c.Len, c.Buf, c.Data, c.Tag, c.Src = e.Context, e.Flags, e.Len, e.Buf, e.Data, e.Tag, e.Src
	s.publish(q, hot.CQMarkEntry)
	return true
}

// publish publishes the slot, which is filled, with a mark.
func (s *spot) publish(q *hot.CQ, mark uint32) {
	view := hot.Ring{Log2Slots: q.Log2Slots}
	mpsc.View(&view).Publish(pointer(s.slot), mark, s.pos)
}

// completeTo writes a completion to ring 0 of the queue. False: the ring is full, or others wait for room there.
func completeTo(q *hot.CQ, e *hot.CQE) bool {
	var s spot
	if !s.take(q, nil) {
		return false
	}
	s.fill(q, e)
	return true
}

// wakeNeeded reports, after completions were published to a queue, whether a reader sleeps. The fence pairs with the
// one in the sleeper between arming and its last poll of the rings.
func wakeNeeded(q *hot.CQ) bool {
	if q == nil || q.Flags&hot.CQWaitable == 0 {
		return false
	}
	order.Fence()
	return atomic.LoadUint32(&q.Armed) != 0
}

// count counts an operation of some bytes that has ended, and returns what is to be done about it (hot.Todo*).
func count(c *hot.Cntr, bytes uint64) uint32 {
	n := uint64(1)
	if atomic.LoadUint32(&c.Flags)&hot.CntrBytes != 0 {
		n = bytes
	}
	atomic.AddUint64(&c.Value, n)
	return changed(c)
}

// countError counts an operation that has failed, and returns what is to be done about it.
func countError(c *hot.Cntr) uint32 {
	atomic.AddUint64(&c.Errors, 1)
	return changed(c)
}

// changed returns what is to be done about a counter that has changed.
func changed(c *hot.Cntr) (todo uint32) {
	flags := atomic.LoadUint32(&c.Flags)
	if flags&hot.CntrTriggers != 0 {
		todo = hot.TodoTriggered | hot.TodoWakeCntr
	} else if flags&hot.CQWaitable != 0 && atomic.LoadUint32(&c.Armed) != 0 {
		todo = hot.TodoWakeCntr
	}
	return todo
}

// countAs is count of the hot.Cntr at an address, 0: none, with wake in place of hot.TodoWakeCntr.
func countAs(counter uintptr, bytes uint64, wake uint32) (todo uint32) {
	if counter == 0 {
		return 0
	}
	if todo = count((*hot.Cntr)(pointer(counter)), bytes); todo&hot.TodoWakeCntr != 0 {
		todo = todo&^hot.TodoWakeCntr | wake
	}
	return todo
}
