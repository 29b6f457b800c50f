package rendezvous

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Device memory of a process of this host, mapped by the receiver, which copies from there once, where it would
// otherwise ask for fragments, each of which is copied from the device, through a bounce buffer, and to its place.

// mayMap reports whether the message of an RTS is to be read from a mapping of the sender's memory.
func (p *Protocol) mayMap(src hw.Source, rts *wire.RTS) bool {
	least := uint64(p.cfg.HMEMMapSize)
	return rts.Flags&wire.FlagShared != 0 && least != 0 && rts.Length >= least && p.ep.Reads(src) && p.ep.Maps()
}

// startForeign begins to fetch the memory of an RTS.
func (p *Protocol) startForeign(op *operation, rts *wire.RTS) {
	op.foreign = true
	p.rx.foreign[op.id()] = p.ep.Fetch(rts.PID, rts.Token, op.Target.First())
	p.rx.activate(op)
}

// stepForeign reads the next piece of an operation and reports whether progress is done with it.
func (p *Protocol) stepForeign(op *operation) bool {
	r := p.rx
	m := r.foreign[op.id()]
	switch ready, err := m.Ready(); {
	case !ready:
		return false
	case err == nil:
		if !m.Do(func(from Mapping) error { return p.copyForeign(op, from) }) {
			r.dropForeign(op)
			op.done = 0
			p.pull(op) // the owner says what has become of it
			return true
		}
	default:
		log.Infof(log.EPData, "device memory of %s is asked for in fragments: %v", p.ep.SenderOf(&op.Message), err)
		r.dropForeign(op)
		p.pull(op)
		return true
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	if op.status != fi.Success && p.senderGone(op) {
		op.status = fi.ECONNRESET // the allocation has gone with the process, of which the driver says nothing
	}
	p.end(op)
	return true
}

// senderGone reports whether the sender of an operation is there no more.
func (p *Protocol) senderGone(op *operation) bool {
	path, err := p.ep.Back(&op.Message)
	return err != nil || errors.Is(path.Check(), hw.ErrPeerDead)
}

// copyForeign copies the next piece of an operation. An error is the driver's; the operation has failed with it.
func (p *Protocol) copyForeign(op *operation, m Mapping) error {
	offset := op.iov[0].Addr
	if offset > m.Size() || op.want > m.Size()-offset {
		log.Warnf(log.EPData, "%s offers %d bytes at %d of %d", p.ep.SenderOf(&op.Message), op.want, offset, m.Size())
		op.status = fi.EIO
		return nil
	}
	n := min(op.want-op.done, Burst)
	for _, s := range op.Target.Segments(p.rx.local[:0], op.done, n) {
		if err := m.CopyTo(uint64(uintptr(s.Addr)), offset+op.done, uint64(s.Len)); err != nil {
			log.Warnf(log.EPData, "copy device memory of %s: %v", p.ep.SenderOf(&op.Message), err)
			op.status = fi.EIO
			return err
		}
		op.done += uint64(s.Len)
	}
	return nil
}

// dropForeign gives up what an operation has of the sender's memory.
func (r *Receiver) dropForeign(op *operation) {
	if op.foreign {
		r.foreign[op.id()].Drop()
		delete(r.foreign, op.id())
		op.foreign = false
	}
}
