package udp

import (
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// A long message leaves as trains of full packets, which the kernel takes in one
// call (UDP_SEGMENT) and, where nothing on the way parts them, gives to the
// receiver in one piece (UDP_GRO). All but the first of a train are built and taken
// in by the loops here, which leave whatever is not as expected to the general way.

// sendTrain sends full packets of the stream as they lie in the ring, as many as may leave,
// and returns whether it did: where two or more wait, and they are new. What is to be
// acknowledged goes before.
func (c *Endpoint) sendTrain(now congestion.Time) bool {
	t, s := &c.tx, c.s
	end, full := min(t.tail, t.limit), c.full()
	if t.seal != nil || t.lost.Len() > 0 || end < t.next+2*full || t.ring.full != full || t.ring.rest(t.next) < full {
		return false
	}
	if !c.rx.spares(now) {
		c.rx.acknowledge(now)
	}
	if s.out.Full(0) {
		s.flush()
	}
	if c.full() != full {
		return false // what was flushed was refused: the interface's MTU has shrunk
	}
	size, owner := t.mtu.Size(), c.owner()
	n := min(int((end-t.next)/full), t.sent.Free(), s.out.RowRoom(s.socket, owner, size))
	if n = t.path.Room(now, int64(size), n); n <= 0 {
		return false
	}
	t.numbers(uint32(n))
	h := c.head(0)
	train := wire.NewTrain(&h, t.next, int(full))
	last := c.addTrain(now, &train, recovery.Packet{Kind: carryStream, Offset: t.next}, int(full), n)
	for n > 0 {
		row, flags := t.ring.row(t.next, n), uint8(0)
		k := len(row) / size
		if t.next, n = t.next+uint64(k)*full, n-k; n == 0 { // not cut by the ring's end
			flags = last
		}
		train.PutRow(row, flags)
		s.out.AddRow(s.socket, &c.addr, owner, row, k)
	}
	if c.life.asked == 0 {
		c.life.asked = now
	}
	return true
}

// sendTrain is Endpoint.sendTrain for the bytes of an operation. The last packet of a put
// is not among them: it asks for an answer.
func (ops *transfers) sendTrain(now congestion.Time, o *operation) {
	if o.lost.Len() > 0 || o.kind != opPut && o.kind != opServe {
		return
	}
	left, head := o.piece(o.next, o.total-o.next), wire.HeaderSize+wire.DataHeader
	if o.kind == opPut {
		left, head = min(left, o.total-o.next-1), wire.HeaderSize+wire.PutHeader
	}
	n, full := ops.c.trainRoom(now, head, left)
	if n <= 0 {
		return
	}
	h := ops.c.head(0)
	p := recovery.Packet{Offset: o.next, Op: o.id}
	var train wire.Train
	var data []byte
	if o.kind == opPut {
		p.Kind = carryPut
		train = wire.NewPutTrain(&h, o.id, o.key, o.addr+o.next, full)
		data = sliceOf(o.segs, o.next, n*full)
	} else {
		p.Kind = carryData
		train = wire.NewDataTrain(&h, o.theirs, o.next, full)
		if data = ops.bytesOf(o, o.next, uint64(n*full)); data == nil {
			return // send refuses it
		}
	}
	o.next += uint64(len(data))
	ops.c.joinTrain(now, &train, p, data, n)
}

// trainRoom returns how many packets, of a head and full bytes each, may leave and join
// the one sent last, of left bytes. 0 or less: none.
func (c *Endpoint) trainRoom(now congestion.Time, head int, left uint64) (n, full int) {
	t, s := &c.tx, c.s
	if t.seal != nil || t.skip == 0 || c.rx.ackRoom(now) > 0 {
		return 0, 0
	}
	size := t.mtu.Size()
	full = size - head
	n = min(int(left/uint64(full)), t.sent.Free(), int(t.skip), s.out.Joinable(s.socket, c.owner(), size, size))
	return t.path.Room(now, int64(size), n), full
}

// joinTrain joins a train of n packets with data to the packet sent last. p is the first of
// them but for its sizes. They are laid out in one piece, as those of the stream: the copy
// stays in the cache, and costs less than a head and a piece of each for the kernel.
func (c *Endpoint) joinTrain(now congestion.Time, train *wire.Train, p recovery.Packet, data []byte, n int) {
	full, head := len(data)/n, train.HeadSize()
	last := c.addTrain(now, train, p, full, n)
	row := c.s.out.Take(n * (head + full))
	for b := row; len(data) > 0; b, data = b[head+full:], data[full:] {
		flags := uint8(0)
		if len(data) == full {
			flags = last
		}
		train.Put(b[:head], flags)
		copy(b[head:], data[:full])
	}
	c.s.out.Join(row, n)
}

// addTrain notes that a train of n packets leaves with full bytes each, of which p is the
// first but for its sizes, and returns the flags of the last.
func (c *Endpoint) addTrain(now congestion.Time, train *wire.Train, p recovery.Packet, full, n int) uint8 {
	t := &c.tx
	p.Len, p.Size = uint32(full), uint32(train.HeadSize()+full)
	p.Asked = t.asks(int64(n) * int64(p.Size))
	p.Flight = t.path.OnSendMany(now, int64(p.Size), n)
	t.sent.AddMany(now, p, n)
	t.skip -= uint32(n)
	if p.Asked {
		return wire.FlagAckNow
	}
	return 0
}

// Less than a whole train of the stream waits for more of it while the peer has backlog bytes to
// receive or to deliver, which keep it busy meanwhile, but for no longer than trainTime after
// a long record was posted: others may follow it as soon as there is room.
const (
	backlog   = 256 << 10
	trainTime = 100 * time.Microsecond
)

// leastSent is how many bytes of the stream have to be there for any to leave.
func (c *Endpoint) leastSent(now congestion.Time) uint64 {
	t := &c.tx
	delivered := t.limit - t.window
	if c.at() != up || t.next < delivered+backlog || now.Sub(t.lastLong) >= trainTime {
		return 0
	}
	return c.wholeTrain()
}

// wholeTrain is how many bytes of the stream a train carries at most.
func (c *Endpoint) wholeTrain() uint64 {
	return uint64(sock.MaxTrain(c.tx.mtu.Size())) * c.full()
}

// handleTrain takes in what follows the first datagram of a message and is a train,
// and returns its size in bytes. The first one has been taken in.
func (s *stripe) handleTrain(now, at congestion.Time, from *sock.Addr, first, rest []byte) int {
	var h wire.Header
	if !wire.MayFollow(first, rest) || h.Parse(first) != nil {
		return 0
	}
	c := s.conn(h.CID)
	if c == nil || c.addr != *from || !c.alive() || c.rx.opener != nil {
		return 0
	}
	r := &c.rx
	if !r.seen.Any() {
		return 0
	}
	n := 0
	if wire.Kind(rest[wire.HeaderSize]) == wire.KindStream {
		n = c.rx.handleStreamTrain(first, rest)
	} else if uint32(h.Number) == uint32(r.seen.Largest()) {
		n = c.ops.handlePieces(first, rest)
	}
	if n == 0 {
		return 0
	}
	r.seen.AddMany(n)
	r.largestAt = at
	r.wants = r.wants || h.Flags&wire.FlagBlocked != 0
	r.pending += n
	c.life.hear(now)
	c.rx.owe(now, h.Flags&wire.FlagAckNow != 0)
	s.touch(c)
	return n * len(first)
}

// handleStreamTrain takes in the stream's bytes in rest, and returns how many packets that were.
func (r *receiver) handleStreamTrain(first, rest []byte) (n int) {
	var train wire.Train
	contig := r.contig.Load()
	if r.have.Len() > 0 || r.ring.b == nil || !train.Follow(first, r.seen.Largest()+1, contig) {
		return 0
	}
	for ; len(rest) >= len(first); rest = rest[len(first):] {
		data, ok := train.Next(rest[:len(first)])
		if !ok || contig+uint64(len(data)) > r.limit {
			break
		}
		r.ring.put(contig, data)
		contig += uint64(len(data))
		n++
	}
	if n > 0 {
		r.top = max(r.top, contig)
		r.contig.Store(contig)
	}
	return n
}

// handlePieces takes in the bytes of a get or a put in rest, which follow those in first, and returns
// how many packets that were. What is not in order, or not allowed, is left to the
// general way.
func (ops *transfers) handlePieces(first, rest []byte) int {
	var train wire.Train
	if !train.FollowPiece(first) {
		return 0
	}
	n := train.Count(rest)
	if n == 0 || !ops.placePieces(&train, rest, n) {
		return 0
	}
	return n
}
