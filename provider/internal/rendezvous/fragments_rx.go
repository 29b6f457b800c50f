package rendezvous

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Where the receiver cannot read the sender's memory (the kernel refuses, the transport has no gets, the receive is
// into device memory), a rendezvous goes through bounce buffers: the receiver asks for the payload (CTS), and the
// sender's progress streams it in fragments, as many at a time as it has buffers, while the receiver copies the earlier
// ones out.

// fragBroken in place of an offset says that the sender cannot go on.
const fragBroken = 1 << 63

// pull asks the sender for the payload in fragments.
func (p *Protocol) pull(op *operation) {
	if op.want == 0 {
		p.end(op)
		return
	}
	op.whole = true
	p.rx.wait(op)
	c := wire.CTS{Operation: op.id(), Length: op.want}
	p.ep.Answer(&op.Message, wire.AMCTS, c.Put(p.rx.head[:]))
}

// onFrag takes in a fragment. Fragments of one operation arrive in order.
func (p *Protocol) onFrag(src hw.Source, header uint64, head, payload []byte) {
	r := p.rx
	offset, ok := wire.ParseWord(head)
	index, known := r.waiting[header]
	if !ok || !known {
		p.ep.Malformed(src, "fragment of unknown operation %#x", header)
		return
	}
	op := r.ops.At(index)
	own := op.whole && op.endpoint == p.number && p.ep.IsFrom(src, &op.Message)
	if own && offset == fragBroken {
		op.status = fi.EIO
		p.end(op)
		return
	}
	if !own || offset != op.done || uint64(len(payload)) > op.want-op.done {
		p.ep.Malformed(src, "fragment of %d bytes at %d of operation %#x, which is at %d of %d", len(payload), offset,
			header, op.done, op.want)
		return
	}
	p.ep.Count(stats.RxFragments, 1)
	p.ep.Count(stats.RxFragmentBytes, uint64(len(payload)))
	for _, s := range op.Target.Segments(r.local[:0], op.done, uint64(len(payload))) {
		if err := hmem.Store(uint64(uintptr(s.Addr)), payload[:s.Len]); err != nil && op.status == fi.Success {
			log.Warnf(log.EPData, "copy %d bytes to a device: %v", s.Len, err)
			op.status = fi.EIO // later fragments are taken in and lost
		}
		payload = payload[s.Len:]
		op.done += uint64(s.Len)
	}
	if op.done == op.want {
		p.end(op)
	}
}
