package list

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Consecutive elements of a post of a list that go as one request.

// Message is what the messages over a path have room for.
type Message struct {
	Joins   bool   // one may have several elements
	Payload uint64 // most bytes of elements and their heads in one message
	Read    uint64 // most bytes that one message reads, or one request writes: those of a segment
	Element uint64 // bytes of the longest element that is not cut into segments
}

// Fit returns how many elements of a selection, from place i up to end, go in one message, and their bytes. 0: the
// first is too long for that. each is called with every one.
func (m *Message) Fit(
	sel *pieces.Selection, i, end int, read bool, each func(dataplane.Element),
) (count int, n uint64) {
	size, most := uint64(0), m.Payload
	if read {
		most = m.Read
	}
	for end = min(end, i+wire.MaxElements); i < end; i++ {
		el := sel.At(i)
		if size += wire.ElementBytes + el.Len; size > most || el.Len > m.Element {
			break
		}
		each(el)
		count, n = count+1, n+el.Len
	}
	return count, n
}

// together is what the next request of a post is, which is found once, also if there is no room for it.
type together struct {
	path  Path // over which it is to go; nil: it is not known
	count int  // elements. One, or none: they do not go together
	total uint64
}

// together finds what the next request is. A read is one message. A write has as many as a segment's bytes fill, so
// that it is answered as often as a long one is.
func (op *Op) together(over Path) *together {
	if op.soon.path == over {
		return &op.soon
	}
	op.soon = together{path: over}
	o, t := op.list.of, &op.soon
	on, m := &o.cfg.TokenWays, o.ep.Message(over)
	// What a device or this thread may do goes element by element.
	if !on.Message || !m.Joins || on.RDMA && over.Device() != nil && !o.ep.Ordered() {
		return t
	}
	for end := op.sel.Len(); op.next+t.count < end; {
		k, n := m.Fit(&op.sel, op.next+t.count, end, op.args.Read, func(dataplane.Element) {})
		if k == 0 || t.count != 0 && t.total+n > m.Read {
			break
		}
		if t.count, t.total = t.count+k, t.total+n; op.args.Read || t.count >= MaxTogether {
			break
		}
	}
	return t
}

// MaxTogether bounds the elements of one request, where they are short.
const MaxTogether = 8 * wire.MaxElements

// work is the number of an element, or of consecutive ones by the place of the first.
func (op *Op) work(n uint32) uint64 { return Work(op.slot, n) }

// postTogether posts the next elements as one request. Errors as of Network.
func (op *Op) postTogether(to Peer, t *together) error {
	ep := op.list.of.ep
	if !ep.Enabled() {
		return fi.EOPBADSTATE
	}
	return ep.PostTogether(to, t.path, &Request{
		Op: op, Work: op.work(uint32(op.next)), Dest: op.list.addr, Count: t.count, Total: t.total, Read: op.args.Read,
	})
}
