package provider

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/claim"
	"github.com/weft-fabric/weft/provider/wire"
)

// A list whose elements are all copied by the posting thread, of FI_WEFT_RMA_ASSIST_SIZE or more, is shared with a
// target that makes progress meanwhile, as a single read or write is (rma_share.go): its chunks are some pieces each.
// The pieces stand in an array, which the target reads from this process's memory (list_help.go).

// listShare is a list that is shared with its target: its pieces, in the order of the elements. Neighbours are joined,
// and long elements cut, to at most a chunk's bytes.
type listShare struct {
	op     *listOp
	pieces []wire.Piece // kept in place until the operation has ended
	at     []int        // of each piece, where in the selection its first element is
	per    uint64       // pieces of a chunk
	from   int          // once the round has ended: where in the selection what this side did not copy begins
}

// listShares are spare ones. A target that is late may read what stands there by now; it takes no chunk of an earlier
// round.
var listShares = sync.Pool{New: func() any { return new(listShare) }}

// mayShare reports whether the target may copy a share of the operation.
func (op *listOp) mayShare(p *path) bool {
	e := op.list.ep
	least := uint64(e.domain.cfg.RMAAssistSize)
	return least != 0 && op.total >= least && op.list.shape.Direct && op.sel.len() > 1 && p.rounds != nil &&
		e.iface.DoorbellFD() < 0
}

// describe fills in the pieces of the operation's elements.
func (s *listShare) describe(op *listOp) {
	s.op, s.pieces, s.at = op, s.pieces[:0], s.at[:0]
	last := &wire.Piece{}
	for i := range op.sel.len() {
		el := op.sel.at(i)
		if last.Key == el.Key && last.Local+last.Len == el.Local && last.Addr+last.Len == el.Remote &&
			el.Len <= wire.MaxShareChunk-last.Len {
			last.Len += el.Len
			continue
		}
		for el.Len != 0 {
			n := min(el.Len, wire.MaxShareChunk)
			s.pieces, s.at = append(s.pieces, wire.Piece{Local: el.Local, Addr: el.Remote, Len: n,
				Key: el.Key}), append(s.at, i)
			last = &s.pieces[len(s.pieces)-1]
			el.Local, el.Remote, el.Len = el.Local+n, el.Remote+n, el.Len-n
		}
	}
	each := max(op.total/max(uint64(len(s.pieces)), 1), 1)
	s.per = min(max(shareChunk(op.total)/each, 1), hw.MaxPieces)
}

// share does the operation together with the target. It reports false when the caller is to do it. Errors as of
// copyPieces.
func (op *listOp) share(mover hw.PieceMover, p *path) (bool, error) {
	e := op.list.ep
	e.reapShares(nil)
	s := listShares.Get().(*listShare)
	s.describe(op)
	n := claim.Chunks(uint64(len(s.pieces)), s.per)
	round, ok := s.offer(p, n)
	if !ok {
		s.put()
		return false, nil
	}
	word := &p.rounds.words[0]
	pieces := pieceScratches.Get().(*pieceScratch)
	defer pieceScratches.Put(pieces)
	s.from = op.sel.len()
	var err error
	for i, ok := claim.TakeFront(word, uint64(round), n); ok; i, ok = claim.TakeFront(word, uint64(round), n) {
		first := s.fill(pieces, i)
		moved := uint64(0)
		if moved, err = mover.MovePieces(&pieces.Pieces, !op.args.Read); err != nil {
			s.from = s.position(first, moved)
			break
		}
	}
	back := claim.Stop(word, uint64(round), n)
	if err == nil && back != n {
		s.from = s.at[back*s.per]
	}
	return s.end(p, n-back, err)
}

// offer offers the operation to the target, in n chunks. It reports false when that cannot be now.
func (s *listShare) offer(p *path, n uint64) (round uint16, ok bool) {
	e := s.op.list.ep
	if n < 2 || !e.shares.mu.TryLock() {
		return 0, false
	}
	defer e.shares.mu.Unlock()
	h := wire.Share{
		Key: s.op.total, Local: addressOfPieces(s.pieces), Want: uint64(len(s.pieces)), Chunk: uint32(s.per),
		Read: s.op.args.Read, List: true,
	}
	return e.offerRound(p, n, 0, &h)
}

// fill fills in the pieces of a chunk, and returns the number of the first.
func (s *listShare) fill(to *pieceScratch, chunk uint64) int {
	first := int(chunk * s.per)
	pieces := s.pieces[first:min(first+int(s.per), len(s.pieces))]
	for i := range pieces {
		p := &pieces[i]
		to.Local[i], to.Remote[i], to.Keys[i] = hw.Span{Addr: p.Local, Len: p.Len},
			hw.Span{Addr: p.Addr, Len: p.Len}, p.Key
	}
	to.N = len(pieces)
	return first
}

// position is where in the selection the first element is that is not known to be copied, given the bytes that are
// from a piece on.
func (s *listShare) position(piece int, moved uint64) int {
	for piece < len(s.pieces)-1 && moved >= s.pieces[piece].Len {
		moved -= s.pieces[piece].Len
		piece++
	}
	return s.at[piece]
}

// end ends the round, of which the target took a number of chunks and err is how copying the others ended.
func (s *listShare) end(p *path, took uint64, err error) (bool, error) {
	op := s.op
	wait := sharedOp{link: op.to, path: p, list: s}
	if took != 0 {
		op.sel.picks = slices.Clone(op.sel.picks) // those of the caller end with the call
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
	op.copied(uint64(op.sel.len()), op.total)
	op.finish()
	s.put()
}

// lost ends the operation with the error of the first element that is not known to be copied.
func (s *listShare) lost(status fi.Errno) {
	op := s.op
	s.known()
	op.fail(op.sel.number(min(s.from, op.sel.len()-1)), status)
	op.finish()
	s.put()
}

// known counts the elements that this side has copied.
func (s *listShare) known() {
	n := uint64(0)
	for i := range s.from {
		el := s.op.sel.at(i)
		n += el.Len
	}
	s.op.copied(uint64(s.from), n)
}

// again has the elements that are not known to be copied go by themselves, so that the peer reports why. Errors as of
// begin, and none if an element is copied.
func (s *listShare) again() error {
	op, all := s.op, s.op.sel
	if op.done.Load() == 0 { // not a second time
		s.known()
	}
	left := make([]uint32, 0, all.len()-s.from)
	for i := s.from; i < all.len(); i++ {
		left = append(left, all.number(i))
	}
	op.sel = selection{list: op.list, picks: left}
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
