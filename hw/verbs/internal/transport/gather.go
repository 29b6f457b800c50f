package transport

import "github.com/weft-fabric/weft/hw/verbs/internal/ibv"

// Several one-sided operations in one work request: those that are ready when the queue is posted, and whose bytes at
// the peer follow one another. The request has their local pieces in that order, and ends as the last one. If it fails
// each of them goes again, alone, and fails or not by itself.

// gatherBytes is the most bytes of a request of several operations: of long ones the bytes cost all, and the fewer
// bytes the fewer go again after a failure.
const gatherBytes = 1 << 18

// gather has those of the next n operations that may, and follow one another, go in one request. The caller holds Run.
func (q *SendQueue) gather(n int) {
	for k := 0; k < n; {
		k += q.gatherFrom(q.Posted+uint64(k), n-k)
	}
}

// gatherFrom has what follows the operation at first, of n at most, go with it, and returns how many go together.
func (q *SendQueue) gatherFrom(first uint64, n int) int {
	op := q.op(first)
	pieces, bytes, count := op.Pieces, bytesOfOp(op), 1
	limit := q.GatherMax
	if op.Opcode == ibv.OpRead {
		limit = min(limit, q.GatherReads)
	}
	for ; count < n && first >= q.apart; count++ {
		next := q.op(first + uint64(count))
		pieces += next.Pieces
		if bytes == 0 || next.Opcode != op.Opcode || next.Flags&ibv.Fence != 0 || next.RKey != op.RKey ||
			next.RemoteAddr != op.RemoteAddr+bytes || pieces > limit {
			break
		}
		more := bytesOfOp(next)
		if more == 0 || bytes+more > gatherBytes {
			break
		}
		bytes += more
	}
	for k := range count {
		pos := first + uint64(k)
		q.op(pos).With, q.place(pos).Joined = 1, 0
	}
	last := first + uint64(count-1)
	q.op(last).With, q.place(last).Joined = 0, uint8(count-1)
	return count
}

// bytesOfOp is how many bytes a one-sided operation moves, 0: it is none, or moves nothing.
func bytesOfOp(op *ibv.Op) uint64 {
	if op.Opcode != ibv.OpWrite && op.Opcode != ibv.OpRead {
		return 0
	}
	n := uint64(0)
	for _, s := range op.SGE[:op.Pieces] {
		n += uint64(s.Len)
	}
	return n
}

// Apart has the operations that went in one request with the one at pos, the first of them, go alone when they are
// posted again. False: it went alone. The queue is stopped.
func (q *SendQueue) Apart(pos uint64) bool {
	last := pos
	for q.op(last).With != 0 {
		last++
	}
	if last == pos {
		return false
	}
	q.apart = last + 1
	return true
}
