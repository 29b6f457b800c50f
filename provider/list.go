package provider

import (
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Lists of pieces of remote memory are package list's. What applications name of them:
type (
	// List is a read or write of many pieces of memory, prepared once by [Endpoint.NewList] and posted often.
	List = list.List
	// ListArgs describes a post of a list.
	ListArgs = list.Args
	// Way is how pieces of a list go.
	Way = list.Way
)

// The ways, the best first.
const (
	WayIPC     = list.WayIPC     // this side reads and writes the memory of the peer's process
	WayRDMA    = list.WayRDMA    // an RDMA device does
	WayMessage = list.WayMessage // the peer's process does, by messages
	ways       = list.Ways
)

// MaxElements is how many elements a list has at most.
const MaxElements = dataplane.MaxElements

// Piece is one entry of a list: Count elements of Len bytes each, at regular distances here
// and there.
type Piece struct {
	Local        uintptr // address of the first element; of device memory as Domain.Translate gives it
	LocalStride  uint64  // from one element to the next, bytes; 0: Len
	Remote       *Remote
	Addr         uint64 // of the first element, from RemoteInfo.Base on
	RemoteStride uint64 // as LocalStride
	Len          uint64 // bytes
	Count        uint64 // 0: one
}

// NewList prepares a list. Elements are numbered from 0 in the order of the pieces. Local memory must
// stay reachable, and where it is, until the list is closed.
//
// Errors: fi.EINVAL for no elements, for more than MaxElements, for pieces without a remote region,
// without local memory, or whose addresses wrap, and for regions of several owners;
// fi.EMSGSIZE for elements, or all of them together, longer than a message; fi.EACCES for elements beyond
// their region; fi.EDOMAIN for a region that another endpoint has opened; fi.EBADF for one that is closed; fi.ENOMEM.
func (e *Endpoint) NewList(list []Piece) (*List, error) {
	return e.NewListOf(len(list), func(i int, p *Piece) error {
		*p = list[i]
		return nil
	})
}

// NewListOf is NewList of n pieces, which at fills in one after the other, from zero. An error of at is
// returned, with the piece's number.
func (e *Endpoint) NewListOf(n int, at func(i int, p *Piece) error) (*List, error) {
	p, last := new(Piece), (*Remote)(nil) // last is the region that the piece has for lists
	l, err := e.base.lists.New(n, func(i int, to *list.Piece) error {
		*p = Piece{}
		if err := at(i, p); err != nil {
			return err
		}
		to.Local, to.LocalStride, to.Addr = uint64(p.Local), p.LocalStride, p.Addr
		to.RemoteStride, to.Len, to.Count = p.RemoteStride, p.Len, p.Count
		if p.Remote == last && last != nil {
			return nil
		}
		last = p.Remote
		return e.putRemote(p.Remote, to)
	})
	if err != nil {
		return nil, refuse(log.EPData, fi.ErrnoOf(err), "prepare a list: %v", err)
	}
	return l, nil
}

// putRemote makes a region, nil for none, that of a piece. fi.EDOMAIN: it is another endpoint's.
func (e *Endpoint) putRemote(r *Remote, to *list.Piece) error {
	switch {
	case r == nil:
		to.Region = nil
	case endpointOfRemote(r) != e:
		return fmt.Errorf("its remote region was opened by another endpoint: %w", fi.EDOMAIN)
	default:
		to.Region = r
	}
	return nil
}

// endpointOfRemote is the endpoint that has opened a region.
func endpointOfRemote(r *Remote) *Endpoint { return r.Of().(tokenEP).e }

// Describe makes Local, which is an address of memory that a descriptor names, what NewList takes. Errors
// as of Domain.Translate.
func (p *Piece) Describe(desc uint64) error {
	stride := p.LocalStride
	if stride == 0 {
		stride = p.Len
	}
	n, ok := pieces.Extent(uint64(p.Local), stride, p.Len, max(1, p.Count))
	if !ok || p.Remote == nil {
		return fmt.Errorf("%d elements of %d bytes at %#x: %w", p.Count, p.Len, p.Local, fi.EINVAL)
	}
	v := []fi.IOVec{{Base: p.Local, Len: n}}
	err := endpointOfRemote(p.Remote).base.domain.Translate(v, []uint64{desc})
	p.Local = v[0].Base
	return err
}

// listEndpoint is an endpoint as its lists need it.
type listEndpoint struct {
	commonEP
	list.ByDevice
}

func (l listEndpoint) Enabled() bool               { return l.e.base.state.Load() == stateEnabled }
func (l listEndpoint) Completes(flags uint64) bool { return l.e.base.bound.txCompletes(0, flags) }
func (l listEndpoint) Room() bool                  { return l.e.base.bound.txCQ.Room(0) }
func (l listEndpoint) Notes() list.Notes           { return &l.e.notes.Out }
func (l listEndpoint) Enter(op *list.Op)           { l.e.base.domain.work.AddSeries(op, &l.e.base.rx.deferred) }
func (l listEndpoint) PostReady()                  { l.e.base.domain.work.PostReady() }
func (l listEndpoint) Broken(err error) error      { return l.e.base.broken(err) }

// Complete completes a post, or counts its end.
func (l listEndpoint) Complete(entry *cq.Entry, status fi.Errno, completes, asked bool, total uint64) {
	e, failed := l.e, status != fi.Success
	switch {
	case failed && e.base.bound.txCQ != nil:
		e.base.bound.txCQ.CompleteError(*entry, cq.ErrorInfo{Err: status})
	case completes && !failed:
		e.base.bound.txCQ.Complete(*entry)
	}
	e.base.countWork(e.base.bound.accessCntr(entry.Flags), 0, asked, failed, total)
}

// Connect returns the link and the path for an operation.
func (l listEndpoint) Connect(addr fi.Addr, flags uint64) (list.Peer, list.Path, error) {
	to, p, err := l.e.base.peerFor(addr, flags)
	if err != nil {
		return nil, nil, err
	}
	return to, p, nil
}

// Ready returns the path over which a list's elements went, with its link, which it holds. fi.ECONNRESET: the path is
// lost, be that reported or not.
func (l listEndpoint) Ready(addr fi.Addr) (list.Peer, list.Path, error) {
	to, err := l.e.base.linkOf(addr)
	if err != nil {
		return nil, nil, err
	}
	p, ok := to.Ready()
	if !ok {
		to.Release()
		return nil, nil, fi.ECONNRESET
	}
	return to, p, nil
}

// Overtakes reports whether a copy would overtake what was written to the address before.
func (l listEndpoint) Overtakes(p list.Path, addr fi.Addr) bool {
	return l.e.base.links.PutPending(p.(*path).Endpoint, addr)
}

// listArgs are the arguments of an element's operation, which are used until the post returns.
type listArgs struct {
	rma.Operation
	iov    [1]fi.IOVec
	remote [1]fi.RMAIOVec
}

var spareArgs = sync.Pool{New: func() any { return new(listArgs) }}

// fill makes them the arguments of an element's operation.
func (args *listArgs) fill(o *list.Element) *rma.Operation {
	args.iov[0] = fi.IOVec{Base: uintptr(o.Local), Len: o.Len}
	args.remote[0] = fi.RMAIOVec{Addr: o.Remote, Len: o.Len, Key: o.Key}
	args.Operation = rma.Operation{
		IOV: args.iov[:], Remote: args.remote[:], Dest: o.Dest, Flags: o.Flags, Context: o.Context, Read: o.Read,
		Work: o.Work, Listed: o.Listed, Local: o.Registered, More: o.More, Later: o.Later,
	}
	return &args.Operation
}

// Single posts an operation of its own.
func (l listEndpoint) Single(o *list.Element) error {
	args := spareArgs.Get().(*listArgs)
	defer spareArgs.Put(args)
	return access(l.e, args.fill(o), true)
}

// Post posts an element over a path.
func (l listEndpoint) Post(to list.Peer, over list.Path, o *list.Element) error {
	args := spareArgs.Get().(*listArgs)
	defer spareArgs.Put(args)
	a := args.fill(o)
	total, err := l.e.base.checkRMA(a)
	if err != nil {
		return err
	}
	return accessOver(l.e, a, to.(*link), over.(*path), total, true)
}

// PostTogether posts elements as one request.
func (l listEndpoint) PostTogether(to list.Peer, over list.Path, r *list.Request) error {
	kind := ordering.Update
	if r.Read {
		kind = ordering.Read
	}
	if !l.e.base.inTurn(to.(*link), kind) {
		return fi.EAGAIN
	}
	return l.e.base.rmas.PostElements(r, &to.(*link).Link, &over.(*path).Path)
}

// Flush has what the path's device has written be in the peer's memory.
func (l listEndpoint) Flush(over list.Path, ended func(error)) (done bool, err error) {
	return l.e.base.rmas.FlushDevice(&over.(*path).Path, ended)
}

// Message is what messages over a path have room for.
func (l listEndpoint) Message(over list.Path) list.Message {
	return l.e.base.rmas.Message(&over.(*path).Path)
}

// Count counts elements that took a way.
func (l listEndpoint) Count(to list.Peer, w list.Way, elements, n uint64) {
	l.e.base.countWay(to.(*link), w, elements, n)
}

// Accessed counts memory that is about to be copied.
func (l listEndpoint) Accessed(sel pieces.Selection, total uint64, to list.Peer, over list.Path) {
	l.e.base.countPieces(sel, total, to.(*link), over.(*path))
}

// Shares reports whether the target may be offered a share. Not where a thread may sleep on a doorbell: the target
// rings none when it has completed its last chunk.
func (l listEndpoint) Shares(over list.Path) bool {
	return over.(*path).Rounds() != nil && l.e.base.transports.iface.DoorbellFD() < 0
}

// Reap ends operations whose targets have completed them.
func (l listEndpoint) Reap() { l.e.base.rmas.Reap() }

// Offer begins a round and offers it.
func (l listEndpoint) Offer(over list.Path, n uint64, h *wire.Share) (list.Round, bool) {
	return l.e.base.rmas.Offer(&over.(*path).Path, n, h)
}

// EndRound ends the open round.
func (l listEndpoint) EndRound(to list.Peer, over list.Path, s *list.Share, took uint64, err error) claim.Outcome {
	return l.e.base.rmas.EndRound(&to.(*link).Link, &over.(*path).Path, s, took, err)
}

// Map reaches regions by mappings.
func (l listEndpoint) Map(regions []list.Region, read bool, near uint64) list.Mapped {
	return l.e.base.domain.mappings.Map(regions, l.e.base.info.Caps&fi.HMEM != 0, read, near)
}

// Exported is the allocation of memory of a device.
func (l listEndpoint) Exported(addr, n uint64) (hmem.Exported, bool) {
	return l.e.base.domain.mappings.Exported(addr, n)
}

// Ask asks a process to copy.
func (l listEndpoint) Ask(pid int, q *wire.CopyRequest) error {
	_, err := hmem.Ask(pid, proxy.KindCopy, q.Append(nil))
	return err
}
