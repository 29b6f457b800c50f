package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/ordering"
	"github.com/weft-fabric/weft/provider/wire"
)

// Consecutive elements of a post of a list that go as one request (rma_elements.go).

// together is what the next request of a post is, which is found once, also if there is no room for it.
type together struct {
	path  *path // over which it is to go; nil: it is not known
	count int   // elements. One, or none: they do not go together
	total uint64
}

// together finds what the next request is. A read is one message. A write has as many as a segment's bytes fill, so
// that it is answered as often as a long one is.
func (op *listOp) together(p *path) *together {
	if op.soon.path == p {
		return &op.soon
	}
	op.soon = together{path: p}
	e, on, t := op.list.ep, &op.list.ep.domain.cfg.TokenWays, &op.soon
	// What a device or this thread may do goes element by element.
	if !on.Message || !p.joins() || on.RDMA && p.keys != nil && !e.orderedRMA() {
		return t
	}
	for end := op.sel.Len(); op.next+t.count < end; {
		k, n := e.fit(p, &op.sel, op.next+t.count, end, op.args.Read, func(dataplane.Element) {})
		if k == 0 || t.count != 0 && t.total+n > uint64(e.domain.cfg.SegmentSize) {
			break
		}
		if t.count, t.total = t.count+k, t.total+n; op.args.Read || t.count >= maxTogether {
			break
		}
	}
	return t
}

// maxTogether bounds the elements of one request, where they are short.
const maxTogether = 8 * wire.MaxElements

// postTogether posts the next elements as one request. Errors as of RMA.
func (op *listOp) postTogether(l *link, t *together) error {
	e, kind := op.list.ep, ordering.Update
	if op.args.Read {
		kind = ordering.Read
	}
	if e.state.Load() != stateEnabled {
		return fi.EOPBADSTATE
	}
	if !e.inTurn(l, kind) {
		return fi.EAGAIN
	}
	return e.postElements(op, l, t.path, t.count, t.total)
}
