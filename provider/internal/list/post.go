package list

import (
	"errors"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/pieces"
)

// Posting a list. Elements that the posting thread can copy by itself, because the peer is a process of
// this host that lets it, are copied before the post returns, up to hw.MaxPieces pieces with one system call.
// All others are reads and writes of their own, which go as those of the endpoint do: they are posted
// as far as there is room, and the rest with progress (elements.go).

// Args describes a post of a list.
type Args struct {
	Read    bool     // from the peer's memory; else to it
	Picks   []uint32 // the elements, in this order; nil: all, or those in Bits
	Bits    []uint64 // element n is bit n%64 of word n/64; nil: all, or those in Picks
	Flags   uint64   // postFlags
	Context uint64

	// Note is sent to the owner when all elements are done, at most note.Longest bytes; nil: nothing is. The caller's
	// again after the call. NoteOnError: also when the post fails, with its error.
	Note        []byte
	NoteOnError bool
}

// postFlags are those that a post of a list may have.
const postFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
	fi.DeliveryComplete

// Write posts a write of all elements, with a context. Errors as of Post.
func (l *List) Write(context uint64) error { return l.Post(&Args{Context: context}) }

// Read posts a read of all elements, with a context. Errors as of Post.
func (l *List) Read(context uint64) error { return l.Post(&Args{Context: context, Read: true}) }

// Post posts one operation on elements of the list. It is one operation for completions and counters,
// whichever ways its elements take, and no order holds among these. Picks are read during the call only. If an
// element fails no further ones are begun, and the operation ends with the error of the first one that
// failed, by its number, which is the error completion's Data; Len is how many bytes are known to be done.
//
// Errors: fi.EAGAIN as of one-sided operations; fi.EBADFLAGS for other flags than those of completions, fi.Fence,
// fi.More and fi.Priority: lists cannot be injected; fi.EACCES for a region without the right; fi.EINVAL for no
// elements, and for one that the list does not have; fi.EOPNOTSUPP if FI_WEFT_TOKEN_WAYS leaves no way; those of
// one-sided operations about the endpoint and the peer.
func (l *List) Post(a *Args) error {
	err := l.post(a)
	l.of.ep.PostReady()
	return err
}

// post counts the post from before it reads closed: Close keeps the elements of those that are counted.
func (l *List) post(a *Args) error {
	l.posts.Add(1)
	begun, err := l.choose(a)
	if !begun {
		l.posts.Add(-1)
	}
	return err
}

// choose checks a post and has it go. begun: there is an operation, whose end takes it off the count of posts.
func (l *List) choose(a *Args) (begun bool, err error) {
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
	case !l.of.ep.Enabled():
		return false, fi.EOPBADSTATE
	case a.Flags&^postFlags != 0:
		return false, log.Reject(log.EPData, fi.EBADFLAGS, "%s: flags %#x are not for it", what, a.Flags&^postFlags)
	case !allowed:
		return false, log.Reject(log.EPData, fi.EACCES, "%s: a region does not allow it", what)
	case sel.Len() == 0 || sel.Len() > dataplane.MaxElements:
		return false, log.Reject(log.EPData, fi.EINVAL, "%s: %d elements, 1 to %d are possible", what, sel.Len(),
			dataplane.MaxElements)
	case len(a.Note) > note.Longest:
		return false, log.Reject(log.EPData, fi.EMSGSIZE,
			"%s: notification of %d bytes, at most %d", what, len(a.Note), note.Longest)
	}
	if err := sel.Check(); err != nil {
		return false, log.Reject(log.EPData, fi.ErrnoOf(err), "%s: %v", what, err)
	}
	if a.Note == nil && sel.Len() == 1 && sel.Number(0) == 0 && !l.shape.Runs[0].Mapped {
		return false, l.postOne(a)
	}
	err = l.postMany(a, &sel)
	return err == nil, err
}

// postOne posts the first element, as the operation that it is.
func (l *List) postOne(a *Args) error {
	return l.of.ep.Single(&Element{Element: l.shape.Runs[0].At(0), Dest: l.addr, Flags: a.Flags, Context: a.Context,
		Read: a.Read, Listed: l.of.cfg.TokenWays != allWays})
}

// allWays is FI_WEFT_TOKEN_WAYS with nothing turned off.
var allWays = config.Ways{IPC: true, RDMA: true, Message: true}

