package provider

import (
	"errors"
	"sync"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Where the transport reads and writes the peer's memory by itself, the
// posting thread does the operation and the peer's process has no part in it.
// That holds for regions that the peer has published: those whose accesses
// are not counted there. What cannot be done so goes as messages; so do short
// writes, which a peer that polls takes in faster than the kernel copies.

// directCaps are the abilities that it takes.
const directCaps = hw.CapPutZcopy | hw.CapGetZcopy | hw.CapNamedKeys | hw.CapOneSidedFree

// copyMax is the longest operation, in bytes, that C copies without asking here
// (dataplane.RMA), 0 for none: not what is kept in order, shared with the target,
// or cut into segments. How long it delays a thread that waits for threads that post
// (hot.Grace) is bounded.
func (e *peering) copyMax() uint64 {
	p := e.ports[0]
	if p.attr.Caps&directCaps != directCaps || e.orderedRMA() {
		return 0
	}
	return e.wholeMax(p, 1<<20, e.domain.cfg.RMAAssistSize)
}

// counted reports whether the endpoint counts what peers do to its memory: then
// they must notify it.
func (e *bindings) counted() bool {
	return e.remoteReadCntr.Load() != nil || e.remoteWriteCntr.Load() != nil
}

// direct does an operation at once, if it can: it reports false when the
// operation has to go as messages. Errors as of RMA.
func (e *initiator) direct(a *RMAArgs, l *link, p *path, total uint64) (bool, error) {
	if p.port.attr.Caps&directCaps != directCaps || a.Flags&fi.Fence != 0 || total == 0 ||
		!a.Read && total < hot.CopyMinWrite || hmem.AnyOnDevice(a.IOV) {
		return false, nil
	}
	if e.orderedRMA() && !e.carriedOut(l, p) {
		return false, nil
	}
	if e.putPending(p, a.Dest) {
		return false, nil
	}
	var keys [wire.IOVLimit]hw.RemoteKey
	dir := p.Endpoint.(hw.KeyDirectory)
	for i, r := range a.Remote {
		var err error
		if keys[i], err = dir.FindKey(r.Key); err != nil {
			return false, nil
		}
	}
	completes, room := e.roomFor(a)
	if !room {
		return true, fi.EAGAIN
	}
	e.countRemote(a, l, p, total)
	outcome := claim.Alone
	if e.mayShare(a, p, total) {
		outcome = e.share(a, l, p, keys[0], completes)
	} else if e.delegate(a, l, p, total, completes) {
		outcome = claim.Part
	}
	switch outcome {
	case claim.Part:
		l.countListed(e, a, nil, WayIPC, total)
		return true, nil
	case claim.Dead:
		return true, e.broken(fi.ECONNRESET)
	case claim.Alone:
		if done, err := e.directParts(a, p, keys[:len(a.Remote)]); err != nil || !done {
			return err != nil, e.broken(err)
		}
	}
	if a.hasData() {
		if err := e.notify(a, p, total); err != nil {
			return true, e.broken(err)
		}
	}
	l.countListed(e, a, nil, WayIPC, total)
	e.completeDirect(a, completes, total)
	e.counts.Direct(a.Read, total)
	return true, nil
}

// putPending reports whether writes or atomics to an address have completed that the
// target has not performed: a copy would overtake them.
func (e *peering) putPending(p *path, dest fi.Addr) bool {
	line := e.peers.At(e.av.Line(dest))
	return line != nil && e.iface.PutPending(p.Endpoint, line)
}

// directParts does all parts of an operation. It reports false when the target
// has to say why that fails, or to do it.
func (e *peering) directParts(a *RMAArgs, p *path, keys []hw.RemoteKey) (bool, error) {
	done := uint64(0)
	for i, r := range a.Remote {
		err := e.directPart(a, p, &r, keys[i], done)
		switch {
		case err == nil:
		case errors.Is(err, hw.ErrPeerDead):
			return false, fi.ECONNRESET
		default: // refused or not possible
			return false, nil
		}
		done += r.Len
	}
	return true, nil
}

// directPart does the part of an operation on one remote element, which begins
// at byte done of the operation.
func (e *peering) directPart(a *RMAArgs, p *path, r *fi.RMAIOVec, key hw.RemoteKey, done uint64) error {
	d := directScratches.Get().(*directScratch)
	defer directScratches.Put(d)
	defer clear(d.local[:]) // the application's memory may be Go's, and be freed
	local := d.local[:0]
	for _, v := range vector.Window(d.pieces[:0], a.IOV, done, r.Len) {
		local = append(local, hw.Segment{Addr: pointerAt(uint64(v.Base)), Len: int(v.Len)})
	}
	var err error
	if a.Read {
		_, err = p.Endpoint.(hw.OneSided).GetZcopy(local, r.Addr, key, nil)
	} else {
		_, err = p.Endpoint.(hw.OneSided).PutZcopy(local, r.Addr, key, nil)
	}
	return err
}

// copyPart is directPart of an element whose key it finds.
func (e *peering) copyPart(a *RMAArgs, p *path, r *fi.RMAIOVec, done uint64) error {
	key, err := p.Endpoint.(hw.KeyDirectory).FindKey(r.Key)
	if err != nil {
		return err
	}
	return e.directPart(a, p, r, key, done)
}

// directScratch is what a posting thread, which holds no stripe here, hands to the
// transport. It comes from a pool, because what goes through an interface's
// method would be allocated each time.
type directScratch struct {
	pieces [wire.IOVLimit]fi.IOVec
	local  [wire.IOVLimit]hw.Segment
	head   [wire.WriteDataBytes]byte
}

var directScratches = sync.Pool{New: func() any { return new(directScratch) }}

// notify sends the peer the notice of a write with CQ data that is in place.
func (e *peering) notify(a *RMAArgs, p *path, total uint64) error {
	h := wire.Write{Key: a.Remote[0].Key, Flags: wire.WriteData | wire.WriteLast, Data: a.Data, Length: total}
	d := directScratches.Get().(*directScratch)
	defer directScratches.Put(d)
	return outcome.OfPost(p.AMShort(wire.AMNotify, a.Remote[0].Addr, h.Put(d.head[:]), nil))
}

// completeDirect completes an operation of n bytes that is done.
func (e *initiator) completeDirect(a *RMAArgs, completes bool, n uint64) {
	counter := e.reportAccess(a.Context, rmaKind(a.Read), completes, fi.Success)
	e.countEnd(counter, a.work, a.Flags&fi.Completion != 0, false, n)
}

// rmaKind is what the completion of a read or a write says.
func rmaKind(read bool) uint64 {
	if read {
		return fi.RMA | fi.Read
	}
	return fi.RMA | fi.Write
}

// accessCntr is the counter of one-sided operations whose completions have flags, nil for none.
func (e *bindings) accessCntr(flags uint64) *cq.Counter {
	if flags&fi.Read != 0 {
		return e.readCntr.Load()
	}
	return e.writeCntr.Load()
}

// reportAccess writes the completion, with flags, of a one-sided operation that has ended, if it completes or has
// failed, and returns the counter that counts it.
func (e *peering) reportAccess(context, flags uint64, completes bool, status fi.Errno) *cq.Counter {
	entry := cq.Entry{Context: context, Flags: flags, Src: fi.AddrNotAvail}
	if status != fi.Success {
		e.counts.Failed(status)
		if e.txCQ != nil {
			e.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	} else if completes {
		e.txCQ.Complete(entry)
	}
	return e.accessCntr(flags)
}
