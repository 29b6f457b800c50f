package provider

import (
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/note"
)

// Posting a list. Elements that the posting thread can copy by itself, because the peer is a process of
// this host that lets it, are copied before the post returns, up to hw.MaxPieces pieces with one system call.
// All others are reads and writes of their own, which go as [Endpoint.RMA] has them go: they are posted
// as far as there is room, and the rest with progress (list_rest.go).

// ListArgs describes a post of a list.
type ListArgs struct {
	Read    bool     // from the peer's memory; else to it
	Picks   []uint32 // the elements, in this order; nil: all, or those in Bits
	Bits    []uint64 // element n is bit n%64 of word n/64; nil: all, or those in Picks
	Flags   uint64   // listFlags
	Context uint64

	// Note is sent to the owner when all elements are done, at most MaxNote bytes; nil: nothing is. The caller's
	// again after the call. NoteOnError: also when the post fails, with its error.
	Note        []byte
	NoteOnError bool
}

// listFlags are those that a post of a list may have.
const listFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete

// Write posts a write of all elements, with a context. Errors as of Post.
func (l *List) Write(context uint64) error { return l.Post(&ListArgs{Context: context}) }

// Read posts a read of all elements, with a context. Errors as of Post.
func (l *List) Read(context uint64) error { return l.Post(&ListArgs{Context: context, Read: true}) }

// Post posts one operation on elements of the list. It is one operation for completions and counters,
// whichever ways its elements take, and no order holds among these. Picks are read during the call only. If an
// element fails no further ones are begun, and the operation ends with the error of the first one that
// failed, by its number, which is the error completion's Data; Len is how many bytes are known to be done.
//
// Errors: fi.EAGAIN as of RMA; fi.EBADFLAGS for other flags than those of completions, fi.Fence, fi.More
// and fi.Priority: lists cannot be injected; fi.EACCES for a region without the right; fi.EINVAL for no elements, and
// for one that the list does not have; fi.EOPNOTSUPP if FI_WEFT_TOKEN_WAYS leaves no way; those of
// RMA about the endpoint and the peer.
func (l *List) Post(a *ListArgs) error {
	err := l.post(a)
	l.ep.domain.work.PostReady()
	return err
}

func (l *List) post(a *ListArgs) error {
	e := l.ep
	sel := selection{list: l, picks: a.Picks}
	if a.Bits != nil {
		sel.picks = picksOf(a.Bits)
	}
	what, allowed := "write a list", l.shape.Write
	if a.Read {
		what, allowed = "read a list", l.shape.Read
	}
	switch {
	case e.state.Load() != stateEnabled:
		return fi.EOPBADSTATE
	case a.Flags&^listFlags != 0:
		return e.refuse(fi.EBADFLAGS, "%s: flags %#x are not for it", what, a.Flags&^listFlags)
	case !allowed:
		return e.refuse(fi.EACCES, "%s: a region does not allow it", what)
	case sel.len() == 0 || sel.len() > MaxElements:
		return e.refuse(fi.EINVAL, "%s: %d elements, 1 to %d are possible", what, sel.len(), MaxElements)
	}
	if err := sel.check(); err != nil {
		return e.refuse(fi.ErrnoOf(err), "%s: %v", what, err)
	}
	if a.Note != nil {
		if len(a.Note) > MaxNote {
			return e.refuse(fi.EMSGSIZE, "%s: notification of %d bytes, at most %d", what, len(a.Note), MaxNote)
		}
		return l.postMany(a, &sel)
	}
	if sel.len() == 1 && sel.number(0) == 0 && !l.shape.Runs[0].Mapped {
		return l.postOne(a)
	}
	return l.postMany(a, &sel)
}

