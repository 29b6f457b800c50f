package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/note"
)

// SetAgent gives the endpoint a name that its notifications carry, at most MaxAgent bytes. Later posts have it.
// fi.EINVAL: it is too long.
func (e *Endpoint) SetAgent(name string) error {
	if len(name) > MaxAgent {
		return log.Reject(log.EPData, fi.EINVAL, "agent name of %d bytes, at most %d", len(name), MaxAgent)
	}
	e.notes.Out.SetAgent(name)
	return nil
}

// NotifyArgs describe a notification without a transfer.
type NotifyArgs struct {
	Dest    fi.Addr
	Tag     uint64
	Note    []byte // at most MaxNote bytes; the caller's again after the call
	Flags   uint64 // notifyFlags
	Context uint64
}

const notifyFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
	fi.DeliveryComplete

// notifyOp is a notification without a transfer, and the operation that posts it.
type notifyOp struct {
	note.Outgoing
	e     *Endpoint
	flags uint64 // of the post
}

// Notify sends a notification that belongs to no transfer. It goes behind those of earlier posts to the
// same receiver. It completes, as a message (fi.Send|fi.Msg), when it is out; with fi.DeliveryComplete when
// the receiver holds it. Errors: fi.EOPBADSTATE for an endpoint that is not enabled; fi.ENOSYS for one that is not of
// type FI_EP_RDM, or a receive context; fi.EBADFLAGS; fi.EMSGSIZE for too many bytes; fi.EAGAIN while too many wait;
// those of Send about the peer.
func (e *Endpoint) Notify(a *NotifyArgs) error {
	switch sends, _ := notesOf(&e.base.peering); {
	case e.base.state.Load() != stateEnabled:
		return fi.EOPBADSTATE
	case !sends:
		return log.Reject(log.EPData, fi.ENOSYS, "notify: the endpoint sends no notifications")
	case a.Flags&^notifyFlags != 0:
		return log.Reject(log.EPData, fi.EBADFLAGS, "notify: flags %#x are not for it", a.Flags&^notifyFlags)
	case len(a.Note) > MaxNote:
		return log.Reject(log.EPData, fi.EMSGSIZE, "notify: %d bytes, at most %d", len(a.Note), MaxNote)
	}
	l, p, err := e.base.peerFor(a.Dest, a.Flags)
	if err != nil {
		return err
	}
	defer l.Release()
	if e.base.bound.txCompletes(0, a.Flags) && !e.base.bound.txCQ.Room(0) {
		return fi.EAGAIN
	}
	op := &notifyOp{e: e, flags: a.Flags, Outgoing: note.Outgoing{
		Context: a.Context, Op: NoteAlone, Tag: a.Tag, Ack: p.AckOfNote(a.Flags),
	}}
	op.Owner = op
	if err := e.notes.Out.Add(&op.Outgoing, l, a.Note, false); err != nil {
		return err
	}
	e.notes.Out.Settle(&op.Outgoing, fi.Success)
	e.base.domain.work.PostReady()
	return nil
}

// NoteEnded completes the operation.
func (op *notifyOp) NoteEnded(status fi.Errno) {
	e, entry := op.e, txEntry(op.Context, false)
	switch {
	case status != fi.Success:
		e.base.counts.Failed(status)
		if e.base.bound.txCQ != nil {
			e.base.bound.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	case e.base.bound.txCompletes(0, op.flags):
		e.base.bound.txCQ.Complete(entry)
	}
	e.base.countWork(e.base.bound.txCntr.Load(), 0, op.flags&fi.Completion != 0, status != fi.Success, op.Len())
}

// TakeNotes takes the oldest notifications, at most most, while room says that the i-th has somewhere to go, and
// returns how many there were. Errors as of Notes.
func (e *Endpoint) TakeNotes(most int, room func(i int, n *Note) bool) (taken int, err error) {
	switch _, takes := notesOf(&e.base.peering); {
	case e.base.state.Load() != stateEnabled:
		return 0, fi.EOPBADSTATE
	case !takes:
		return 0, log.Reject(log.EPData, fi.ENOSYS, "notes: the endpoint takes no notifications")
	}
	return e.notes.In.Take(most, room), nil
}

// CreditNotes gives a sender, by its number as hot.NoteTake has it, more.
func (e *Endpoint) CreditNotes(source uint32) { e.notes.In.Credit(source) }

// Notes takes the notifications that have arrived, the oldest first, and makes progress if there are none. Those of
// one sender come in the order of its posts, each when all that its post has moved is there. nil: there are none.
// Errors: fi.EOPBADSTATE for an endpoint that is not enabled, fi.ENOSYS for a transmit context, and another type.
func (e *Endpoint) Notes() (list []Note, err error) {
	_, err = e.TakeNotes(1<<30, func(_ int, n *Note) bool {
		list = append(list, *n)
		return true
	})
	return list, err
}
