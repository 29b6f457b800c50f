package rma

import (
	"math"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Several elements in one message (wire.Element), at their initiator: consecutive elements of a list, which are one
// request then (flagElements), and remote elements of a read or write. Messages that are put into the peer's memory
// have one element each: they cost no packet, and the data plane takes them in (hw.CapDirectRing).

// elementMessage is memory of one stripe for building such messages. The lease holder owns it.
type elementMessage struct {
	heads [wire.MaxElements * wire.ElementBytes]byte
	n     int
	// the heads, and local memory; room is that of most messages
	iov  []fi.IOVec
	room [1 + wire.MaxElements]fi.IOVec
	// the operation of a list, and the place in its selection, of which the elements are, n bytes; nil: of none. A
	// message that finds no room is kept here for the next attempt.
	of    *list.Op
	first int
	bytes uint64
}

// elementsOf is that of a stripe, without elements.
func (sc *scratch) elementsOf() *elementMessage {
	if sc.elements == nil {
		sc.elements = new(elementMessage)
	}
	m := sc.elements
	m.n, m.iov, m.of = 0, m.room[:1], nil
	return m
}

// add adds an element.
func (m *elementMessage) add(el wire.Element) {
	el.Put(m.heads[m.n*wire.ElementBytes:])
	m.n++
}

// vector is what is sent of a message: the elements, and what was appended to iov.
func (m *elementMessage) vector() []fi.IOVec {
	m.iov[0] = vector.Of(m.heads[:m.n*wire.ElementBytes])
	return m.iov
}

// joined returns how many remote elements, from the next on, the next message has, and how many bytes these are. One:
// it is a message of one element, or of a part of it.
func (req *Request) joined(p *Path) (count uint32, n uint64) {
	left := req.remote[req.part:req.parts]
	if len(left) == 1 || req.sent != 0 || req.flags&flagIsAtomic != 0 || !p.joins() {
		return 1, 0
	}
	size := uint64(0)
	for i := range left {
		el := left[i].Len
		if req.flags&flagIsRead == 0 {
			size += el
		}
		if size += wire.ElementBytes; size > uint64(p.On.Attr.MaxAMBcopy) {
			break
		}
		count, n = count+1, n+el
	}
	if req.dataWaits() && count == uint32(len(left)) && req.part != 0 {
		count, n = count-1, n-left[count-1].Len // the last waits for answers
	}
	return max(count, 1), n
}

// sendJoined sends the message of a request that has some of its remote elements, n bytes.
func (in *Initiator) sendJoined(p *Path, req *Request, id uint64, count uint32, n uint64, lease int) error {
	m := in.scratch[lease].elementsOf()
	for i := req.part; i < req.part+count; i++ {
		r := &req.remote[i]
		m.add(wire.Element{Key: r.Key, Addr: r.Addr, Len: r.Len, Ends: req.ends(i, true)})
	}
	if req.flags&flagIsRead != 0 {
		return in.readElements(p, id, req.done, m, n, lease)
	}
	m.iov = vector.Window(m.iov, req.iov[:req.count], req.done, n)
	h := wire.Write{Request: id, Flags: wire.WriteAck, Data: req.data, Length: req.total}
	if req.flags&flagHasData != 0 && req.part+count == req.parts {
		h.Flags |= wire.WriteData
	}
	return in.writeElements(p, &h, m, n, lease)
}

// writeElements sends a message of elements of a write, n bytes. h is its head but for what says that.
func (in *Initiator) writeElements(p *Path, h *wire.Write, m *elementMessage, n uint64, lease int) error {
	h.Flags |= wire.WriteElements
	return in.host.Send(p, wire.AMWrite, uint64(m.n), h.Put(in.scratch[lease].head[:]), m.vector(),
		m.n*wire.ElementBytes+int(n), lease)
}

// readElements sends a message that asks for elements, n bytes, which belong at an offset of the request.
func (in *Initiator) readElements(p *Path, id, at uint64, m *elementMessage, n uint64, lease int) error {
	h := wire.Read{Request: id, Length: n, At: at, Elements: true}
	return in.host.Send(p, wire.AMRead, uint64(m.n), h.Put(in.scratch[lease].head[:]), m.vector(),
		m.n*wire.ElementBytes, lease)
}

// Message is what messages over a path have room for.
func (in *Initiator) Message(p *Path) list.Message {
	m := list.Message{
		Joins: p.joins(), Payload: uint64(p.On.Attr.MaxAMBcopy), Read: uint64(in.cfg.SegmentSize),
		Element: math.MaxUint64,
	}
	if p.On.Segments {
		m.Element = uint64(in.cfg.MinSegment)
	}
	return m
}

// PostElements posts consecutive elements of a list as one request. fi.EAGAIN: there is no room.
func (in *Initiator) PostElements(from *list.Request, l *Link, p *Path) error {
	r := Request{
		flags: flagElements | flagListed, work: from.Work, total: from.Total, dest: uint64(from.Dest), link: l.Index,
		elements: uint32(from.Count),
	}
	if from.Read {
		r.flags |= flagIsRead
	}
	r.left.Store(r.units())
	err := in.post(l, p, &r, false)
	if err == nil {
		in.host.Took(l, list.WayMessage, uint64(from.Count), from.Total)
	}
	return err
}

// nextElements returns the message of the next elements of an operation, from a place in its selection up to another.
func (in *Initiator) nextElements(p *Path, op *list.Op, first, end int, read bool, lease int) *elementMessage {
	sc := &in.scratch[lease]
	if m := sc.elements; m != nil && m.of == op && m.first == first && first+m.n <= end {
		return m
	}
	m, sel, over := sc.elementsOf(), op.Elements(), in.Message(p)
	_, m.bytes = over.Fit(&sel, first, end, read, func(el dataplane.Element) {
		m.add(wire.Element{Key: el.Key, Addr: el.Remote, Len: el.Len, Ends: wire.EndsOperation})
		if !read && el.Len != 0 {
			m.iov = append(m.iov, fi.IOVec{Base: uintptr(el.Local), Len: el.Len})
		}
	})
	m.of, m.first = op, first
	return m
}

// sendElements sends the rest of the messages of a request that is elements of a list, as pump does. Of a write the
// last asks for the answer to all.
func (in *Initiator) sendElements(p *Path, req *Request, id uint64, lease int) error {
	op, first, read := in.lists.At(req.work), list.Place(req.work), req.flags&flagIsRead != 0
	for end := first + int(req.elements); ; {
		m := in.nextElements(p, op, first+int(req.part), end, read, lease)
		last := m.first+m.n == end
		if last {
			req.live.Store(uint32(id >> 32))
		}
		var err error
		if read {
			err = in.readElements(p, id, req.done, m, m.bytes, lease)
		} else {
			h := wire.Write{Key: uint64(req.part), Request: id}
			if last {
				h.Flags |= wire.WriteAck
			}
			err = in.writeElements(p, &h, m, m.bytes, lease)
		}
		switch {
		case err != nil && last && !in.claim(id):
			return nil // PeerLost was faster
		case err != nil:
			return err
		}
		m.of = nil
		if last {
			return nil
		}
		req.part += uint32(m.n)
		req.done += m.bytes
	}
}

// localOf appends the local memory of n bytes of a request, from byte at on.
func (in *Initiator) localOf(to []fi.IOVec, req *Request, at, n uint64) []fi.IOVec {
	if req.flags&flagElements == 0 {
		return vector.Window(to, req.iov[:req.count], at, n)
	}
	sel := in.lists.At(req.work).Elements()
	span := vector.Span{Offset: at, N: n}
	for i := list.Place(req.work); span.N != 0; i++ {
		el := sel.At(i)
		if at, n := span.Take(el.Len); n != 0 {
			to = append(to, fi.IOVec{Base: uintptr(el.Local + at), Len: n})
		}
	}
	return to
}
