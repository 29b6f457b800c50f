package provider

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/pieces"
	"github.com/weft-fabric/weft/provider/wire"
)

// A list whose elements are all copied by the posting thread, of FI_WEFT_RMA_ASSIST_SIZE or more, is shared with a
// target that makes progress meanwhile, as a single read or write is (rma_share.go): its chunks are some pieces each.
// The pieces stand in an array, which the target reads from this process's memory (list_share_target.go).

// listShare is a list that is shared with its target. The pieces stay in place until the operation has ended.
type listShare struct {
	pieces.Chunks
	op   *listOp
	from int // once the round has ended: where in the selection what this side did not copy begins
}

// listShares are spare ones. A target that is late may read what stands there by now; it takes no chunk of an earlier
// round.
var listShares = sync.Pool{New: func() any { return new(listShare) }}

// mayShare reports whether the target may copy a share of the operation.
func (op *listOp) mayShare(p *path) bool {
	e := op.list.ep
	least := uint64(e.domain.cfg.RMAAssistSize)
	return least != 0 && op.total >= least && op.list.shape.Direct && op.sel.Len() > 1 && p.rounds != nil &&
		e.iface.DoorbellFD() < 0
}

// share does the operation together with the target. It reports false when the caller is to do it. Errors as of
// copyPieces.
func (op *listOp) share(mover hw.PieceMover, p *path) (bool, error) {
	e := op.list.ep
	e.reapShares(nil)
	s := listShares.Get().(*listShare)
	s.op = op
	s.Cut(&op.sel, op.total, shareChunk(op.total))
	n := s.N()
	round, ok := s.offer(p, n)
	if !ok {
		s.put()
		return false, nil
	}
	words := p.rounds.words
	batch := batches.Get().(*pieces.Batch)
	defer batches.Put(batch)
	s.from = op.sel.Len()
	var err error
	for i, ok := words.TakeFront(round, n); ok; i, ok = words.TakeFront(round, n) {
		first := s.Fill(batch, i)
		var moved uint64
		if moved, err = mover.MovePieces(&batch.Pieces, !op.args.Read); err != nil {
			s.from = s.Position(first, moved)
			break
		}
	}
	back := words.Stop(round, n)
	if err == nil && back != n {
		s.from = s.First(back)
	}
	return s.end(p, n-back, err)
}

// offer offers the operation to the target, in n chunks. It reports false when that cannot be now.
func (s *listShare) offer(p *path, n uint64) (round uint64, ok bool) {
	e := s.op.list.ep
	if n < 2 || !e.shares.mu.TryLock() {
		return 0, false
	}
	defer e.shares.mu.Unlock()
	h := wire.Share{
		Key: s.op.total, Local: addressOfPieces(s.Pieces), Want: uint64(len(s.Pieces)), Chunk: uint32(s.Per),
		Read: s.op.args.Read, List: true,
	}
	return e.offerRound(p, n, 0, &h)
}

// end ends the round, of which the target took a number of chunks and err is how copying the others ended.
func (s *listShare) end(p *path, took uint64, err error) (bool, error) {
	op := s.op
	wait := sharedOp{link: op.to, path: p, list: s}
	if took != 0 {
		op.sel.Picks = slices.Clone(op.sel.Picks) // those of the caller end with the call
	}
	switch op.list.ep.endOpen(wait, took, err) {
	case sharedPart:
		return true, nil
	case sharedAll:
		s.done()
		return true, nil
	case sharedBreak:
		if took == 0 && s.from == 0 {
			s.put()
			return true, fi.ECONNRESET
		}
		s.lost(fi.ECONNRESET)
		return true, nil
	}
	if err := s.again(); err != nil {
		s.put()
		return true, err
	}
	return true, nil
}

// put gives the array up.
func (s *listShare) put() {
	s.op = nil
	listShares.Put(s)
}

// done completes the operation, all elements of which are copied.
func (s *listShare) done() {
	op := s.op
	op.copied(uint64(op.sel.Len()), op.total)
	op.finish()
	s.put()
}

// lost ends the operation with the error of the first element that is not known to be copied.
func (s *listShare) lost(status fi.Errno) {
	op := s.op
	s.known()
	op.fail(op.sel.Number(min(s.from, op.sel.Len()-1)), status)
	op.finish()
	s.put()
}

// known counts the elements that this side has copied.
func (s *listShare) known() {
	s.op.copied(uint64(s.from), s.op.sel.BytesTo(s.from))
}

// again has the elements that are not known to be copied go by themselves, so that the peer reports why. Errors as of
// begin, and none if an element is copied.
func (s *listShare) again() error {
	op, all := s.op, s.op.sel
	if op.done.Load() == 0 { // not a second time
		s.known()
	}
	left := make([]uint32, 0, all.Len()-s.from)
	for i := s.from; i < all.Len(); i++ {
		left = append(left, all.Number(i))
	}
	op.keep(left)
	if err := op.begin(op.to); err != nil {
		op.sel = all
		return err
	}
	s.put()
	return nil
}

// ended takes in that the target has finished its chunks. It reports false when the rest cannot go now. The caller has
// sharedOps.mu.
func (s *listShare) ended(w *sharedOp) bool {
	if !w.again {
		w.link.inFlight.Add(-1)
		s.done()
		return true
	}
	if err := s.again(); err != nil {
		return false
	}
	w.link.inFlight.Add(-1)
	return true
}
