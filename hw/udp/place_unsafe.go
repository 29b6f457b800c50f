package udp

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

// Bytes of puts and gets do not go through the stream: every packet says where
// its bytes belong, and they are copied there when it arrives, whatever came
// before. Packets that arrive twice write the same bytes twice.

// sliceOf returns up to n bytes of the segments at offset, in one piece.
func sliceOf(segs []hw.Segment, offset uint64, n int) []byte {
	for _, s := range segs {
		if offset < uint64(s.Len) {
			return unsafe.Slice((*byte)(unsafe.Add(s.Addr, offset)), min(uint64(n), uint64(s.Len)-offset))
		}
		offset -= uint64(s.Len)
	}
	return nil
}

// scatter copies b to the segments at offset.
func scatter(segs []hw.Segment, offset uint64, b []byte) {
	for len(b) > 0 {
		to := sliceOf(segs, offset, len(b))
		if to == nil {
			return
		}
		n := copy(to, b)
		b = b[n:]
		offset += uint64(n)
	}
}

// bytesOf returns n bytes of what o serves, from offset on, nil if the peer may not
// have them any more. They are in use until the stripe is flushed.
func (ops *transfers) bytesOf(o *operation, offset, n uint64) []byte {
	m, at := ops.c.i.cfg.Memory.enter(o.key, o.addr+offset, n, hw.RemoteRead)
	if m == nil {
		return nil
	}
	ops.c.s.entered = append(ops.c.s.entered, m)
	return unsafe.Slice((*byte)(unsafe.Add(m.about.Addr, at)), n)
}

// placePieces copies the bytes of the next n packets of a train, which are in b, to where
// they belong. It reports false, and has done nothing, if they do not follow what has come
// or the peer may not.
func (ops *transfers) placePieces(train *wire.Train, b []byte, n int) bool {
	all := uint64(n) * train.Len()
	if train.Kind() == wire.KindPut {
		m, at := ops.c.i.cfg.Memory.enter(train.Key(), train.Place(), all, hw.RemoteWrite)
		if m == nil {
			return false
		}
		to := unsafe.Slice((*byte)(unsafe.Add(m.about.Addr, at)), all)
		for ; n > 0; n-- {
			to = to[copy(to, train.Skip(&b)):]
		}
		m.leave()
		return true
	}
	o := ops.find(train.Op())
	if o == nil || o.kind != opGet || o.done.Len() > 0 || o.moved != train.Place() || all > o.total-o.moved {
		return false
	}
	for ; n > 0; n-- {
		data := train.Skip(&b)
		scatter(o.segs, o.moved, data)
		o.moved += uint64(len(data))
	}
	if o.moved == o.total {
		ops.complete(o, nil)
		ops.flushed()
	}
	return true
}

// send sends one packet of an operation.
func (ops *transfers) send(now congestion.Time, o *operation) {
	if o.kind == opGet {
		o.next = o.total // the peer sends
		o.lost.Clear()
		ops.c.send(now, carryGet, recovery.Span{From: uint64(o.id)}, 0)
		return
	}
	head := wire.PutHeader
	if o.kind == opServe {
		head = wire.DataHeader
	}
	room := uint64(ops.c.tx.mtu.Size() - wire.HeaderSize - head - ops.c.rx.ackMost(now))
	if ops.c.tx.seal != nil {
		room -= wire.TagSize
	}
	var span recovery.Span
	if o.lost.Len() > 0 {
		first := o.lost.First()
		span = o.lost.Cut(o.piece(first.From, room))
	} else {
		span = recovery.Span{From: o.next, To: o.next + o.piece(o.next, room)}
		o.next = span.To
	}
	n := int(min(ops.c.wholeTrain(), o.total-span.From)/room) + 1 // a train may follow
	if n > 2 {
		ops.c.tx.numbers(uint32(n))
	}
	if ops.c.s.out.Full(n * ops.c.tx.mtu.Size()) {
		ops.c.s.flush() // not later: a flush leaves the region
	}
	kind := carryPut
	if o.kind == opServe {
		kind = carryData
		data := ops.bytesOf(o, span.From, span.To-span.From)
		if data == nil {
			ops.refuse(now, o.theirs)
			ops.end(o)
			return
		}
		o.segs = append(o.segs[:0], hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(data)), Len: len(data)})
	}
	ops.c.sendPiece(now, kind, span, o)
}

// piece returns how many bytes of o from offset go into a packet with that much
// room.
func (o *operation) piece(offset, room uint64) uint64 {
	if o.kind == opPut {
		return uint64(len(sliceOf(o.segs, offset, int(room))))
	}
	return min(room, o.total-offset) // of a region, which is in one piece
}

// refuse reports to the peer that an operation of its is not performed.
func (ops *transfers) refuse(now congestion.Time, theirs uint32) {
	ops.c.i.malformed.Add(1)
	if ops.c.tx.sent.Room() {
		ops.c.send(now, carryRefuse, recovery.Span{From: uint64(theirs)}, 0)
		ops.c.s.touch(ops.c)
	}
}

// handlePut performs a put. It returns false if the packet must not be
// acknowledged, because the operation is refused.
func (ops *transfers) handlePut(now congestion.Time, f *wire.Frame) bool {
	m, at := ops.c.i.cfg.Memory.enter(f.Key, f.Addr, uint64(len(f.Data)), hw.RemoteWrite)
	if m == nil {
		ops.refuse(now, f.Op)
		return false
	}
	copy(unsafe.Slice((*byte)(unsafe.Add(m.about.Addr, at)), len(f.Data)), f.Data)
	m.leave()
	return true
}

// handleGet begins to serve a get. It returns false if the packet must not be
// acknowledged, because the operation is refused or there is no room for it.
func (ops *transfers) handleGet(now congestion.Time, f *wire.Frame) bool {
	for _, o := range ops.list {
		if o.kind == opServe && o.theirs == f.Op {
			return true // asked twice
		}
	}
	m, _ := ops.c.i.cfg.Memory.enter(f.Key, f.Addr, f.Len, hw.RemoteRead)
	if m == nil || f.Len == 0 {
		ops.refuse(now, f.Op)
		if m != nil {
			m.leave()
		}
		return false
	}
	m.leave()
	if ops.served >= maxServed {
		return false
	}
	o := ops.begin(opServe)
	if o == nil {
		return false
	}
	o.total, o.addr, o.key, o.theirs = f.Len, f.Addr, f.Key, f.Op
	ops.sending = append(ops.sending, o)
	return true
}

// handleData takes in bytes of a get of ours.
func (ops *transfers) handleData(f *wire.Frame) bool {
	o := ops.find(f.Op)
	if o == nil || o.kind != opGet {
		return true // it has ended
	}
	span := recovery.Span{From: f.Offset, To: f.Offset + uint64(len(f.Data))}
	if span.To > o.total || o.done.Len() >= maxHoles && span.From > o.moved {
		return false
	}
	scatter(o.segs, f.Offset, f.Data)
	if o.arrived(span) {
		ops.complete(o, nil)
		ops.flushed()
	}
	return true
}

// handleRefuse takes in that an operation of ours is not performed.
func (ops *transfers) handleRefuse(f *wire.Frame) {
	if o := ops.find(f.Op); o != nil && (o.kind == opPut || o.kind == opGet) {
		ops.complete(o, hw.ErrKey)
		ops.flushed()
	}
}
