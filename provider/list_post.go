package provider

import (
	"errors"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/note"
	"github.com/weft-fabric/weft/provider/pieces"
)

// Posting a list. Elements that the posting thread can copy by itself, because the peer is a process of
// this host that lets it, are copied before the post returns, up to hw.MaxPieces pieces with one system call.
// All others are reads and writes of their own, which go as [Endpoint.RMA] has them go: they are posted
// as far as there is room, and the rest with progress (list_elements.go).

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
const listFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
	fi.DeliveryComplete

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

// post counts the post from before it reads closed: Close keeps the elements of those that are counted.
func (l *List) post(a *ListArgs) error {
	l.posts.Add(1)
	begun, err := l.choose(a)
	if !begun {
		l.posts.Add(-1)
	}
	return err
}

// choose checks a post and has it go. begun: there is an operation, whose end takes it off the count of posts.
func (l *List) choose(a *ListArgs) (begun bool, err error) {
	e := l.ep
	sel := l.all()
	sel.Picks = a.Picks
	if a.Bits != nil {
		sel.Picks = pieces.Bits(a.Bits)
	}
	what, allowed := "write a list", l.shape.Write
	if a.Read {
		what, allowed = "read a list", l.shape.Read
	}
	switch {
	case l.closed.Load(): // and its elements are gone
		return false, fi.EBADF
	case e.state.Load() != stateEnabled:
		return false, fi.EOPBADSTATE
	case a.Flags&^listFlags != 0:
		return false, e.refuse(fi.EBADFLAGS, "%s: flags %#x are not for it", what, a.Flags&^listFlags)
	case !allowed:
		return false, e.refuse(fi.EACCES, "%s: a region does not allow it", what)
	case sel.Len() == 0 || sel.Len() > MaxElements:
		return false, e.refuse(fi.EINVAL, "%s: %d elements, 1 to %d are possible", what, sel.Len(), MaxElements)
	}
	if err := sel.Check(); err != nil {
		return false, e.refuse(fi.ErrnoOf(err), "%s: %v", what, err)
	}
	if a.Note != nil {
		if len(a.Note) > MaxNote {
			return false, e.refuse(fi.EMSGSIZE, "%s: notification of %d bytes, at most %d", what, len(a.Note), MaxNote)
		}
		err = l.postMany(a, &sel)
		return err == nil, err
	}
	if sel.Len() == 1 && sel.Number(0) == 0 && !l.shape.Runs[0].Mapped {
		return false, l.postOne(a)
	}
	err = l.postMany(a, &sel)
	return err == nil, err
}

// postOne posts the first element, as the operation that it is.
func (l *List) postOne(a *ListArgs) error {
	el := l.shape.Runs[0].At(0)
	args := new(listArgs).fill(l, &el, a)
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

// fill makes them the arguments of an element's operation, which are used until the next call.
func (args *listArgs) fill(l *List, el *dataplane.Element, a *ListArgs) *RMAArgs {
	args.iov[0] = fi.IOVec{Base: uintptr(el.Local), Len: el.Len}
	args.remote[0] = fi.RMAIOVec{Addr: el.Remote, Len: el.Len, Key: el.Key}
	args.RMAArgs = RMAArgs{IOV: args.iov[:], Remote: args.remote[:], Dest: l.addr, Read: a.Read, listed: true}
	return &args.RMAArgs
}

// postMany posts an operation of elements that are checked.
func (l *List) postMany(a *ListArgs, sel *pieces.Selection) error {
	e := l.ep
	link, p, err := e.peerFor(l.addr, a.Flags)
	if err != nil {
		return err
	}
	defer link.Release()
	completes := e.txCompletes(0, a.Flags)
	if completes && !e.txCQ.Room(0) {
		return fi.EAGAIN
	}
	op := &listOp{list: l, args: *a, sel: *sel, total: sel.Bytes(), completes: completes}
	op.args.Picks, op.args.Bits, op.args.Note = nil, nil, nil
	op.first.Store(noFailure)
	if err := op.enterNote(a, link, p); err != nil {
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
	link, p, err := e.pathOfNoted(l)
	if err != nil {
		op.complete(fi.ErrnoOf(err))
		return
	}
	defer link.Release()
	op.note = op.noteOf(a, p)
	_ = e.notes.Out.Add(op.note, link, a.Note, true) // which does not fail
	l.posts.Add(1)
	op.finish()
	e.domain.work.PostReady()
}

// pathOfNoted returns the path over which a list's elements went, with its link, which it holds. fi.ECONNRESET: the
// path is lost, be that reported or not.
func (e *Endpoint) pathOfNoted(l *List) (*link, *path, error) {
	link, err := e.linkOf(l.addr)
	if err != nil {
		return nil, nil, err
	}
	p, ok := link.ready()
	if !ok {
		link.Release()
		return nil, nil, fi.ECONNRESET
	}
	return link, p, nil
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
func (op *listOp) move(sel *pieces.Selection, link *link, p *path) error {
	op.to = link
	l, e := op.list, op.list.ep
	mover, ok := p.Endpoint.(hw.PieceMover)
	if !ok || p.port.attr.Caps&hw.CapPieces == 0 || e.orderedRMA() || !e.domain.cfg.TokenWays.IPC {
		op.sel.Picks = slices.Clone(sel.Picks) // those of the caller end with the call
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
	if op.sel.Len() == 0 {
		op.finish()
		return nil
	}
	return op.begin(link)
}

// batches are spare ones for posting threads.
var batches = sync.Pool{New: func() any { return new(pieces.Batch) }}

// copyPieces copies the elements that it can, and leaves the others in the selection. fi.ECONNRESET: the peer is
// dead, and nothing was copied.
func (op *listOp) copyPieces(mover hw.PieceMover) error {
	s := batches.Get().(*pieces.Batch)
	defer batches.Put(s)
	left := []uint32{}
	copied, elements := uint64(0), 0
	for i := 0; i < op.sel.Len(); {
		began, skipped := i, len(left)
		i = s.Gather(&op.sel, i, &left)
		moved, err := mover.MovePieces(&s.Pieces, !op.args.Read)
		copied += moved
		if err == nil {
			elements += i - began - (len(left) - skipped)
			continue
		}
		stopped := s.Position(&op.sel, moved)
		if errors.Is(err, hw.ErrPeerDead) {
			if copied == 0 {
				return fi.ECONNRESET
			}
			op.fail(op.sel.Number(stopped), fi.ECONNRESET)
			left = left[:0]
			break
		}
		// What is refused, or not possible, goes as messages, by which the peer reports why.
		left = op.sel.Leave(left[:skipped], began, stopped)
		elements += op.sel.Len() - began - (len(left) - skipped)
		break
	}
	op.copied(uint64(elements), copied)
	op.keep(left)
	return nil
}

// keep makes elements the ones that are left.
func (op *listOp) keep(left []uint32) { op.sel = pieces.Selection{List: &op.list.shape, Picks: left} }
