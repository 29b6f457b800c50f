package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/names"
)

const (
	// MaxNote is the most bytes of a notification.
	MaxNote = note.Longest
	// MaxAgent is the most bytes of the name that an endpoint gives itself.
	MaxAgent = note.AgentLongest
)

// NoteOp is what a notification is about.
type NoteOp = note.Op

// What a notification is about.
const (
	NoteWrite = note.Write // a write to the receiver's memory
	NoteRead  = note.Read  // a read of it
	NoteAlone = note.Alone // nothing but itself
)

// Note is a notification that has arrived.
type Note = note.Note

// notesOf reports whether an endpoint sends notifications, and whether it takes any. Contexts have a direction each.
func notesOf(e *peering) (sends, takes bool) {
	has := e.conn == nil && !e.chosen.lossy
	return has && !e.receivesOnly(), has && !sendsOnly(e)
}

// openNotes gives the endpoint's notifications their memory.
func (e *Endpoint) openNotes() error {
	sends, takes := notesOf(&e.base.peering)
	return e.notes.Open(e.base.domain.cfg.MaxPeers, sends, takes, e.base.stats)
}

// noteEndpoint is an endpoint as its notifications need it.
type noteEndpoint struct{ e *Endpoint }

func (n noteEndpoint) Progress() { n.e.Progress() }
func (n noteEndpoint) Serve()    { n.e.base.rx.serve() }

func (n noteEndpoint) Notify() {
	n.e.base.rx.notifyPoll()
	n.e.base.rx.ring()
}

func (n noteEndpoint) Connect(to note.Peer) (note.Path, error) {
	p, err := n.e.base.links.Connect(to.(*link))
	if err != nil {
		return nil, err
	}
	p.Via.Notify()
	return p, nil
}

func (n noteEndpoint) Send(to note.Path, stream uint64, h *wire.Notice, part []byte) error {
	e, p := &n.e.base, to.(*path)
	lease, ok := e.sends.Stripes().Acquire(0)
	if !ok {
		return fi.EAGAIN
	}
	defer e.sends.Stripes().Release(lease)
	return e.broken(e.sends.SendBytes(&p.Path, wire.AMNotice, stream, h.Put(e.sends.Head(lease)), part, lease))
}

func (n noteEndpoint) Ask(to note.Path, stream uint64, w wire.NoticeWords) error {
	var b [wire.NoticeWordsBytes]byte
	return n.e.base.broken(outcome.OfPost(to.(*path).AMShort(wire.AMNotice, stream, w.Put(b[:]), nil)))
}

// notifications are the protocol of notes, and the endpoint as these need it of the holder of the lease.
type notifications struct{ leasedHost }

func (n notifications) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{wire.AMNotice: n.onNotice}
}

func (n notifications) Busy() bool               { return n.e.ep.notes.Wanted() }
func (n notifications) Requested() bool          { return n.e.ep.notes.Wanted() }
func (n notifications) Pump()                    { n.e.ep.notes.Pump(n) }
func (n notifications) SourceLost(src hw.Source) { n.e.ep.notes.In.SourceLost(src) }
func (n notifications) PeerLost(number uint32, status fi.Errno) {
	n.e.ep.notes.Out.Lost(n.e.ep.base.links.At(number), status)
}

// onNotice takes in a message of notifications.
func (n notifications) onNotice(src hw.Source, id uint64, head, payload []byte) {
	n.e.ep.notes.Handle(n, src, id, head, payload)
}

func (n notifications) Name(src hw.Source) []byte {
	raw, err := names.Encode(n.e.ep.base.format, n.e.rx.addressOf(n.e.senderOf(src)).Name)
	if err != nil {
		log.Debugf(log.EPData, "name of a sender: %v", err)
	}
	return raw
}

func (n notifications) Addr(src hw.Source) fi.Addr { return n.e.addrOf(n.e.senderOf(src).ID) }

func (n notifications) Perform(src hw.Source, w wire.Write, addr uint64, data []byte) fi.Errno {
	return n.e.target.Perform(src, &w, addr, data)
}

func (n notifications) Answer(src hw.Source, stream uint64, w wire.NoticeWords) {
	e := n.e
	e.rx.answer(e, src, e.senderOf(src), wire.AMNotice, stream, w.Put(e.rx.head[:]))
}

// BindNotes binds a completion queue, which gets an entry for each notification that arrives: its flags are fi.RMA and
// fi.RemoteWrite or fi.RemoteRead, or those of a received message for one without a transfer, with fi.RemoteCQData; len
// is the notification's, data the tag. [Endpoint.Notes] has the bytes then. Errors as of BindCQ: fi.EDOMAIN, fi.EINVAL
// for a second queue, fi.EOPBADSTATE after Enable; fi.ENOSYS for an endpoint that takes none.
func (e *Endpoint) BindNotes(q *cq.Queue) error {
	return e.base.bind(&binding{what: "completion queue of notifications", acquire: retain(q), release: q.Release,
		check: func() error { return e.base.checkNotes(q, e.notes.In.Queue != nil) },
		set:   func() { e.notes.In.Queue = q },
	})
}

// CountNotes binds a counter, which counts each notification that arrives. only: they are counted and not kept.
// Errors as of BindNotes.
func (e *Endpoint) CountNotes(c *cq.Counter, only bool) error {
	return e.base.bind(&binding{what: "counter of notifications", acquire: retain(c), release: c.Release,
		check: func() error { return e.base.checkNotes(c, e.notes.In.Counter != nil) },
		set:   func() { e.notes.In.Counter, e.notes.In.Only = c, only },
	})
}

func (e *peering) checkNotes(q any, bound bool) error {
	switch _, takes := notesOf(e); {
	case !takes:
		return fi.ENOSYS
	case !e.domain.queues.Has(q):
		return fi.EDOMAIN
	case bound:
		return errBound
	}
	return nil
}
