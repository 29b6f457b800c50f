package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/wire"
)

// notes are an endpoint's notifications: bytes that come to a peer behind a transfer, or alone
// (note_send.go, note_recv.go, package wire).
type notes struct {
	ep     *Endpoint
	out    noteOutbox
	in     noteInbox
	memory noteMemory
	// wanted asks progress to serve both. Set by any thread, cleared by the lease holder before it does;
	// sequentially consistent.
	wanted atomic.Bool
}

func (s *notes) init(e *Endpoint) {
	s.ep = e
	s.out.ep, s.out.queues, s.out.byID = e, map[*link]*noteQueue{}, map[uint64]*noteQueue{}
	s.in.ep, s.in.streams = e, map[uint64]*noteIn{}
}

// possible reports whether the endpoint has notifications.
func (s *notes) possible() bool {
	e := s.ep
	return e.conn == nil && !e.lossy && e.scalable == nil && !e.domain.Keyed()
}

// notify wakes progress, now or at the next poll.
func (s *notes) notify() {
	s.wanted.Store(true)
	r := s.ep.rx
	atomic.OrUint32(&r.hot.Attention, hot.AttentionGo)
	r.ring()
}

// notifications are the protocol of notes.
type notifications struct{ e *leasedEP }

func (n notifications) handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{wire.AMNotice: n.e.onNotice}
}

func (n notifications) busy() bool                        { return n.e.notes.wanted.Load() }
func (n notifications) requested() bool                   { return n.e.notes.wanted.Load() }
func (n notifications) sourceLost(src hw.Source)          { n.e.notes.in.sourceLost(src) }
func (n notifications) linkLost(l *link, status fi.Errno) { n.e.notes.out.linkLost(l, status) }

// pump does what was asked for.
func (n notifications) pump() {
	if s := &n.e.notes; s.wanted.Swap(false) {
		s.in.pump(n.e)
		s.out.pump()
	}
}

// BindNotes binds a completion queue, which gets an entry for each notification that arrives: its flags are fi.RMA and
// fi.RemoteWrite or fi.RemoteRead, or those of a received message for one without a transfer, with fi.RemoteCQData; len
// is the notification's, data the tag. [Endpoint.Notes] has the bytes then. Errors as of BindCQ: fi.EDOMAIN, fi.EINVAL
// for a second queue, fi.EOPBADSTATE after Enable; fi.ENOSYS for an endpoint without notifications.
func (e *Endpoint) BindNotes(q *cq.Queue) error {
	return e.bind(&binding{what: "completion queue of notifications", acquire: retain(q), release: q.Release,
		check: func() error { return e.checkNotes(q, e.notes.in.queue != nil) },
		set:   func() { e.notes.in.queue = q },
	})
}

// CountNotes binds a counter, which counts each notification that arrives. only: they are counted and not kept.
// Errors as of BindNotes.
func (e *Endpoint) CountNotes(c *cq.Counter, only bool) error {
	return e.bind(&binding{what: "counter of notifications", acquire: retain(c), release: c.Release,
		check: func() error { return e.checkNotes(c, e.notes.in.counter != nil) },
		set:   func() { e.notes.in.counter, e.notes.in.only = c, only },
	})
}

func (e *Endpoint) checkNotes(q any, bound bool) error {
	switch {
	case !e.notes.possible():
		return fi.ENOSYS
	case !e.domain.queues.has(q):
		return fi.EDOMAIN
	case bound:
		return errBound
	}
	return nil
}

const (
	// MaxNote is the most bytes of a notification.
	MaxNote = hot.NoticeLongest
	// MaxAgent is the most bytes of the name that an endpoint gives itself.
	MaxAgent = hot.AgentLongest
	// noteWindow is what a sender may have on its way to a receiver, or waiting there, without asking.
	noteWindow = 16 << 10
	// noteExtra is what a receiver grants a sender beyond its window without being asked, while it does not ask and
	// less than half of what it may grant is granted.
	noteExtra = 240 << 10
)

// NoteOp is what a notification is about.
type NoteOp uint8

// What a notification is about.
const (
	NoteWrite NoteOp = hot.NoticeWrite // a write to the receiver's memory
	NoteRead  NoteOp = hot.NoticeRead  // a read of it
	NoteAlone NoteOp = hot.NoticeAlone // nothing but itself
)

// Note is a notification that has arrived.
type Note struct {
	Src   fi.Addr  // the sender, fi.AddrNotAvail if it is not in the address vector
	Name  []byte   // the sender's address, as [AV.Insert] takes it
	Agent string   // what the sender calls itself ([Endpoint.SetAgent])
	Tag   uint64   // of the list, or of Notify
	Op    NoteOp   // what it is about
	Err   fi.Errno // why the post failed, fi.Success: it did not
	Data  []byte   // at most MaxNote bytes, the receiver's to keep
}
