package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/receive"
)

// RecvArgs describes one receive.
type RecvArgs struct {
	IOV     []fi.IOVec
	Src     fi.Addr
	Tag     uint64
	Ignore  uint64
	Flags   uint64
	Context uint64
	Tagged  bool
	On      Threshold // with fi.Trigger in Flags

	work uint64 // the number of the deferred work that this is, or 0
}

// recv is what package receive has of the arguments.
func (a *RecvArgs) recv() receive.Recv {
	return receive.Recv{
		IOV: a.IOV, Src: a.Src, Tag: a.Tag, Ignore: a.Ignore, Flags: a.Flags, Context: a.Context, Work: a.work,
		Tagged: a.Tagged,
	}
}

// postRecv validates a receive and pushes it on the post ring. Errors:
// fi.EAGAIN when the ring is full and another thread is making progress,
// fi.EBADFLAGS, fi.EINVAL.
func (r *rxContext) postRecv(a *RecvArgs) error {
	if r.owner != nil {
		return fi.ENOSYS // they are posted with the owner
	}
	m := a.recv()
	return r.receives.Post(&m)
}

func (r *rxContext) checkRecv(a *RecvArgs) error {
	m := a.recv()
	return r.receives.Check(&m)
}

// failRecv reports a receive that could not be posted.
func (r *rxContext) failRecv(a *RecvArgs, err fi.Errno) {
	l := r.acquire()
	defer l.give()
	m := a.recv()
	l.matching.Refuse(&m, err)
}

// PostRoom is how many receives the post ring has room for, a lower bound.
func (r *rxContext) PostRoom() uint64 { return r.receives.Room() }

// Ring wakes the progress thread after C has posted a receive. A search for which a thread sleeps is made at once.
func (r *rxContext) Ring() { r.receives.Notify() }

// receivePosting is a receive context as what posts receives has it.
type receivePosting struct{ r *rxContext }

// Try takes the progress lease.
func (h receivePosting) Try() *receive.Context {
	if l := h.r.take(); l != nil {
		return &l.matching
	}
	return nil
}

// Give gives the lease, after progress's last step.
func (h receivePosting) Give() { contextLease(h).Give() }

// Ring wakes the progress thread.
func (h receivePosting) Ring() { h.r.ring() }

// Wake has threads that sleep poll.
func (h receivePosting) Wake() { h.r.sleepers.wake() }
