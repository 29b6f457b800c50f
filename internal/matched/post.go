package matched

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
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
		return v, log.Reject(log.EPData, fi.EINVAL, "%s: %d elements, at most 1", what, len(iov))
	case len(iov) == 1:
		v = iov[0]
	}
	return v, nil
}

// checkSend judges a send, and stores it in p.
func (e *Endpoint) checkSend(s *Send, p *hot.Post) error {
	v, err := one("send", s.IOV)
	if err != nil {
		return err
	}
	p.Buf, p.Len, p.Dest, p.Header, p.Data = v.Base, v.Len, uint64(s.Dest), s.Tag, s.Data
	p.Flags, p.Context, p.Kind = s.Flags, s.Context, kindOf(s.Tagged, s.HasData, s.Inject)
	return e.judge(p, &sendRules, 0)
}

// sending is a send to a peer.
func sending(p *hot.Post, to hw.MatchAddress) operation {
	return operation{kind: kindSend, to: to, tagged: p.Kind&hot.PostTagged != 0, context: p.Context, flags: p.Flags,
		inject: p.Kind&hot.PostInject != 0, len: p.Len}
}

// Send posts a message. Errors: fi.EAGAIN (nothing happened, the caller may try again after progress), fi.EBADFLAGS,
// fi.EINVAL, fi.EMSGSIZE, fi.EHOSTUNREACH.
func (e *Endpoint) Send(s *Send) error {
	c := calls.Get().(*call)
	defer c.done()
	p := &c.post
	if err := e.checkSend(s, p); err != nil {
		return err
	}
	to, err := e.address(s.Dest, c.name[:0])
	if err != nil {
		return log.Reject(log.EPData, Errno(err), "send to address %d: %v", s.Dest, err)
	}
	o := sending(p, to)
	o.hint = c.hint
	m := &c.send
	*m = hw.MatchSend{To: to, Tagged: s.Tagged, Tag: s.Tag, Data: s.Data, HasData: s.HasData,
		Matched: s.Flags&fi.MatchComplete != 0, More: s.Flags&fi.More != 0}
	if m.Inject, m.Local, err = e.bring("send", &o, uint64(p.Buf)); err != nil {
		return err
	}
	return e.post("send", &o, func(context uint64) error {
		m.Context = context
		return e.o.Matcher.PostMatched(m)
	}, m.More)
}

// bring gives the bytes of an operation at an address to the device, or has it store them there. Errors: as
// register's.
func (e *Endpoint) bring(what string, o *operation, addr uint64) (inject []byte, local hw.Segment, err error) {
	switch e.way(o.kind, o.len) {
	case wayNone:
		return nil, local, nil
	case wayInline:
		return mem.Bytes(addr, o.len), local, nil
	case wayCopied:
		if o.copied = e.ops.copy(o.hint); o.copied != 0 {
			return nil, e.copies.segment(o.copied, addr, o.len), nil
		}
	}
	local, err = e.register(what, o, fi.IOVec{Base: uintptr(addr), Len: o.len}, o.kind.access())
	return nil, local, err
}

// post enters an operation and gives it to the device. With fi.Fence none before it to the same peer is under way then.
func (e *Endpoint) post(what string, o *operation, give func(context uint64) error, more bool) error {
	if e.placeless(o) {
		e.share(false)
		if err := give(o.sharedContext()); err != nil {
			e.unshare()
			return refused(what, err)
		}
		e.more(more)
		return nil
	}
	fence := o.flags&fi.Fence != 0
	if fence && e.shares() && e.memory.SharedUnderway(o.to) {
		e.awaitShared(true)
		e.release(o)
		return fi.EAGAIN
	}
	context, ok := e.ops.add(o)
	if !ok { // there is no room, or what was posted before is to end first
		e.release(o)
		return fi.EAGAIN
	}
	if fence {
		e.awaitShared(false)
	}
	if err := give(context); err != nil {
		e.drop(context)
		return refused(what, err)
	}
	e.more(more)
	return nil
}

// checkReceive judges a receive, and stores it in p.
func (e *Endpoint) checkReceive(r *Receive, p *hot.Post) error {
	var v fi.IOVec
	if r.Flags&hot.RecvNoBuffer == 0 {
		var err error
		if v, err = one("receive", r.IOV); err != nil {
			return err
		}
	}
	p.Buf, p.Len, p.Dest, p.Header, p.Data = v.Base, v.Len, uint64(r.Src), r.Tag, r.Ignore
	p.Flags, p.Context, p.Kind = r.Flags, r.Context, kindOf(r.Tagged, false, false)
	if err := e.judge(p, &receiveRules, r.Ignore); err != nil {
		return err
	}
	multi, search := r.Flags&fi.MultiRecv != 0, r.Flags&searchFlags
	switch {
	case search == fi.Discard:
		return log.Reject(log.EPData, fi.EBADFLAGS, "receive: FI_DISCARD needs FI_PEEK or FI_CLAIM")
	case search == searchFlags:
		return log.Reject(log.EPData, fi.EBADFLAGS, "receive: FI_CLAIM and FI_DISCARD exclude each other in a peek")
	case search&(fi.Claim|fi.Discard) != 0 && e.claimer == nil:
		return log.Reject(log.EPData, fi.EOPNOTSUPP,
			"receive: the device neither claims nor discards messages (flags %#x)", r.Flags)
	case multi && (r.Tagged || search != 0):
		return log.Reject(log.EPData, fi.EINVAL, "receive: FI_MULTI_RECV is for untagged messages")
	case multi && (v.Len == 0 || v.Len < e.minMulti.Load()):
		return log.Reject(log.EPData, fi.ETOOSMALL,
			"receive: multi-receive buffer of %d bytes, at least %d", v.Len, e.minMulti.Load())
	}
	return nil
}

// receiving is a receive.
func receiving(p *hot.Post) operation {
	return operation{kind: kindReceive, tagged: p.Kind&hot.PostTagged != 0, context: p.Context, flags: p.Flags,
		buf: uint64(p.Buf), len: p.Len, tag: p.Header}
}

// Receive posts a receive, or searches with fi.Peek. Errors: as Send's, and fi.ETOOSMALL for a buffer of many messages,
// fi.EOPNOTSUPP for fi.Claim and fi.Discard where the device sets no messages aside, fi.ENOMSG for a receive with
// fi.Claim and the context of no such message.
func (e *Endpoint) Receive(r *Receive) error {
	c := calls.Get().(*call)
	defer c.done()
	p := &c.post
	err := e.checkReceive(r, p)
	if err != nil {
		return err
	}
	o := receiving(p)
	o.hint = c.hint
	m := &c.receive
	*m = hw.MatchReceive{From: hw.AnyAddress, Tagged: r.Tagged, Tag: r.Tag & e.attr.TagMask,
		Ignore: r.Ignore & e.attr.TagMask, Multi: r.Flags&fi.MultiRecv != 0, More: r.Flags&fi.More != 0}
	if m.Multi {
		m.MinFree = int(e.minMulti.Load())
	}
	if r.Src != fi.AddrUnspec && e.directed(r.Tagged) {
		if m.From, err = e.address(r.Src, c.name[:0]); err != nil {
			return log.Reject(log.EPData, Errno(err), "receive from address %d: %v", r.Src, err)
		}
	}
	if r.Flags&fi.Peek != 0 {
		return e.search(&o, m)
	}
	if r.Flags&fi.Discard != 0 {
		o.kind, o.buf = kindDiscard, 0
	}
	if _, m.Local, err = e.bring("receive", &o, o.buf); err != nil {
		return err
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
