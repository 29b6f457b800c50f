package provider

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/token"
)

// Reads and writes with memory of a device, here or at a peer on this host. Such an operation is a post of a list that
// is made for it: the list chooses the way of each piece (package list), and mappings are kept, recalled and checked as
// for any list (provider/internal/list/mapped.go). If a piece cannot go so, all of the operation goes as messages.

// mappedOp is such an operation. The fields are immutable, but for what the vectors name.
type mappedOp struct {
	e     *Endpoint
	args  rma.Operation // with vectors of its own, for messages
	total uint64        // bytes
}

// postMapped posts an operation of total bytes by mappings. It reports false when the operation has to go in another
// way. Errors as of RMA.
func postMapped(e *Endpoint, a *rma.Operation, l *link, p *path, total uint64) (bool, error) {
	least := uint64(e.base.domain.cfg.HMEMMapSize)
	if a.Listed || !e.base.domain.hmem() || least == 0 || total < least {
		return false, nil
	}
	pieces := mappedList(e, a, p)
	if pieces == nil || e.base.links.PutPending(p.Endpoint, a.Dest) {
		return false, nil
	}
	completes := !a.Inject && e.base.bound.txCompletes(a.Work, a.Flags)
	if completes && !e.base.bound.txCQ.Room(0) {
		return true, fi.EAGAIN
	}
	op := &mappedOp{e: e, args: *a, total: total}
	op.args.IOV, op.args.Remote = slices.Clone(a.IOV), slices.Clone(a.Remote)
	return true, pieces.PostPlain(op, &ListArgs{Read: a.Read, Flags: a.Flags, Context: a.Context}, completes, l, p)
}

// mappedList makes the list of an operation's pieces, nil if there is no memory of a device, or some piece would go
// as a message.
func mappedList(e *Endpoint, a *rma.Operation, p *path) *List {
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
	remotes := make([]*Remote, len(a.Remote))
	for i := range a.Remote {
		remotes[i] = remoteOf(e, a, i, remotes, dir, peer.Instance().Cookie, ipc)
	}
	var room [2 * wire.IOVLimit]list.Piece
	l, ok := e.base.lists.NewPlain(piecesOf(a, room[:0], remotes))
	if !ok {
		return nil
	}
	return l
}

// piecesOf appends the pieces of an operation: what is in one local and one remote element.
func piecesOf(a *rma.Operation, all []list.Piece, remotes []*Remote) []list.Piece {
	at, used := 0, uint64(0) // of the local vector
	for i, r := range a.Remote {
		for done := uint64(0); done < r.Len; {
			v := a.IOV[at]
			n := min(v.Len-used, r.Len-done)
			if n != 0 {
				all = append(all, list.Piece{
					Local: uint64(v.Base) + used, Region: remotes[i], Addr: r.Addr + done, Len: n,
				})
			}
			done += n
			if used += n; used == v.Len {
				at, used = at+1, 0
			}
		}
	}
	return all
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
func remoteOf(
	e *Endpoint, a *rma.Operation, i int, before []*Remote, dir hw.KeyDirectory, incarnation uint64, ipc []byte,
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
	return tokens.ByKey(tokenEP{commonEP{e}}, a.Dest, about)
}

// Post posts the operation as messages.
func (o *mappedOp) Post(work uint64) error {
	a := o.args
	a.Inject, a.Work = false, work
	a.Flags &= fi.DeliveryComplete | fi.RemoteCQData
	return access(o.e, &a, false)
}

// Notify notifies the peer of a write with CQ data that is in place.
func (o *mappedOp) Notify(to list.Peer) error {
	if !o.args.WithData() {
		return nil
	}
	p, ok := to.(*link).Ready()
	if !ok {
		return fi.ECONNRESET
	}
	return rma.Notify(&o.args, &p.Path, o.total)
}

// Complete completes the operation. copied: it has not gone as messages.
func (o *mappedOp) Complete(status fi.Errno, completes, copied bool) {
	e, a := o.e, &o.args
	total := uint64(0)
	if status == fi.Success {
		total = o.total
		if copied {
			e.base.counts.Direct(a.Read, 1, o.total)
			e.base.stats.Shared(stats.SharedMapped, 1)
			e.base.stats.Shared(stats.SharedMappedBytes, o.total)
		}
	}
	rmaHost{e}.End(a.Ended(completes, status, total))
}

// endLists ends the reads and writes of an endpoint that closes: nothing of them is left to do, and no goroutine is at
// one. They do not complete. No list is open.
func (e *Endpoint) endLists() {
	e.base.domain.work.DropSeries(func(s deferred.Series) bool { return s.(*list.Op).Of(&e.base.lists) })
	if err := e.base.lists.Free(); err != nil {
		log.Warnf(log.EPCtrl, "endpoint %s: free batches of elements: %v", e.base.name, err)
	}
}
