package matched

import (
	"errors"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/order"
)

// FI_PEEK, FI_CLAIM and FI_DISCARD, as fi_tagged(3) defines them:
//
//	PEEK          says whether the device keeps a message that matches
//	PEEK|CLAIM    and sets it aside for a receive with this context
//	PEEK|DISCARD  and throws it away
//	CLAIM         receives the message that was set aside with this context
//	CLAIM|DISCARD throws it away

// contextNone is the context of what is not waited for: no operation has it.
const contextNone = ^uint64(0)

// claims are messages that were set aside for receives, in the order in which they were found.
type claims struct {
	lock order.Lock // guards list
	list []claim
}

// claim is a message that was set aside for the receive with a context of the application's.
type claim struct {
	context uint64
	tagged  bool
	name    hw.Claim
}

// add keeps a claim.
func (s *claims) add(c claim) {
	s.lock.Take()
	defer s.lock.Give()
	s.list = append(s.list, c)
}

// take gives out the oldest claim of a context.
func (s *claims) take(context uint64, tagged bool) (c claim, ok bool) {
	s.lock.Take()
	defer s.lock.Give()
	for k, c := range s.list {
		if c.context == context && c.tagged == tagged {
			s.list = slices.Delete(s.list, k, k+1)
			return c, true
		}
	}
	return c, false
}

// undo puts a claim back that was given out, as the oldest.
func (s *claims) undo(c claim) {
	s.lock.Take()
	defer s.lock.Give()
	s.list = slices.Insert(s.list, 0, c)
}

// search posts a search.
func (e *Endpoint) search(o *operation, m *hw.MatchReceive) error {
	o.kind, o.buf = kindSearch, 0
	return e.post("search", o, func(context uint64) error {
		m.Context = context
		if o.flags&(fi.Claim|fi.Discard) != 0 {
			return e.claimer.Claim(m)
		}
		return e.o.Matcher.Search(m)
	}, m.More)
}

// found takes in that a search has set a message aside. Lease.
func (e *Endpoint) found(o *operation, c hw.Claim) {
	switch {
	case o.flags&fi.Claim != 0:
		e.ops.claims.add(claim{o.context, o.tagged, c})
	case o.flags&fi.Discard != 0:
		e.discards = append(e.discards, c)
		e.discard()
	}
}

// discard throws away what searches have found. The device may have no room for it now. Lease.
func (e *Endpoint) discard() {
	for len(e.discards) > 0 {
		err := e.claimer.ReceiveClaimed(e.discards[0], &hw.MatchReceive{Context: contextNone})
		if errors.Is(err, hw.ErrNoResource) {
			return
		}
		e.discards = e.discards[1:]
	}
}

// receiveClaimed posts the receive of a message that was set aside. Errors: fi.ENOMSG if there is none, and what post
// returns.
func (e *Endpoint) receiveClaimed(o *operation, m *hw.MatchReceive) error {
	c, ok := e.ops.claims.take(o.context, o.tagged)
	if !ok {
		e.release(o)
		return log.Reject(log.EPData, fi.ENOMSG, "receive: no message is claimed with context %#x", o.context)
	}
	err := e.post("receive of a claimed message", o, func(context uint64) error {
		m.Context = context
		return e.claimer.ReceiveClaimed(c.name, m)
	}, m.More)
	if err != nil {
		e.ops.claims.undo(c)
	}
	return err
}
