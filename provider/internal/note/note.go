// Package note sends and receives notifications: bytes that come to a peer behind a transfer, or alone ([wire.Notice]).
//
// A sender has a stream to each receiver (outbox.go), in which notifications go in the order of their posts. A receiver
// keeps what has arrived until it is taken (inbox.go), and bounds that by the credit that it gives. What needs nothing
// of the runtime does the data plane, over memory that both share (memory_unsafe.go, [hot.Notes]).
package note

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

const (
	// Longest is the most bytes of a notification.
	Longest = hot.NoticeLongest
	// AgentLongest is the most bytes of the name that an endpoint gives itself.
	AgentLongest = hot.AgentLongest
	// window is what a sender may have on its way to a receiver, or waiting there, without asking.
	window = 16 << 10
	// extra is what a receiver grants a sender beyond its window without being asked, while it does not ask and
	// less than half of what it may grant is granted.
	extra = 240 << 10
)

// Op is what a notification is about.
type Op uint8

// What a notification is about.
const (
	Write Op = hot.NoticeWrite // a write to the receiver's memory
	Read  Op = hot.NoticeRead  // a read of it
	Alone Op = hot.NoticeAlone // nothing but itself
)

// Note is a notification that has arrived.
type Note struct {
	Src   fi.Addr  // the sender, fi.AddrNotAvail if it is not in the address vector
	Name  []byte   // the sender's address, as the address vector takes it
	Agent string   // what the sender calls itself
	Tag   uint64   // of the post
	Op    Op       // what it is about
	Err   fi.Errno // why the post failed, fi.Success: it did not
	Data  []byte   // at most Longest bytes, the receiver's to keep
}

// Peer is an endpoint's link to a receiver. Values are comparable: they are keys of maps.
type Peer interface {
	// Number is the endpoint's number for the peer.
	Number() uint32
	// Count adds to the operations that wait for the peer.
	Count(n int64)
	// Ring is the address of the peer's inbound ring, into which the data plane may write. False: it may not.
	Ring() (slots uintptr, open bool)
}

// Path is how a peer is reached now.
type Path interface {
	// MaxPart is the most bytes of a notification that one message takes.
	MaxPart() int
}

// Endpoint is what notifications need of their endpoint. Its methods are for any thread.
type Endpoint interface {
	// Notify has progress call Pump, now or at the next poll.
	Notify()
	// Progress makes progress.
	Progress()
	// Serve has Pump called, unless another thread makes progress, which calls it; what has arrived from this host is
	// left to the data plane.
	Serve()
	// Connect returns the path to a peer. fi.EAGAIN: later; others: the peer is lost.
	Connect(p Peer) (Path, error)
	// Send sends a part of a notification, whose head is h. Errors as of Connect.
	Send(p Path, stream uint64, h *wire.Notice, part []byte) error
	// Ask sends two numbers. Errors as of Connect.
	Ask(p Path, stream uint64, w wire.NoticeWords) error
}

// Leased is what they need of it while its progress lease is taken.
type Leased interface {
	// Name is the address of the sender behind a source, as the address vector takes it.
	Name(src hw.Source) []byte
	// Addr is where the address vector has it, fi.AddrNotAvail: nowhere.
	Addr(src hw.Source) fi.Addr
	// Owns reports whether the sender is the peer with a number.
	Owns(src hw.Source, peer uint32) bool
	// Perform performs a write of the sender's.
	Perform(src hw.Source, w wire.Write, addr uint64, data []byte) fi.Errno
	// Answer sends it two numbers, now or when there is room.
	Answer(src hw.Source, stream uint64, w wire.NoticeWords)
	// Malformed counts and logs that it has sent what it may not send.
	Malformed(src hw.Source, format string, args ...any)
}

// Notes are the notifications of an endpoint.
type Notes struct {
	Out    Outbox
	In     Inbox
	ep     Endpoint
	bound  uint64 // of what waits at either side, bytes
	stats  *stats.Endpoint
	memory memory
	// wanted asks progress to serve both. Set by any thread, cleared by the lease holder before it does;
	// sequentially consistent.
	wanted atomic.Bool
}

// Init prepares the notifications of an endpoint of which at most bound bytes wait to be sent, and to be taken beyond
// the windows of their senders.
func (s *Notes) Init(e Endpoint, bound int) {
	s.ep, s.bound = e, uint64(bound)
	s.Out.notes, s.Out.queues, s.Out.byID = s, map[Peer]*queue{}, map[uint64]*queue{}
	s.In.notes, s.In.streams = s, map[uint64]*stream{}
}

// Open says in which directions there are any, and gives them counters, and memory that the data plane shares, with
// places for so many peers. Errors of mmap.
func (s *Notes) Open(peers int, sends, takes bool, counters *stats.Endpoint) error {
	outs, ins := peers, peers
	if !sends {
		outs = 0
	}
	if s.In.closed = !takes; !takes {
		ins = 0
	}
	if s.stats = counters; outs+ins == 0 {
		return nil
	}
	return s.memory.open(outs, ins)
}

// Close takes the memory back.
func (s *Notes) Close() { s.memory.close() }

// Wanted reports whether Pump has something to do. Any thread.
func (s *Notes) Wanted() bool { return s.wanted.Load() }

// Pump does what was asked for.
func (s *Notes) Pump(e Leased) {
	if s.wanted.Swap(false) {
		s.In.pump(e)
		s.Out.pump()
	}
}

// notify has progress serve both.
func (s *Notes) notify() {
	s.wanted.Store(true)
	s.ep.Notify()
}

// Handle takes in a message of notifications.
func (s *Notes) Handle(e Leased, src hw.Source, id uint64, head, payload []byte) {
	var w wire.NoticeWords
	kind := byte(0)
	if len(head) != 0 {
		kind = head[0]
	}
	switch {
	case kind != wire.NoticeCredit && s.In.closed:
		e.Malformed(src, "notification for an endpoint that takes none")
	case kind == wire.NoticeData:
		s.In.arrive(e, src, id, head, payload, &wire.Move{})
	case kind == wire.NoticeMove:
		plain, note, moved, ok := wire.SplitMove(head, payload)
		if !ok {
			e.Malformed(src, "write of %d bytes with its notification, with a head of %d", len(payload),
				len(head))
			return
		}
		s.In.arrive(e, src, id, plain[:], note, &moved)
	case kind == wire.NoticeBrief:
		s.In.arriveShort(e, src, id, head, payload)
	case !w.Parse(head, len(payload)):
		e.Malformed(src, "message of notifications with a head of %d bytes", len(head))
	case w.Kind == wire.NoticeCredit:
		s.Out.credit(e, src, id, &w)
	default:
		s.In.asked(e, src, id, &w)
	}
}

// completionFlags are those of the completion of a notification that arrives.
func (op Op) completionFlags() uint64 {
	switch op {
	case Write:
		return fi.RMA | fi.RemoteWrite | fi.RemoteCQData
	case Read:
		return fi.RMA | fi.RemoteRead | fi.RemoteCQData
	}
	return fi.Recv | fi.Msg | fi.RemoteCQData
}

// report completes or counts a notification.
func (b *Inbox) report(n *unexpected) {
	if b.Queue != nil {
		b.Queue.Complete(cq.Entry{
			Flags: Op(n.head.Op).completionFlags(), Len: uint64(n.head.Length) - uint64(n.head.Agent),
			Data: n.head.Tag, Src: n.src,
		})
	}
	if b.Counter != nil {
		b.Counter.Count(1)
	}
}