// postMany posts an operation of elements that are checked.
func (l *List) postMany(a *Args, sel *pieces.Selection) error {
	ep := l.of.ep
	to, over, err := ep.Connect(l.addr, a.Flags)
	if err != nil {
		return err
	}
	defer to.Release()
	completes := ep.Completes(a.Flags)
	if completes && !ep.Room() {
		return fi.EAGAIN
	}
	op := &Op{list: l, args: *a, sel: *sel, total: sel.Bytes(), completes: completes}
	op.args.Picks, op.args.Bits, op.args.Note = nil, nil, nil
	op.first.Store(noFailure)
	if err := op.enterNote(a, to, over); err != nil {
		return err
	}
	err = op.move(sel, to, over)
	if err != nil && op.note != nil {
		ep.Notes().Take(op.note, to)
	}
	return err
}

// enterNote enters the notification of the operation, if it has one: in the order of the posts.
func (op *Op) enterNote(a *Args, to Peer, over Path) error {
	if a.Note == nil {
		return nil
	}
	n := op.noteOf(a, over)
	if err := op.list.of.ep.Notes().Add(n, to, a.Note, false); err != nil {
		return err
	}
	op.note = n
	return nil
}

// Noted takes over a post with a notification of which all elements, n bytes, are done: this sends the notification,
// when there is room for it, and completes the post.
func (l *List) Noted(a *Args, n uint64) {
	ep := l.of.ep
	op := &Op{list: l, args: *a, total: n, completes: ep.Completes(a.Flags)}
	op.args.Note = nil
	op.first.Store(noFailure)
	op.done.Store(n)
	to, over, err := ep.Ready(l.addr)
	if err != nil {
		op.complete(fi.ErrnoOf(err))
		return
	}
	defer to.Release()
	op.note = op.noteOf(a, over)
	_ = ep.Notes().Add(op.note, to, a.Note, true) // which does not fail
	l.posts.Add(1)
	end(op)
	ep.PostReady()
}

// noteOf is the notification of the operation, over a path.
func (op *Op) noteOf(a *Args, over Path) *note.Outgoing {
	n := &note.Outgoing{
		Owner: op, Context: a.Context, Op: note.Write, Tag: op.list.shape.Tag.Load(),
		Ack: over.AckOfNote(a.Flags), OnError: a.NoteOnError,
	}
	if a.Read {
		n.Op = note.Read
	}
	return n
}

// move has the elements go. Of an operation that is refused nothing has happened.
func (op *Op) move(sel *pieces.Selection, to Peer, over Path) error {
	op.to = to
	l, o := op.list, op.list.of
	mover := over.Mover()
	if mover == nil || o.ep.Ordered() || !o.cfg.TokenWays.IPC {
		op.sel.Picks = slices.Clone(sel.Picks) // those of the caller end with the call
		return op.begin()
	}
	if o.ep.Overtakes(over, l.addr) {
		return fi.EAGAIN // a copy would overtake what was posted before
	}
	o.ep.Accessed(*sel, op.total, to, over)
	if op.mayShare(over) {
		if shared, err := op.share(mover, over); shared || err != nil {
			return o.ep.Broken(err)
		}
	}
	if err := op.copyPieces(mover); err != nil {
		return o.ep.Broken(err)
	}
	if op.sel.Len() == 0 {
		end(op)
		return nil
	}
	return op.begin()
}

// batches are spare ones for posting threads.
var batches = sync.Pool{New: func() any { return new(pieces.Batch) }}

// copyPieces copies the elements that it can, and leaves the others in the selection. fi.ECONNRESET: the peer is
// dead, and nothing was copied.
func (op *Op) copyPieces(mover hw.PieceMover) error {
	s := batches.Get().(*pieces.Batch)
	defer batches.Put(s)
	left := []uint32{}
	copied, elements := uint64(0), 0
	for i := 0; i < op.sel.Len(); {
		began, skipped := i, len(left)
		i = s.Gather(&op.sel, i, &left)
		if s.N == 0 {
			break // none of the rest is direct
		}
		moved, err := mover.MovePieces(&s.Pieces, !op.args.Read)
		if err == nil {
			copied += moved
			elements += i - began - (len(left) - skipped)
			continue
		}
		stopped := s.Position(&op.sel, moved)
		dead := errors.Is(err, hw.ErrPeerDead)
		if dead && copied+moved == 0 {
			return fi.ECONNRESET
		}
		copied += op.sel.Direct(began, stopped)
		if dead {
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
func (op *Op) keep(left []uint32) { op.sel = pieces.Selection{List: &op.list.shape, Picks: left} }
