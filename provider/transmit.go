package provider

import (
	"maps"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/messages"
)

// Sending messages that the data plane leaves to the runtime, of which the first to each peer is one, is package
// messages's. Here is the endpoint as messages have it.

// SendArgs describes one transmit.
type SendArgs struct {
	IOV       []fi.IOVec
	Dest      fi.Addr
	Tag, Data uint64
	Flags     uint64 // of this operation: op_flags are merged in already where the call has no flags
	Context   uint64
	Tagged    bool
	HasData   bool      // Data goes with the message
	Inject    bool      // fi_inject forms: never a completion
	Thread    uint32    // number of the thread of C that posts it, 0: a goroutine does
	On        Threshold // with fi.Trigger in Flags

	work uint64 // the number of the deferred work that this is, or 0
}

// message is what package messages has of the arguments.
func (s *SendArgs) message() messages.Send {
	return messages.Send{
		IOV: s.IOV, Dest: s.Dest, Tag: s.Tag, Data: s.Data, Flags: s.Flags, Context: s.Context, Work: s.work,
		Tagged: s.Tagged, HasData: s.HasData, Inject: s.Inject, Thread: s.Thread,
	}
}

// Send posts one message. It returns nil when the message was posted, and
// fi.EAGAIN when nothing happened and the caller may try again after progress.
// Other errors: fi.EOPBADSTATE (not enabled), fi.EBADFLAGS, fi.EINVAL (an
// address not in the AV, too many elements, too long to inject), fi.EMSGSIZE,
// and those of a peer that cannot be reached. With fi.Trigger the message is
// posted when a counter reaches a value.
func (e *Endpoint) Send(s *SendArgs) error {
	if s.Flags&fi.Trigger != 0 {
		return e.base.domain.triggeredSend(e, s)
	}
	err := e.base.send(s)
	e.base.domain.work.PostReady()
	return err
}

func (e *initiator) send(s *SendArgs) error {
	if e.state.Load() != stateEnabled {
		return fi.EOPBADSTATE
	}
	m := s.message()
	if done, err := e.sends.SendHere(&m); done {
		return err
	}
	total, err := e.checkSend(&m)
	if err != nil {
		return err
	}
	return e.sends.Send(&m, total)
}

// checkSend validates the arguments and returns the message's length.
func (e *peering) checkSend(m *messages.Send) (total uint64, err error) {
	if e.state.Load() != stateEnabled {
		return 0, fi.EOPBADSTATE
	}
	most, inject := fi.OptMaxMsgSize, fi.OptInjectMsgSize
	if m.Tagged {
		most, inject = fi.OptMaxTaggedSize, fi.OptInjectTaggedSize
	}
	return m.Check(messages.Limits{Most: e.size(most), Inject: e.size(inject)})
}

// txCompletes reports whether an operation with flags writes a completion. work is
// its number if it is deferred, else 0.
func (e *bindings) txCompletes(work, flags uint64) bool {
	return e.txCQ != nil && (!e.txSelective && work == 0 || flags&fi.Completion != 0)
}

// txEntry is the completion of a transmit.
func txEntry(context uint64, tagged bool) cq.Entry {
	flags := fi.Send | fi.Msg
	if tagged {
		flags = fi.Send | fi.Tagged
	}
	return cq.Entry{Context: context, Flags: flags, Src: fi.AddrNotAvail}
}

// initMessages prepares the endpoint's sender of messages.
func (e *leasedEP) initMessages() {
	b := &e.ep.base
	b.sends.Init(messagesHost{b}, messages.Parts{
		Config: b.domain.cfg, Links: &b.links, Pendings: &b.pendings, Accesses: &b.accesses, Counts: &b.counts,
	})
	e.sent.Init(&b.sends, messagesLeasedHost{leasedHost{e}})
}

// messagesHost is an endpoint as its messages have it.
type messagesHost struct{ e *initiator }

// LinkOf returns the link of an address.
func (h messagesHost) LinkOf(dest fi.Addr) (*links.Link, error) { return h.e.linkOf(dest) }

// Broken is what a post returns of which nothing went out because of err.
func (h messagesHost) Broken(err error) error { return h.e.broken(err) }

// Completes reports whether a message with flags writes a completion.
func (h messagesHost) Completes(work, flags uint64) bool { return h.e.bound.txCompletes(work, flags) }

// Room reports whether a ring of the queue has room for a completion.
func (h messagesHost) Room(ring int) bool { return h.e.bound.txCQ.Room(ring) }

// End writes the completion of a message and counts it.
func (h messagesHost) End(m messages.Ended) {
	q, entry := h.e.bound.txCQ, txEntry(m.Context, m.Tagged)
	switch {
	case m.Status != fi.Success:
		if q != nil {
			q.CompleteError(entry, cq.ErrorInfo{Err: m.Status})
		}
	case m.Completes:
		q.CompletePost(m.Ring, entry) // another thread may have taken the room: nothing is lost
	}
	h.e.countWork(h.e.bound.txCntr.Load(), m.Work, m.Asked, m.Status != fi.Success, m.Total)
}

// Complete writes the completion of a message that a goroutine has posted and that is counted.
func (h messagesHost) Complete(context, flags uint64) {
	h.e.bound.txCQ.CompletePost(1, cq.Entry{Context: context, Flags: flags, Src: fi.AddrNotAvail})
}

// Act does what the data plane has left to do after completions.
func (h messagesHost) Act(todo uint32) { h.e.bound.act(todo) }

// PeerLost says that a peer may have gone while a message was posted to it.
func (h messagesHost) PeerLost() { h.e.peerLost() }

// WakePeer rings the doorbell of a peer.
func (h messagesHost) WakePeer(peer uint32) { h.e.transports.iface.WakePeer(peer) }

// Share lets peers map memory of a device.
func (h messagesHost) Share(addr, n uint64) (token, offset uint64, ok bool) {
	if h.e.chosen.p2p.Load() == fi.HMEMP2PDisabled {
		return 0, 0, false
	}
	return h.e.domain.mappings.Share(addr, n)
}

// messagesLeasedHost is an endpoint as the protocol of its messages has it.
type messagesLeasedHost struct{ leasedHost }

// Act does what the data plane has left to do after completions.
func (h messagesLeasedHost) Act(todo uint32) { h.e.ep.base.bound.act(todo) }

// RequestEnded has the rendezvous forget a request.
func (h messagesLeasedHost) RequestEnded(id uint64) { h.e.rendezvous.Ended(id) }

// twoSided is the two-sided protocol but for rendezvous: messages that come with their payload, and the ends of those
// that wait for an acknowledgement.
type twoSided struct {
	*messages.Protocol
	e *leasedEP
}

func (m twoSided) Handlers() map[hw.AMID]hw.Handler {
	all := m.Protocol.Handlers()
	maps.Copy(all, m.e.received.Handlers())
	return all
}
