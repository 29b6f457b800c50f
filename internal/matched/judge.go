package matched

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
)

// fault is what is wrong with the arguments of an operation.
type fault uint8

const (
	faultNone   fault = iota
	faultFlags        // it has flags that are not for it
	faultBuffer       // it has bytes at address 0
	faultLong         // it has more bytes than an operation may have
	faultInject       // it has more bytes than can be injected
	faultTag          // its tag has bits that the device does not match
	faultCaps         // the endpoint has not the capabilities
)

// rules are what operations of a kind are judged by.
type rules struct {
	what   string   // in the log
	flags  uint64   // that they may have
	direct uint64   // of them, those with which they need no more than to be kept
	caps   uint64   // that the endpoint has
	inject fi.Errno // what says that there are more bytes than can be injected
}

var (
	sendRules    = rules{"send", sendFlags, sendFlags, 0, fi.EINVAL}
	receiveRules = rules{"receive", receiveFlags, fi.Completion | fi.More, 0, fi.EINVAL}
	writeRules   = rules{"write", writeFlags, writeFlags, fi.RMA | fi.Write, fi.EMSGSIZE}
	readRules    = rules{"read", readFlags, readFlags, fi.RMA | fi.Read, fi.EMSGSIZE}
	atomicRules  = rules{"atomic", atomicFlags, atomicFlags, fi.Atomic | fi.Write, fi.EMSGSIZE}
	fetchRules   = rules{"fetching atomic", atomicFlags, atomicFlags, fi.Atomic | fi.Read, fi.EMSGSIZE}
)

// transferRules are those of a read or a write.
func transferRules(read bool) *rules {
	if read {
		return &readRules
	}
	return &writeRules
}

// atomicRulesOf are those of an atomic operation, with a result if it fetches.
func atomicRulesOf(fetches bool) *rules {
	if fetches {
		return &fetchRules
	}
	return &atomicRules
}

// faultOf judges an operation of one buffer, which may have these flags. Bits of ignore in its tag match anything. It
// needs nothing of the runtime.
func (e *Endpoint) faultOf(p *hot.Post, r *rules, flags, ignore uint64) fault {
	inject := p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0
	switch {
	case e.o.Caps&r.caps != r.caps:
		return faultCaps
	case p.Flags&^flags != 0:
		return faultFlags
	case p.Buf == 0 && p.Len != 0:
		return faultBuffer
	case p.Len > e.attr.MaxMessage:
		return faultLong
	case inject && p.Len > uint64(e.attr.MaxInject):
		return faultInject
	case p.Kind&hot.PostTagged != 0 && p.Header&^ignore&^e.attr.TagMask != 0:
		return faultTag
	}
	return faultNone
}

// judge is faultOf as an error, which it logs. Errors: fi.EBADFLAGS, fi.EINVAL, fi.EMSGSIZE, fi.EOPNOTSUPP.
func (e *Endpoint) judge(p *hot.Post, r *rules, ignore uint64) error {
	switch e.faultOf(p, r, r.flags|workFlag, ignore) {
	case faultCaps:
		return log.Reject(log.EPData, fi.EOPNOTSUPP, "%s: the endpoint has not the capabilities %#x", r.what, r.caps)
	case faultFlags:
		return log.Reject(log.EPData, fi.EBADFLAGS, "%s: flags %#x are not for it", r.what, p.Flags&^r.flags)
	case faultBuffer:
		return log.Reject(log.EPData, fi.EINVAL, "%s: %d bytes at address 0", r.what, p.Len)
	case faultLong:
		return log.Reject(log.EPData, fi.EMSGSIZE, "%s: %d bytes, at most %d", r.what, p.Len, e.attr.MaxMessage)
	case faultInject:
		return log.Reject(log.EPData, r.inject,
			"%s: %d bytes, at most %d are injected", r.what, p.Len, e.attr.MaxInject)
	case faultTag:
		return log.Reject(log.EPData, fi.EINVAL, "%s: tag %#x has bits beyond %#x", r.what, p.Header, e.attr.TagMask)
	}
	return nil
}

// kindOf are the bits of hot.Post.Kind.
func kindOf(tagged, data, inject bool) (kind uint32) {
	if tagged {
		kind = hot.PostTagged
	}
	if data {
		kind |= hot.PostData
	}
	if inject {
		kind |= hot.PostInject
	}
	return kind
}

// Operations that are posted later, when a counter has reached a value (fi_trigger(3)), are judged when they are
// queued.

// workFlag in an operation's flags says nothing here and comes back in Ended.Flags: the caller knows by it that the
// context is the number of deferred work.
const workFlag = fi.Trigger

// JudgeSend returns the errors of Send that do not depend on when it is called.
func (e *Endpoint) JudgeSend(s *Send) error {
	return e.checkSend(s, new(hot.Post))
}

// JudgeTransfer does so for Transfer.
func (e *Endpoint) JudgeTransfer(t *Transfer) error {
	return e.checkTransfer(t, new(hot.Post))
}

// JudgeAtomic does so for Atomic.
func (e *Endpoint) JudgeAtomic(a *Atomic) error {
	_, err := e.checkAtomic(a, new(hot.Post))
	return err
}

// JudgeReceive does so for Receive.
func (e *Endpoint) JudgeReceive(r *Receive) error {
	return e.checkReceive(r, new(hot.Post))
}

// Reaches returns the error of an operation with an address, fi.EINVAL or fi.EHOSTUNREACH, nil: there is a peer.
func (e *Endpoint) Reaches(what string, a fi.Addr) error {
	c := calls.Get().(*call)
	defer c.done()
	if _, err := e.o.Address(a, c.name[:0]); err != nil {
		return log.Reject(log.EPData, Errno(err), "%s at address %d: %v", what, a, err)
	}
	return nil
}
