package rma

import (
	"errors"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Where the transport reads and writes the peer's memory by itself, the
// posting thread does the operation and the peer's process has no part in it.
// That holds for regions that the peer has published: those whose accesses
// are not counted there. What cannot be done so goes as messages; so do short
// writes, which a peer that polls takes in faster than the kernel copies.

// DirectCaps are the abilities that it takes.
const DirectCaps = hw.CapPutZcopy | hw.CapGetZcopy | hw.CapNamedKeys | hw.CapOneSidedFree

// direct does an operation at once, if it can: it reports false when the
// operation has to go as messages. Errors as of RMA.
func (in *Initiator) direct(a *Operation, l *Link, p *Path, total uint64) (bool, error) {
	if p.On.Attr.Caps&DirectCaps != DirectCaps || a.Flags&fi.Fence != 0 || total == 0 ||
		!a.Read && total < hot.CopyMinWrite || hmem.AnyOnDevice(a.IOV) {
		return false, nil
	}
	if in.rules.On() && !in.carriedOut(l, p) {
		return false, nil
	}
	if in.host.Overtakes(p, a.Dest) {
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
	completes := in.completes(a)
	if completes && !in.host.Room() {
		return true, fi.EAGAIN
	}
	in.countRemote(a, l, p, total)
	outcome := claim.Alone
	if in.mayShare(a, p, total) {
		outcome = in.share(a, l, p, keys[0], completes)
	} else if in.delegate(a, l, p, total, completes) {
		outcome = claim.Part
	}
	switch outcome {
	case claim.Part:
		in.took(l, a.Listed, list.WayIPC, total)
		return true, nil
	case claim.Dead:
		return true, in.host.Broken(fi.ECONNRESET)
	case claim.Alone:
		if done, err := directParts(a, p, keys[:len(a.Remote)]); err != nil || !done {
			return err != nil, in.host.Broken(err)
		}
	}
	if a.WithData() {
		if err := Notify(a, p, total); err != nil {
			return true, in.host.Broken(err)
		}
	}
	in.took(l, a.Listed, list.WayIPC, total)
	in.end(a.Ended(completes, fi.Success, total))
	in.counts.Direct(a.Read, 1, total)
	return true, nil
}

// directParts does all parts of an operation. It reports false when the target
// has to say why that fails, or to do it.
func directParts(a *Operation, p *Path, keys []hw.RemoteKey) (bool, error) {
	done := uint64(0)
	for i, r := range a.Remote {
		err := directPart(a, p, &r, keys[i], done)
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
func directPart(a *Operation, p *Path, r *fi.RMAIOVec, key hw.RemoteKey, done uint64) error {
	d := directScratches.Get().(*directScratch)
	defer directScratches.Put(d)
	defer clear(d.local[:]) // the application's memory may be Go's, and be freed
	local := d.local[:0]
	for _, v := range vector.Window(d.pieces[:0], a.IOV, done, r.Len) {
		local = append(local, hw.Segment{Addr: mem.Pointer(uint64(v.Base)), Len: int(v.Len)})
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
func copyPart(a *Operation, p *Path, r *fi.RMAIOVec, done uint64) error {
	key, err := p.Endpoint.(hw.KeyDirectory).FindKey(r.Key)
	if err != nil {
		return err
	}
	return directPart(a, p, r, key, done)
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

// Notify sends the peer the notice of a write with CQ data that is in place.
func Notify(a *Operation, p *Path, total uint64) error {
	h := wire.Write{Key: a.Remote[0].Key, Flags: wire.WriteData | wire.WriteLast, Data: a.Data, Length: total}
	d := directScratches.Get().(*directScratch)
	defer directScratches.Put(d)
	return outcome.OfPost(p.AMShort(wire.AMNotify, a.Remote[0].Addr, h.Put(d.head[:]), nil))
}
