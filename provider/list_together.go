package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/ordering"
	"github.com/weft-fabric/weft/provider/wire"
)

// Consecutive elements of a post of a list that go as one request (rma_elements.go).

// together returns how many of the next elements go as one request, and their bytes. One, or none: they do not. A read
// is one message. A write has as many as a segment's bytes fill, so that it is answered as often as a long one is.
func (op *listOp) together(p *path) (count int, total uint64) {
	e, on := op.list.ep, &op.list.ep.domain.cfg.TokenWays
	// What a device or this thread may do goes element by element.
	if !on.Message || !p.joins() || on.RDMA && p.keys != nil && !e.orderedRMA() {
		return 0, 0
	}
	for end := op.sel.Len(); op.next+count < end; {
		k, n := e.fit(p, &op.sel, op.next+count, end, op.args.Read)
		if k == 0 || count != 0 && total+n > uint64(e.domain.cfg.SegmentSize) {
			break
		}
		if count, total = count+k, total+n; op.args.Read || count >= maxTogether {
			break
		}
	}
	return count, total
}

// maxTogether bounds the elements of one request, where they are short.
const maxTogether = 8 * wire.MaxElements

// postTogether posts the next elements as one request. Errors as of RMA.
func (op *listOp) postTogether(l *link, p *path, count int, total uint64) error {
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
	return e.postElements(op, l, p, count, total)
}
