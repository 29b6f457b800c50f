package matched

import (
	"github.com/weft-fabric/weft/fi"
)

// Operations that are posted later, when a counter has reached a value (fi_trigger(3)), are judged when they are
// queued.

// workFlag in an operation's flags says nothing here and comes back in Ended.Flags: the caller knows by it that the
// context is the number of deferred work.
const workFlag = fi.Trigger

// JudgeSend returns the errors of Send that do not depend on when it is called.
func (e *Endpoint) JudgeSend(s *Send) error {
	v, err := one("send", s.IOV)
	if err != nil {
		return err
	}
	return e.checkSend(s, v)
}

// JudgeTransfer does so for Transfer.
func (e *Endpoint) JudgeTransfer(t *Transfer) error {
	_, _, err := e.checkTransfer(t.what(), t)
	return err
}

// JudgeAtomic does so for Atomic.
func (e *Endpoint) JudgeAtomic(a *Atomic) error { return e.checkAtomic(a) }

// JudgeReceive does so for Receive.
func (e *Endpoint) JudgeReceive(r *Receive) error {
	v, err := one("receive", r.IOV)
	if err != nil {
		return err
	}
	return e.checkReceive(r, v)
}

// Reaches returns the error of an operation with an address, fi.EINVAL or fi.EHOSTUNREACH, nil: there is a peer.
func (e *Endpoint) Reaches(what string, a fi.Addr) error {
	c := calls.Get().(*call)
	defer c.done()
	if _, err := e.o.Address(a, c.name[:0]); err != nil {
		return refuse(Errno(err), "%s at address %d: %v", what, a, err)
	}
	return nil
}
