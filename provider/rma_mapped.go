package provider

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/deferred"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/rendezvous"
	"github.com/weft-fabric/weft/provider/token"
)

// Reads and writes with memory of a device, here or at a peer on this host. Such an operation is a post of a list that
// is made for it: the list chooses the way of each piece (list.go), and mappings are kept, recalled and checked as for
// any list (list_mapped.go, list_delegated.go). If a piece cannot go so, all of the operation goes as messages.

// plainOp is what a post of a list has if it is a read or write.
type plainOp struct {
	args     RMAArgs // with vectors of its own, for messages
	posted   bool    // as messages
	notified bool    // the peer, of CQ data
}

// postMapped posts an operation of total bytes by mappings. It reports false when the operation has to go in another
// way. Errors as of RMA.
func (a *RMAArgs) postMapped(e *Endpoint, l *link, p *path, total uint64) (bool, error) {
	least := uint64(e.domain.cfg.HMEMMapSize)
	if a.listed || a.unmapped || !e.domain.hmem() || least == 0 || total < least {
		return false, nil
	}
	list := a.asList(e, p)
	if list == nil || !list.mapped || e.putPending(p, a.Dest) {
		return false, nil
	}
	completes, room := e.roomFor(a)
	if !room {
		return true, fi.EAGAIN
	}
	op := &listOp{
		list: list, sel: list.all(), total: total, completes: completes,
		args:  ListArgs{Read: a.Read, Flags: a.Flags, Context: a.Context},
		plain: &plainOp{args: *a},
	}
	op.plain.args.IOV, op.plain.args.Remote = slices.Clone(a.IOV), slices.Clone(a.Remote)
	op.first.Store(noFailure)
	all := list.all()
	return true, op.move(&all, l, p)
}

// asList makes the list of an operation's pieces, nil if there is no memory of a device, or some piece would go
// as a message.
func (a *RMAArgs) asList(e *Endpoint, p *path) *List {
	dir, known := p.Endpoint.(hw.KeyDirectory)
	peer, here := p.Endpoint.(hw.Instanced)
	if !known || !here {
		return nil
	}
	device := hmem.AnyOnDevice(a.IOV)
	for _, r := range a.Remote {
		device = device || dir.OfDevice(r.Key)
	}
	if !device {
		return nil
	}
	ipc, ok := ipcOf(peer.Instance())
	if !ok {
		return nil
	}
	l := &List{ep: e, addr: fi.AddrNotAvail}
	l.shape.Flat, l.shape.Read, l.shape.Write = true, true, true
	remotes := make([]*Remote, len(a.Remote))
	for i := range a.Remote {
		remotes[i] = a.remoteOf(e, i, remotes, dir, peer.Instance().Cookie, ipc)
	}
	at, used := 0, uint64(0) // of the local vector
	for i, r := range a.Remote {
		for done := uint64(0); done < r.Len; {
			v := a.IOV[at]
			n := min(v.Len-used, r.Len-done)
			piece := Piece{Local: v.Base + uintptr(used), Remote: remotes[i], Addr: r.Addr + done, Len: n}
			if n != 0 && l.add(&piece) != nil {
				return nil
			}
			done += n
			if used += n; used == v.Len {
				at, used = at+1, 0
			}
		}
	}
	for i := range l.shape.Runs {
		if !l.shape.Runs[i].Direct && !l.shape.Runs[i].Mapped {
			return nil
		}
	}
	return l
}

// ipcOf is how a token would name a peer's process.
func ipcOf(peer hw.Instance) ([]byte, bool) {
	h, err := proc.This()
	if err != nil || peer.PID == 0 {
		return nil, false
	}
	t := token.IPC{BootID: h.BootID, PIDNS: h.PIDNS, NetNS: peer.NetNS, PID: uint32(peer.PID)}
	return t.Append(nil), true
}

