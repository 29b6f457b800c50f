package list

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A list whose elements are all copied by the posting thread, of FI_WEFT_RMA_ASSIST_SIZE or more, is shared with a
// target that makes progress meanwhile, as a single read or write is: its chunks are some pieces each.
// The pieces stand in an array, which the target reads from this process's memory.

// Share is a list that is shared with its target. The pieces stay in place until the operation has ended.
type Share struct {
	pieces.Chunks
	op   *Op
	from int // once the round has ended: where in the selection what this side did not copy begins
}

// shares are spare ones. A target that is late may read what stands there by now; it takes no chunk of an earlier
// round.
var shares = sync.Pool{New: func() any { return new(Share) }}

// mayShare reports whether the target may copy a share of the operation.
func (op *Op) mayShare(over Path) bool {
	least := uint64(op.list.of.cfg.RMAAssistSize)
	return least != 0 && op.total >= least && op.list.shape.Direct && op.sel.Len() > 1 && op.list.of.ep.Shares(over)
}

// share does the operation together with the target. It reports false when the caller is to do it. Errors as of
// copyPieces.
func (op *Op) share(mover hw.PieceMover, over Path) (bool, error) {
	ep := op.list.of.ep
	ep.Reap()
	s := shares.Get().(*Share)
	s.op = op
	s.Cut(&op.sel, op.total, wire.ShareChunk(op.total))
	n := s.N()
	if n < 2 {
		s.put()
		return false, nil
	}
	round, ok := ep.Offer(over, n, s.offer())
	if !ok {
		s.put()
		return false, nil
	}
	batch := batches.Get().(*pieces.Batch)
	defer batches.Put(batch)
	s.from = op.sel.Len()
	var err error
	take := func() (uint64, bool) { return round.Words.TakeFront(round.Number, n) }
	for i, ok := take(); ok; i, ok = take() {
		first := s.Fill(batch, i)
		var moved uint64
		if moved, err = mover.MovePieces(&batch.Pieces, !op.args.Read); err != nil {
			s.from = s.Position(first, moved)
			break
		}
	}
	back := round.Words.Stop(round.Number, n)
	if err == nil && back != n {
		s.from = s.First(back)
	}
	return s.end(over, n-back, err)
}

// offer is what the target is offered the operation by.
func (s *Share) offer() *wire.Share {
	return &wire.Share{
		Key: s.op.total, Local: pieces.Address(s.Pieces), Want: uint64(len(s.Pieces)), Chunk: uint32(s.Per),
		Read: s.op.args.Read, List: true,
	}
}

// end ends the round, of which the target took a number of chunks and err is how copying the others ended.
func (s *Share) end(over Path, took uint64, err error) (bool, error) {
	op := s.op
	if took != 0 {
		op.sel.Picks = slices.Clone(op.sel.Picks) // those of the caller end with the call
	}
	switch op.list.of.ep.EndRound(op.to, over, s, took, err) {
	case claim.Part:
		return true, nil
	case claim.All:
		s.Done()
		return true, nil
	case claim.Dead:
		if took == 0 && s.from == 0 {
			s.put()
			return true, fi.ECONNRESET
		}
		s.Lost(fi.ECONNRESET)
		return true, nil
	}
	if err := s.Again(); err != nil {
		s.put()
		return true, err
	}
	return true, nil
}

// put gives the array up.
func (s *Share) put() {
	s.op = nil
	shares.Put(s)
}

// Done completes the operation, all elements of which are copied.
func (s *Share) Done() {
	op := s.op
	op.copied(uint64(op.sel.Len()), op.total)
	end(op)
	s.put()
}

// Lost ends the operation with the error of the first element that is not known to be copied.
func (s *Share) Lost(status fi.Errno) {
	op := s.op
	s.known()
	op.fail(op.sel.Number(min(s.from, op.sel.Len()-1)), status)
	end(op)
	s.put()
}

// known counts the elements that this side has copied.
func (s *Share) known() {
	s.op.copied(uint64(s.from), s.op.sel.BytesTo(s.from))
}

// Again has the elements that are not known to be copied go by themselves, so that the peer reports why. Errors as of
// begin, and none if an element is copied.
func (s *Share) Again() error {
	op, all := s.op, s.op.sel
	if op.done.Load() == 0 { // not a second time
		s.known()
	}
	left := make([]uint32, 0, all.Len()-s.from)
	for i := s.from; i < all.Len(); i++ {
		left = append(left, all.Number(i))
	}
	op.keep(left)
	if err := op.begin(); err != nil {
		op.sel = all
		return err
	}
	s.put()
	return nil
}
