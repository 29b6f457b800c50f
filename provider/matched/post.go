package matched

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// Send describes one message to send.
type Send struct {
	IOV     []fi.IOVec
	Dest    fi.Addr
	Tag     uint64
	Data    uint64
	Flags   uint64
	Context uint64
	Tagged  bool
	HasData bool // Data goes with the message
	Inject  bool // fi_inject forms: no completion
}

// Receive describes one receive, or a search with fi.Peek. What fi.Claim and fi.Discard mean says claim.go.
type Receive struct {
	IOV         []fi.IOVec
	Src         fi.Addr // fi.AddrUnspec: any
	Tag, Ignore uint64
	Flags       uint64
	Context     uint64
	Tagged      bool
}

const (
	sendFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete |
		fi.MatchComplete | fi.RemoteCQData | fi.Priority | fi.Fence
	receiveFlags = fi.Completion | fi.More | fi.MultiRecv | searchFlags
	searchFlags  = fi.Peek | fi.Claim | fi.Discard
)

// one is the only buffer of an operation. Errors: fi.EINVAL.
func one(what string, iov []fi.IOVec) (v fi.IOVec, err error) {
	switch {
	case len(iov) > 1:
		return v, refuse(fi.EINVAL, "%s: %d elements, at most 1", what, len(iov))
	case len(iov) == 1:
		v = iov[0]
	}
	if v.Base == 0 && v.Len != 0 {
		return v, refuse(fi.EINVAL, "%s: element of %d bytes at address 0", what, v.Len)
	}
	return v, nil
}

// checkSend judges a send. v is its buffer.
func (e *Endpoint) checkSend(s *Send, v fi.IOVec) error {
	inject := s.Inject || s.Flags&fi.Inject != 0
	switch {
	case s.Flags&^(sendFlags|workFlag) != 0:
		return refuse(fi.EBADFLAGS, "send: flags %#x are not for a send of this endpoint", s.Flags&^sendFlags)
	case v.Len > e.attr.MaxMessage:
		return refuse(fi.EMSGSIZE, "send: %d bytes, at most %d", v.Len, e.attr.MaxMessage)
	case inject && v.Len > uint64(e.attr.MaxInject):
		return refuse(fi.EINVAL, "inject: %d bytes, at most %d", v.Len, e.attr.MaxInject)
	case s.Tagged && s.Tag&^e.attr.TagMask != 0:
		return refuse(fi.EINVAL, "send: tag %#x has bits beyond %#x", s.Tag, e.attr.TagMask)
	}
	return nil
}

// Send posts a message. Errors: fi.EAGAIN (nothing happened, the caller may try again after progress), fi.EBADFLAGS,
// fi.EINVAL, fi.EMSGSIZE, fi.EHOSTUNREACH.
func (e *Endpoint) Send(s *Send) error {
	v, err := one("send", s.IOV)
	if err == nil {
		err = e.checkSend(s, v)
	}
	if err != nil {
		return err
	}
	c := calls.Get().(*call)
	defer c.done()
	to, err := e.address(s.Dest, c.name[:0])
	if err != nil {
		return refuse(Errno(err), "send to address %d: %v", s.Dest, err)
	}
	o := operation{kind: kindSend, to: to, tagged: s.Tagged, context: s.Context, flags: s.Flags, inject: s.Inject,
		len: v.Len}
	m := &c.send
	*m = hw.MatchSend{To: to, Tagged: s.Tagged, Tag: s.Tag, Data: s.Data, HasData: s.HasData,
		Matched: s.Flags&fi.MatchComplete != 0, More: s.Flags&fi.More != 0}
	if v.Len <= uint64(e.attr.MaxInject) {
		m.Inject = bytesAt(uint64(v.Base), v.Len)
	} else if o.copied = e.copy(v.Len); o.copied != 0 {
		m.Local = e.copies.segment(o.copied, uint64(v.Base), v.Len)
	} else if m.Local, err = e.register("send", &o, v, 0); err != nil {
		return err
	}
	return e.post("send", &o, func(context uint64) error {
		m.Context = context
		return e.o.Matcher.PostMatched(m)
	}, m.More)
}

// post enters an operation and gives it to the device. With fi.Fence none before it to the same peer is under way then.
func (e *Endpoint) post(what string, o *operation, give func(context uint64) error, more bool) error {
	context, ok := e.ops.add(o)
	if !ok { // there is no room, or what was posted before is to end first
		e.release(o)
		return fi.EAGAIN
	}
	if err := give(context); err != nil {
		e.drop(context)
		return refused(what, err)
	}
	e.more(more)
	return nil
}

