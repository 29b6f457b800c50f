package rendezvous

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// operation is a message whose payload is being read. It lies off the Go heap.
type operation struct {
	index    uint32 // in the slab
	gen      uint32 // with index, the id that fragments carry
	next     uint32 // in the active list
	endpoint uint32 // number
	status   fi.Errno
	waits    bool // for fragments, or for gets that are all posted: not in the active list but in Receiver.waiting
	keyed    bool // by gets
	whole    bool // not in segments: it comes in fragments
	foreign  bool // the memory of the sender's device is mapped
	lost     bool // the sender is gone
	Message
	want  uint64 // bytes to read: length, or less when the target is shorter
	done  uint64
	count uint32
	iov   [wire.IOVLimit]hw.RemoteSegment

	// of one whose copy is shared
	share bool   // it is to be offered to the sender before it is read
	taken bool   // all chunks are; then
	needs uint32 // the sender's count when it has completed those that it took, and
	back  uint64 // the first of them
	round uint64 // 0: not shared
	chunk uint64 // bytes

	// of one that is read by gets
	asked   uint64 // bytes for which gets were posted
	pending uint32 // gets under way
	landed  bool   // Protocol.landings has regions of the target
	open    bool   // into one of which the sender may put:
	help    helpState
	tail    uint64 // bytes at the end that are left to the sender
	owed    uint64 // bytes of those that it is at
	keys    [wire.IOVLimit]hw.RemoteKey
}

// id names the operation in messages. A late or forged one carries another generation and is refused.
func (op *operation) id() uint64 { return uint64(op.gen)<<32 | uint64(op.index) }

// Start makes the operation that reads a matched message, and takes its first step. False: there is no memory, and
// nothing has happened. rts is valid during the call.
func (p *Protocol) Start(m Message, rts *wire.RTS) bool {
	r := p.rx
	op, index := r.ops.Alloc()
	if op == nil {
		return false
	}
	r.gen++
	*op = operation{index: index, gen: r.gen, endpoint: p.number, Message: m, want: min(rts.Length, m.Target.Room()),
		count: rts.Count, iov: rts.IOV}
	switch {
	case op.want != 0 && p.mayMap(m.Src, rts):
		p.startForeign(op, rts)
		return true
	case rts.Flags&wire.FlagKeyed != 0 && p.ep.Gets(m.Src) && !m.Target.Device():
		op.keyed, op.keys = true, rts.Keys
	case rts.Flags&(wire.FlagNoGet|wire.FlagKeyed) != 0 || !p.ep.Reads(m.Src) || m.Target.Device():
		p.pull(op)
		return true
	default:
		op.share = !p.ep.Segmented(0, op.want) && p.shareable(op)
	}
	if p.ep.Offload() || !p.step(op, 1) {
		r.activate(op)
	}
	return true
}

// step reads the next piece of an operation and reports whether progress is done with it: it has ended, or waits.
// polls is that of stepShared.
func (p *Protocol) step(op *operation, polls int) bool {
	switch {
	case op.keyed:
		return p.stepGet(op)
	case op.lost:
		op.status = fi.ECONNRESET
		p.end(op)
		return true
	case op.share && !p.offer(op):
		return false
	case op.round != 0:
		return p.stepShared(op, polls)
	case op.foreign:
		return p.stepForeign(op)
	}
	return p.stepRead(op)
}

// end completes a message on both sides.
func (p *Protocol) end(op *operation) {
	r := p.rx
	clear(r.local[:]) // the application has its memory back, and may free it
	r.dropForeign(op) // before the sender may free it
	if op.landed {
		p.landings.drop(op)
	}
	if op.status == fi.Success {
		p.ep.Count(stats.RxRendezvous, 1)
		p.ep.Count(stats.RxRendezvousBytes, op.done)
	}
	p.ep.Complete(&op.Message, op.done, op.status)
	if op.waits || op.help != helpNone {
		delete(r.waiting, op.id())
	}
	r.ops.Free(op.index)
}

// wait has what is under way end an operation.
func (r *Receiver) wait(op *operation) {
	op.waits = true
	r.waiting[op.id()] = op.index
}