// picksOf are the elements whose bits are set.
func picksOf(words []uint64) []uint32 {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	picks := make([]uint32, 0, n)
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			picks = append(picks, uint32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return picks
}

// postOne posts the first element, as the operation that it is.
func (l *List) postOne(a *ListArgs) error {
	args := l.argsOf(l.shape.Runs[0].At(0), a)
	args.Flags, args.Context = a.Flags, a.Context
	args.listed = l.ep.domain.cfg.TokenWays != allWays
	return l.ep.rma(args)
}

var allWays = config.Ways{IPC: true, RDMA: true, Message: true}

// listArgs are the arguments of an element's operation.
type listArgs struct {
	RMAArgs
	iov    [1]fi.IOVec
	remote [1]fi.RMAIOVec
}

// argsOf returns the arguments of an element's operation, which need no memory but their own.
func (l *List) argsOf(el dataplane.Element, a *ListArgs) *RMAArgs {
	args := &listArgs{
		iov:    [1]fi.IOVec{{Base: uintptr(el.Local), Len: el.Len}},
		remote: [1]fi.RMAIOVec{{Addr: el.Remote, Len: el.Len, Key: el.Key}},
	}
	args.RMAArgs = RMAArgs{IOV: args.iov[:], Remote: args.remote[:], Dest: l.addr, Read: a.Read, listed: true}
	return &args.RMAArgs
}

// postMany posts an operation of elements that are checked.
func (l *List) postMany(a *ListArgs, sel *selection) error {
	e := l.ep
	link, p, err := e.peerFor(l.addr, a.Flags)
	if err != nil {
		return err
	}
	defer link.release()
	completes := e.txCompletes(0, a.Flags)
	if completes && !e.txCQ.Room(0) {
		return fi.EAGAIN
	}
	if err := l.refs.Acquire(); err != nil {
		return err
	}
	op := &listOp{list: l, args: *a, sel: *sel, total: sel.bytes(), completes: completes}
	op.args.Picks, op.args.Bits, op.args.Note = nil, nil, nil
	op.first.Store(noFailure)
	if err := op.enterNote(a, link, p); err != nil {
		l.refs.Release()
		return err
	}
	err = op.move(sel, link, p)
	if err != nil && op.note != nil {
		e.notes.Out.Take(op.note, link)
	}
	return err
}

// enterNote enters the notification of the operation, if it has one: in the order of the posts.
func (op *listOp) enterNote(a *ListArgs, link *link, p *path) error {
	if a.Note == nil {
		return nil
	}
	n := op.noteOf(a, p)
	if err := op.list.ep.notes.Out.Add(n, link, a.Note, false); err != nil {
		return err
	}
	op.note = n
	return nil
}

// Noted takes over a post with a notification of which all elements, n bytes, are done: this sends the notification,
// when there is room for it, and completes the post.
func (l *List) Noted(a *ListArgs, n uint64) {
	e := l.ep
	op := &listOp{list: l, args: *a, total: n, completes: e.txCompletes(0, a.Flags)}
	op.args.Note = nil
	op.first.Store(noFailure)
	op.done.Store(n)
	link, p, err := e.peerFor(l.addr, a.Flags)
	if err == nil {
		defer link.release()
		err = l.refs.Acquire()
	}
	if err != nil {
		op.complete(fi.ErrnoOf(err))
		return
	}
	op.note = op.noteOf(a, p)
	_ = e.notes.Out.Add(op.note, link, a.Note, true) // which does not fail
	op.finish()
	e.domain.work.PostReady()
}

// noteOf is the notification of the operation, over a path.
func (op *listOp) noteOf(a *ListArgs, p *path) *note.Outgoing {
	n := &note.Outgoing{
		Owner: op, Context: a.Context, Op: NoteWrite, Tag: op.list.shape.Tag.Load(),
		Ack: p.ackOfNote(a.Flags), OnError: a.NoteOnError,
	}
	if a.Read {
		n.Op = NoteRead
	}
	return n
}

// move has the elements go. Of an operation that is refused nothing has happened.
func (op *listOp) move(sel *selection, link *link, p *path) error {
	err := op.moveAll(sel, link, p)
	if err != nil {
		op.list.refs.Release()
	}
	return err
}

func (op *listOp) moveAll(sel *selection, link *link, p *path) error {
	op.to = link
	l, e := op.list, op.list.ep
	mover, ok := p.Endpoint.(hw.PieceMover)
	if !ok || p.port.attr.Caps&hw.CapPieces == 0 || e.orderedRMA() || !e.domain.cfg.TokenWays.IPC {
		op.sel.picks = slices.Clone(sel.picks) // those of the caller end with the call
		return op.begin(link)
	}
	if e.putPending(p, l.addr) {
		return fi.EAGAIN // a copy would overtake what was posted before
	}
	op.countPieces(*sel, link, p)
	if op.mayShare(p) {
		if shared, err := op.share(mover, p); shared || err != nil {
			return e.broken(err)
		}
	}
	if err := op.copyPieces(mover); err != nil {
		return e.broken(err)
	}
	if op.sel.len() == 0 {
		op.finish()
		return nil
	}
	return op.begin(link)
}

// pieceScratch is what a posting thread hands to the transport: the pieces, and of each
// where in the selection its elements begin.
type pieceScratch struct {
	hw.Pieces
	at [hw.MaxPieces]int
}

var pieceScratches = sync.Pool{New: func() any { return new(pieceScratch) }}

// copyPieces copies the elements that it can, and leaves the others in the selection. fi.ECONNRESET: the peer is
// dead, and nothing was copied.
func (op *listOp) copyPieces(mover hw.PieceMover) error {
	s := pieceScratches.Get().(*pieceScratch)
	defer pieceScratches.Put(s)
	left := []uint32{}
	copied, elements := uint64(0), 0
	for i := 0; i < op.sel.len(); {
		began, skipped := i, len(left)
		i = s.gather(&op.sel, i, &left)
		moved, err := mover.MovePieces(&s.Pieces, !op.args.Read)
		copied += moved
		if err == nil {
			elements += i - began - (len(left) - skipped)
			continue
		}
		stopped := s.position(&op.sel, moved)
		if errors.Is(err, hw.ErrPeerDead) {
			if copied == 0 {
				return fi.ECONNRESET
			}
			op.fail(op.sel.number(stopped), fi.ECONNRESET)
			left = left[:0]
			break
		}
		// What is refused, or not possible, goes as messages, by which the peer reports why.
		left = op.leave(left[:skipped], began, stopped)
		elements += op.sel.len() - began - (len(left) - skipped)
		break
	}
	op.copied(uint64(elements), copied)
	op.sel = selection{list: op.list, picks: left}
	return nil
}

// leave appends the elements of the selection that are not copied: from a place on those that others have to
// move, and all from the one on that was the first to fail.
func (op *listOp) leave(left []uint32, from, failed int) []uint32 {
	for i := from; i < op.sel.len(); i++ {
		if i >= failed || !op.sel.at(i).Direct {
			left = append(left, op.sel.number(i))
		}
	}
	return left
}

// gather fills in the next pieces of a selection, from the i-th element on, and returns where it stopped. Neighbours
// are joined. Elements that others have to move are appended to left.
func (s *pieceScratch) gather(sel *selection, i int, left *[]uint32) int {
	s.N = 0
	for end := sel.len(); i < end; i++ {
		el := sel.at(i)
		if !el.Direct {
			*left = append(*left, sel.number(i))
			continue
		}
		n := s.N
		if !s.Add(el.Local, el.Remote, el.Len, el.Key) {
			break
		}
		if s.N != n {
			s.at[n] = i
		}
	}
	return i
}

// position returns which element of the selection is the first of which not all bytes are among those that are
// moved, given that not all pieces are.
func (s *pieceScratch) position(sel *selection, moved uint64) int {
	n := 0
	for n+1 < s.N && moved >= s.Local[n].Len {
		moved -= s.Local[n].Len
		n++
	}
	for i := s.at[n]; ; i++ {
		el := sel.at(i)
		if !el.Direct {
			continue
		}
		if moved < el.Len || i+1 == sel.len() {
			return i
		}
		moved -= el.Len
	}
}
