package udp

import (
	"github.com/weft-fabric/weft/congestion"
	"github.com/weft-fabric/weft/hw/udp/recovery"
	"github.com/weft-fabric/weft/hw/udp/sock"
	"github.com/weft-fabric/weft/hw/udp/wire"
)

// A long message leaves as trains of full packets, which the kernel takes in one
// call (UDP_SEGMENT) and, where nothing on the way parts them, gives to the
// receiver in one piece (UDP_GRO). All but the first of a train are built and taken
// in by the loops here, which leave whatever is not as expected to the general way.

// sendTrain sends full packets of the stream that follow the one sent last, as
// many as may leave and join it. It is for new bytes and nothing else to say.
func (c *Endpoint) sendTrain(now congestion.Time) {
	t, s := &c.tx, c.s
	if t.lost.Len() > 0 || t.seal != nil || t.skip == 0 || c.ackRoom(now) > 0 {
		return
	}
	size := t.mtu.Size()
	full := uint64(size - wire.TrainHeader)
	end := min(t.tail, t.limit, (t.next|(t.ring.size-1))+1)
	n := min(int((max(end, t.next)-t.next)/full), t.sent.Free(), int(t.skip), s.out.Joinable(s.socket, uint64(c.own.Index), size, wire.TrainHeader))
	if n = t.path.Room(now, int64(size), n); n <= 0 {
		return
	}
	h := c.head(0)
	train := wire.NewTrain(&h, t.next, int(full))
	p := recovery.Packet{Kind: carryStream, Offset: t.next, Len: uint32(full), Size: uint32(size)}
	p.Flight = t.path.OnSendMany(now, int64(size), n)
	t.sent.AddMany(now, p, n, full)
	t.skip -= uint32(n)
	for k := n; k > 0; k-- {
		flags := uint8(0)
		if k == 1 && (t.path.Inflight() >= t.path.Control().Window() || t.wanting && t.next+full >= min(t.tail, t.limit)) {
			flags = wire.FlagAckNow // as in emit
			t.sent.Ask()
		}
		b := s.out.Take(wire.TrainHeader)
		train.Put(b, flags)
		s.out.Join(b, t.ring.piece(t.next, int(full)))
		t.next += full
	}
}

// transmitTrains is transmit for as many whole trains as there are. What is left
// goes with the next post, or look.
func (c *Endpoint) transmitTrains(now congestion.Time) {
	c.push(now, uint64(sock.MaxTrain(c.tx.mtu.Size())*(c.tx.mtu.Size()-c.overhead())))
}

// eatTrain takes in what follows the first datagram of a message and is a train,
// and returns its size in bytes. The first one has been taken in.
func (s *stripe) eatTrain(now, at congestion.Time, from *sock.Addr, first, rest []byte) int {
	var h wire.Header
	if !wire.MayFollow(first, rest) || h.Parse(first) != nil {
		return 0
	}
	c := s.conn(h.Index)
	if c == nil || c.own.CID != h.CID || c.addr != *from || !c.alive() || c.rx.opener != nil {
		return 0
	}
	r := &c.rx
	if !r.seen.Any() || r.have.Len() > 0 || r.ring.b == nil {
		return 0
	}
	begin := r.contig.Load()
	var train wire.Train
	if !train.Follow(first, r.seen.Largest()+1, begin) {
		return 0
	}
	n, contig := 0, begin
	for left := rest; len(left) >= len(first); left = left[len(first):] {
		data, ok := train.Next(left[:len(first)])
		if !ok || contig+uint64(len(data)) > r.limit {
			break
		}
		r.ring.put(contig, data)
		contig += uint64(len(data))
		n++
	}
	if n == 0 {
		return 0
	}
	r.top = max(r.top, contig)
	r.contig.Store(contig)
	r.seen.AddMany(n)
	r.largestAt = at
	r.wants = r.wants || h.Flags&wire.FlagBlocked != 0
	r.pending += n
	c.hear(now)
	c.owe(now, h.Flags&wire.FlagAckNow != 0)
	s.touch(c)
	return n * len(first)
}
