package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// Reads and writes that the data plane leaves to the runtime. Memory of devices goes by mappings (rma_mapped.go) where
// it can, and else as package rma chooses.

// RMAArgs describes one read or write.
type RMAArgs struct {
	IOV     []fi.IOVec    // local memory
	Remote  []fi.RMAIOVec // the peer's, as long in all as IOV
	Dest    fi.Addr
	Data    uint64
	Flags   uint64 // of this operation: op_flags are merged in already where the call has no flags
	Context uint64
	Read    bool
	HasData bool      // Data goes with the write
	Inject  bool      // fi_inject_write forms: never a completion
	On      Threshold // with fi.Trigger in Flags

	work uint64 // as in SendArgs
}

// RMA posts one read or write. It returns nil when the operation was posted,
// and fi.EAGAIN when nothing happened and the caller may try again after
// progress. What the target refuses (an unknown key, a range or a right that
// the region does not have) comes back in an error completion. Other errors:
// fi.EOPBADSTATE (not enabled), fi.EBADFLAGS, fi.EINVAL (an address not in the
// AV, too many elements, lengths that differ, too long to inject),
// fi.EMSGSIZE, and those of a peer that cannot be reached. With fi.Trigger the
// operation is posted when a counter reaches a value.
func (e *Endpoint) RMA(a *RMAArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.base.domain.triggeredRMA(e, a)
	}
	err := e.rma(a)
	e.base.domain.work.PostReady()
	return err
}

// operation is what package rma has of the arguments.
func (a *RMAArgs) operation() rma.Operation {
	return rma.Operation{
		IOV: a.IOV, Remote: a.Remote, Dest: a.Dest, Data: a.Data, Flags: a.Flags, Context: a.Context, Work: a.work,
		Read: a.Read, HasData: a.HasData, Inject: a.Inject,
	}
}

func (e *Endpoint) rma(a *RMAArgs) error {
	op := a.operation()
	return access(e, &op, true)
}

// access posts a read or write. mappable: by mappings, if it can go so.
func access(e *Endpoint, op *rma.Operation, mappable bool) error {
	total, err := e.base.checkRMA(op)
	if err != nil {
		return err
	}
	l, p, err := e.base.peerFor(op.Dest, op.Flags)
	if err != nil {
		return err
	}
	defer l.Release()
	return accessOver(e, op, l, p, total, mappable)
}

// accessOver posts a read or write of total bytes, which is checked, over a path. The caller holds its link.
func accessOver(e *Endpoint, op *rma.Operation, l *link, p *path, total uint64, mappable bool) error {
	kind := ordering.Update
	if op.Read {
		kind = ordering.Read
	}
	if !e.base.inTurn(l, kind) {
		return fi.EAGAIN
	}
	if mappable && !op.Injects() {
		if done, err := postMapped(e, op, l, p, total); done {
			return e.base.broken(err)
		}
	}
	return e.base.rmas.Post(op, &l.Link, &p.Path, total)
}

// peerFor returns the path to an address for an operation with flags, and the
// link, which it holds for the caller unless there is an error. Errors as of
// Send.
func (e *initiator) peerFor(dest fi.Addr, flags uint64) (*link, *path, error) {
	l, err := e.linkOf(dest)
	if err != nil {
		return nil, nil, log.Reject(log.EPData, err, "operation to address %d: %v", dest, links.NoLink(err))
	}
	p, err := e.links.Connect(l)
	if err == nil && flags&fi.Fence != 0 && (l.Awaited() != 0 || e.pendings.To(dest)) {
		err = fi.EAGAIN
	}
	if err != nil {
		l.Release()
		return nil, nil, e.counts.Refused(err)
	}
	p.Via.Notify()
	e.links.Publish(dest, l, p)
	return l, p, nil
}

// checkRMA validates the arguments and returns the operation's length.
func (e *peering) checkRMA(op *rma.Operation) (uint64, error) {
	if e.state.Load() != stateEnabled {
		return 0, fi.EOPBADSTATE
	}
	return op.Check(rma.Limits{Most: e.size(fi.OptMaxRMASize), Inject: e.size(fi.OptInjectRMASize)})
}
