package provider

import (
	"errors"
	"os"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/wire"
)

// Memory of devices that other processes have registered, mapped by this one. The receiver of a large message copies
// from there once, where it would otherwise ask for fragments, each of which is copied from the device, through a
// bounce buffer, and to its place.

// The descriptor thread answers about regions.
func init() {
	hmem.Answer(proxy.KindRegion, answerRegion)
	hmem.Answer(proxy.KindCopy, answerCopy)
}

// ipcLimits are how much memory of other processes is mapped at a time.
func (d *Domain) ipcLimits() cuda.Limits {
	return cuda.Limits{Entries: d.cfg.IPCCache, Bytes: uint64(d.cfg.IPCCacheSize)}
}

// exportedAt returns the allocation that n bytes at addr lie in, which others may map from now on. false: they
// cannot.
func (d *Domain) exportedAt(addr, n uint64) (x hmem.Exported, ok bool) {
	if d.cfg.Service == config.No {
		return x, false
	}
	return hmem.ExportedAt(addr, n, d.cfg.PeerTimeout)
}

// shareFor returns the token of the allocation that n bytes at addr lie in, and
// where in it. false: other processes cannot map it.
func (d *Domain) shareFor(addr, n uint64) (token, offset uint64, ok bool) {
	x, ok := d.exportedAt(addr, n)
	return x.Token, addr - x.Base, ok
}

// deviceRTS completes the RTS of a message in device memory.
func (e *peering) deviceRTS(r *wire.RTS, s *SendArgs, p *path) {
	r.Flags |= wire.FlagNoGet
	least := uint64(e.domain.cfg.HMEMMapSize)
	if len(s.IOV) != 1 || p.port.attr.Caps&hw.CapPeerMemory == 0 || least == 0 || r.Length < least ||
		e.p2p.Load() == fi.HMEMP2PDisabled {
		return
	}
	if token, offset, ok := e.domain.shareFor(uint64(s.IOV[0].Base), r.Length); ok {
		r.Flags |= wire.FlagShared
		r.IOV[0].Addr, r.Token, r.PID = offset, token, uint32(os.Getpid())
	}
}

// mayMap reports whether the message of an RTS is to be read from a mapping of the sender's memory.
func (e *peering) mayMap(src hw.Source, rts *wire.RTS) bool {
	least := uint64(e.domain.cfg.HMEMMapSize)
	return rts.Flags&wire.FlagShared != 0 && least != 0 && rts.Length >= least &&
		e.reads(src) && e.p2p.Load() != fi.HMEMP2PDisabled
}

// startForeign begins to fetch the memory of an RTS.
func (r *leasedRx) startForeign(e *Endpoint, op *recvOp, rts *wire.RTS) {
	op.foreign = true
	a := cuda.Foreign{PID: int(rts.PID), Token: rts.Token}
	near, device := op.t.First(), e.info.Caps&fi.HMEM != 0 && cuda.Load() == nil
	r.foreign[op.id()] = e.domain.importer.Fetch(a, e.domain.ipcLimits(), near, device, r.ring)
	r.activate(op)
}

// stepForeign reads the next piece of an operation and reports whether progress is
// done with it.
func (r *leasedRx) stepForeign(e *leasedEP, op *recvOp) bool {
	m := r.foreign[op.id()]
	switch ready, err := m.Ready(); {
	case !ready:
		return false
	case err == nil:
		if !m.Do(func(from *hmem.Mapping) error { return r.copyForeign(op, from) }) {
			r.dropForeign(op)
			op.done = 0
			r.pull(e, op) // the owner says what has become of it
			return true
		}
	default:
		log.Infof(log.EPData, "device memory of %s is asked for in fragments: %v", r.addressOf(op.sender()), err)
		r.dropForeign(op)
		r.pull(e, op)
		return true
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	if op.status != fi.Success && r.senderGone(e, op) {
		op.status = fi.ECONNRESET // the allocation has gone with the process, of which the driver says nothing
	}
	r.finishOp(e, op)
	return true
}

// senderGone reports whether the sender of an operation is there no more.
func (r *leasedRx) senderGone(e *leasedEP, op *recvOp) bool {
	p, err := e.connectBack(hw.Source(op.src), op.sender())
	return err != nil || errors.Is(p.Check(), hw.ErrPeerDead)
}

// copyForeign copies the next piece of an operation. An error is the driver's; the operation has failed with it.
func (r *leasedRx) copyForeign(op *recvOp, m *hmem.Mapping) error {
	offset := op.iov[0].Addr
	if offset > m.Size() || op.want > m.Size()-offset {
		log.Warnf(log.EPData, "%s offers %d bytes at %d of %d", r.addressOf(op.sender()), op.want, offset, m.Size())
		op.status = fi.EIO
		return nil
	}
	n := min(op.want-op.done, getChunk)
	for _, s := range op.t.Segments(r.local[:0], op.done, n) {
		if err := m.CopyTo(uint64(uintptr(s.Addr)), offset+op.done, uint64(s.Len)); err != nil {
			log.Warnf(log.EPData, "copy device memory of %s: %v", r.addressOf(op.sender()), err)
			op.status = fi.EIO
			return err
		}
		op.done += uint64(s.Len)
	}
	return nil
}

// dropForeign gives up what an operation has of the sender's memory.
func (r *leasedRx) dropForeign(op *recvOp) {
	if op.foreign {
		r.foreign[op.id()].Drop()
		delete(r.foreign, op.id())
		op.foreign = false
	}
}
