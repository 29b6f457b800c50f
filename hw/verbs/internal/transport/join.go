package transport

import "github.com/weft-fabric/weft/hw/verbs/internal/ibv"

// Several short messages in one operation, and so in one packet: those that are ready when the queue is posted, because
// another thread was posting or because they were corked (cork.go). The first one's slot and those behind it hold them
// packed, each at a multiple of 8 bytes. All but the last of them say that another one follows.

// JoinMax is the most messages in one operation.
const JoinMax = 16

// aligned is the least multiple of 8 that is no less.
func aligned(n uint32) uint32 { return (n + 7) &^ 7 }

// alone reports whether the operation of a place is one message in its slot.
func (q *SendQueue) alone(pos uint64) bool {
	p := q.place(pos)
	return p.Plain != 0 && p.Joined == 0 && q.op(pos).Opcode == ibv.OpSend
}

// join has those of the next n operations that are plain, and follow one another, go in one. The caller holds Run.
func (q *SendQueue) join(n int) {
	for k := 0; k < n; {
		k += q.joinFrom(q.Posted+uint64(k), n-k)
	}
}

// joinFrom joins what follows the operation at first, of n at most, to it, and returns how many go together.
func (q *SendQueue) joinFrom(first uint64, n int) int {
	if !q.alone(first) {
		return 1
	}
	b := q.slotsFrom(first)
	bytes, last, count := q.op(first).SGE[0].Len, uint32(0), 1
	for ; count < n && count < JoinMax; count++ {
		pos := first + uint64(count)
		from := aligned(bytes)
		if pos&q.Mask == 0 || !q.alone(pos) {
			break
		}
		more := q.op(pos).SGE[0].Len
		if from+more > q.JoinBytes {
			break
		}
		mark(b[last:], true)
		clear(b[bytes:from])
		copy(b[from:], q.slot(pos)[:more])
		last = from
		q.op(pos - 1).Opcode = ibv.OpJoined
		bytes = from + more
	}
	if count > 1 {
		pos := first + uint64(count-1)
		q.send(pos, &b[0], bytes)
		q.place(pos).Joined = uint8(count - 1)
	}
	return count
}

// Part gives each message that goes in one operation with others, and has not ended, its own again, and has those sent
// that would be written into a ring. The queue is stopped.
func (q *SendQueue) Part() {
	for pos := q.Head.Load(); pos < q.End(); pos++ {
		p := q.place(pos)
		if q.ready(pos) && (p.Joined != 0 || p.Plain != 0 && q.op(pos).Opcode == ibv.OpWrite) {
			q.partAt(pos)
		}
	}
}

// partAt gives each message of the operation at position last its own slot and operation again: to be sent, also one
// that would be written into a ring (eager.go).
func (q *SendQueue) partAt(last uint64) {
	var from, length [JoinMax]uint32
	p := q.place(last)
	n := int(p.Joined)
	first := last - uint64(n)
	b, at := q.slotsFrom(first), uint32(0)
	for k := range n + 1 {
		from[k], length[k] = at, uint32(bytesOf(b[at:]))
		at += aligned(length[k])
	}
	for k := n; k >= 0; k-- { // from the last on, which lies behind where it was moved to
		own := b[k*SlotBytes:][:length[k]]
		copy(own, b[from[k]:])
		mark(own, false)
		q.send(first+uint64(k), &own[0], length[k])
	}
	p.Joined = 0
}