// remoteOf is what a token would say of the region of remote element i, as far as the operation needs it. Elements
// with one key have one.
func (a *RMAArgs) remoteOf(
	e *Endpoint, i int, before []*Remote, dir hw.KeyDirectory, incarnation uint64, ipc []byte,
) *Remote {
	first, last := a.Remote[i].Addr, a.Remote[i].Addr
	for j, r := range a.Remote {
		if r.Key != a.Remote[i].Key {
			continue
		}
		if j < i {
			return before[j]
		}
		first, last = min(first, r.Addr), max(last, r.Addr+r.Len)
	}
	about := token.Token{
		Incarnation: incarnation, Key: a.Remote[i].Key, Base: first, Length: last - first,
		Rights: token.Read | token.Write,
		Parts:  []token.Part{{Type: token.PartIPC, Body: ipc}},
	}
	if dir.OfDevice(about.Key) {
		about.Kind = token.CUDA
	}
	return &Remote{ep: e, addr: a.Dest, about: about, byKey: true}
}

// pumpPlain goes on with a read or write, of which all is copied or nothing is. It reports false when there is no room.
// The caller runs the work queue.
func (op *listOp) pumpPlain() bool {
	e, o := op.list.ep, op.plain
	if op.sel.Len() != 0 && op.first.Load() == noFailure && !o.posted {
		a := o.args
		a.unmapped, a.Inject, a.work = true, false, listBit|uint64(op.slot)<<elementBits
		a.Flags &= fi.DeliveryComplete | fi.RemoteCQData
		op.pending.Add(1)
		o.posted = true
		if err := e.rma(&a); err != nil {
			op.pending.Add(-1)
			if fi.ErrnoOf(err) == fi.EAGAIN {
				o.posted = false
				return false
			}
			op.fail(0, fi.ErrnoOf(err))
		}
	}
	if o.args.hasData() && !o.posted && !o.notified && op.first.Load() == noFailure {
		if err := op.notifyData(); fi.ErrnoOf(err) == fi.EAGAIN {
			return false
		} else if err != nil {
			op.fail(0, fi.ErrnoOf(err))
		}
		o.notified = true
	}
	if op.pending.Add(-1) == 0 {
		op.finish()
	}
	return true
}

// notifyData notifies the peer of a write with CQ data that is in place.
func (op *listOp) notifyData() error {
	p, ok := op.link.ready()
	if !ok {
		return fi.ECONNRESET
	}
	return op.list.ep.notify(&op.plain.args, p, op.total)
}

// completePlain completes a read or write.
func (op *listOp) completePlain(status fi.Errno) {
	e, a := op.list.ep, &op.plain.args
	if status != fi.Success {
		a.fail(&e.initiator, status)
		return
	}
	if !op.plain.posted {
		e.counts.Direct(a.Read, op.total)
		e.stats.Shared(stats.SharedMapped, 1)
		e.stats.Shared(stats.SharedMappedBytes, op.total)
	}
	e.completeDirect(a, op.completes, op.total)
}

// fail completes an operation with an error.
func (a *RMAArgs) fail(e *initiator, status fi.Errno) {
	counter := e.reportAccess(a.Context, rmaKind(a.Read), false, status)
	e.countEnd(counter, a.work, a.Flags&fi.Completion != 0, true, 0)
}

// rest has no further pieces copied, and waits until no goroutine is at an operation. False: one is still after
// rendezvous.AbandonTime. The process that it waits for may be stopped, and copies what it is at when it goes on, so
// the memory is not the application's yet.
func (o *listOps) rest() bool {
	o.halt()
	for end := time.Now().Add(rendezvous.AbandonTime); o.copying.Load() != 0; time.Sleep(restPause) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// restPause is the pause between two loads of rest.
const restPause = 100 * time.Microsecond

// end ends the reads and writes of an endpoint that closes: nothing of them is left to do, and no goroutine is at
// one, as rest says. They do not complete. No list is open.
func (o *listOps) end(e *Endpoint) {
	e.domain.work.DropSeries(func(s deferred.Series) bool { return s.(*listOp).list.ep == e })
	if err := o.batches.Free(); err != nil {
		log.Warnf(log.EPCtrl, "endpoint %s: free batches of elements: %v", e.name, err)
	}
}

// halt has no further pieces of operations copied.
func (o *listOps) halt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.slots {
		if op != nil {
			op.halted.Store(true)
		}
	}
}