// checkReceive judges a receive. v is its buffer.
func (e *Endpoint) checkReceive(r *Receive, v fi.IOVec) error {
	multi, search := r.Flags&fi.MultiRecv != 0, r.Flags&searchFlags
	switch {
	case r.Flags&^(receiveFlags|workFlag) != 0:
		return refuse(fi.EBADFLAGS, "receive: flags %#x are not for a receive of this endpoint", r.Flags&^receiveFlags)
	case search == fi.Discard:
		return refuse(fi.EBADFLAGS, "receive: FI_DISCARD needs FI_PEEK or FI_CLAIM")
	case search == searchFlags:
		return refuse(fi.EBADFLAGS, "receive: FI_CLAIM and FI_DISCARD exclude each other in a peek")
	case search&(fi.Claim|fi.Discard) != 0 && e.claimer == nil:
		return refuse(fi.EOPNOTSUPP, "receive: the device neither claims nor discards messages (flags %#x)", r.Flags)
	case multi && (r.Tagged || search != 0):
		return refuse(fi.EINVAL, "receive: FI_MULTI_RECV is for untagged messages")
	case multi && (v.Len == 0 || v.Len < e.minMulti.Load()):
		return refuse(fi.ETOOSMALL, "receive: multi-receive buffer of %d bytes, at least %d", v.Len, e.minMulti.Load())
	case r.Tagged && r.Tag&^r.Ignore&^e.attr.TagMask != 0:
		return refuse(fi.EINVAL, "receive: tag %#x has bits beyond %#x", r.Tag, e.attr.TagMask)
	}
	return nil
}

// Receive posts a receive, or searches with fi.Peek. Errors: as Send's, and fi.ETOOSMALL for a buffer of many messages,
// fi.EOPNOTSUPP for fi.Claim and fi.Discard where the device sets no messages aside, fi.ENOMSG for a receive with
// fi.Claim and the context of no such message.
func (e *Endpoint) Receive(r *Receive) error {
	v, err := one("receive", r.IOV)
	if err == nil {
		err = e.checkReceive(r, v)
	}
	if err != nil {
		return err
	}
	o := operation{kind: kindReceive, tagged: r.Tagged, context: r.Context, flags: r.Flags, buf: uint64(v.Base),
		len: v.Len, tag: r.Tag}
	c := calls.Get().(*call)
	defer c.done()
	m := &c.receive
	*m = hw.MatchReceive{From: hw.AnyAddress, Tagged: r.Tagged, Tag: r.Tag & e.attr.TagMask,
		Ignore: r.Ignore & e.attr.TagMask, Multi: r.Flags&fi.MultiRecv != 0, More: r.Flags&fi.More != 0}
	if m.Multi {
		m.MinFree = int(e.minMulti.Load())
	}
	if r.Src != fi.AddrUnspec && e.directed(r.Tagged) {
		if m.From, err = e.address(r.Src, c.name[:0]); err != nil {
			return refuse(Errno(err), "receive from address %d: %v", r.Src, err)
		}
	}
	if r.Flags&fi.Peek != 0 {
		return e.search(&o, m)
	}
	if r.Flags&fi.Discard != 0 {
		v, o.kind, o.buf = fi.IOVec{}, kindDiscard, 0
	}
	if v.Len != 0 {
		if m.Local, err = e.register("receive", &o, v, hw.LocalWrite); err != nil {
			return err
		}
	}
	if r.Flags&fi.Claim != 0 {
		return e.receiveClaimed(&o, m)
	}
	return e.post("receive", &o, func(context uint64) error {
		m.Context = context
		_, err := e.o.Matcher.PostReceive(m)
		return err
	}, m.More)
}

// Cancel takes back the oldest receive that was posted with a context, unless it has a message; it completes with
// fi.ECANCELED then. Errors: fi.EAGAIN, as Send's.
func (e *Endpoint) Cancel(context uint64) error {
	name, ok := e.ops.find(context)
	if !ok {
		return nil
	}
	if err := e.o.Matcher.CancelContext(name); err != nil && !errors.Is(err, hw.ErrInvalid) {
		return refused("cancel", err)
	}
	return nil
}
