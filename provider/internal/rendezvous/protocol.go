package rendezvous

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Protocol is the protocol of an endpoint, and what the endpoint has under way in both directions.
type Protocol struct {
	sending
	ep     Host           // immutable
	cfg    *config.Config // immutable
	number uint32         // of the endpoint in its receive context
	rx     *Receiver      // of the context; nil before Attach
	rts    wire.RTS       // that is being handled

	shared   []claim.Rounds // with senders of this host, by hw.Source
	landings landings
	left     []Message // of an endpoint that closes, whose memory devices may be at
}

// Init prepares the protocol of an endpoint.
func (p *Protocol) Init(ep Host, cfg *config.Config) {
	p.ep, p.cfg = ep, cfg
	p.sending.ep = ep
}

// Attach has the endpoint, which has a number in it, deliver into a receive context. No message arrives before.
func (p *Protocol) Attach(r *Receiver, number uint32) {
	p.rx, p.number, p.shared = r, number, make([]claim.Rounds, p.cfg.MaxPeers)
	r.all = append(r.all, p)
}

// Handlers are those of the messages but ACK, which ends other transmits, too.
func (p *Protocol) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMRTS:     p.onRTS,
		wire.AMFrag:    p.onFrag,
		wire.AMHelped:  p.onHelped,
		wire.AMCTS:     p.onCTS,
		wire.AMAssist:  p.onAssist,
		wire.AMLanding: p.onLanding,
		wire.AMPut:     p.onPut,
	}
}

// Requested reports whether another thread has left something: no other thread comes here.
func (p *Protocol) Requested() bool { return false }

// PeerLost does nothing: requests of a peer that is gone end ([Protocol.Ended]).
func (p *Protocol) PeerLost(uint32, fi.Errno) {}

// onRTS has the endpoint match a message.
func (p *Protocol) onRTS(src hw.Source, header uint64, head, payload []byte) {
	if m := &p.rts; m.Parse(head) && p.ep.TakeKeys(src, m, payload) {
		p.ep.Arrived(src, header, m)
		return
	}
	p.ep.Malformed(src, "RTS of %d bytes does not parse", len(head))
}

// SourceLost ends what needs a sender that is gone as one of a transport's sources: the fragments that are missing, the
// puts of that source that are, and reads of its memory, before another has its place and its shared words. Gets end by
// themselves, and what is read in segments with its next one. A sender that has begun anew under its name, or that
// another transport reaches, is another source.
func (p *Protocol) SourceLost(src hw.Source) {
	r := p.rx
	for _, index := range r.waiting {
		op := r.ops.At(index)
		switch {
		case !p.has(op, src):
		case op.owed != 0:
			p.endOwed(op, fi.ECONNRESET)
		case op.keyed || !op.whole:
			op.lost = true
		default:
			op.status = fi.ECONNRESET
			p.end(op)
		}
	}
	if int(src) < len(p.shared) { // a peer on this host
		p.shared[src] = claim.Rounds{}
	}
	for i := r.active.head; i != 0; {
		op := r.ops.At(i)
		if p.has(op, src) {
			op.lost = true
		}
		i = op.next
	}
}

// has reports whether an operation is of the endpoint, and from a source.
func (p *Protocol) has(op *operation, src hw.Source) bool {
	return op.endpoint == p.number && op.Src == src
}

// Detach ends the operations of an endpoint that closes: it is not among those of the context any more. Receives into
// memory that a device may be at end with [Protocol.Abandon].
func (p *Protocol) Detach() {
	r := p.rx
	r.all = slices.DeleteFunc(r.all, func(o *Protocol) bool { return o == p })
	i := r.active.head
	r.active = list{}
	for i != 0 {
		op := r.ops.At(i)
		i = op.next
		if op.endpoint != p.number {
			r.activate(op)
			continue
		}
		p.abandonShared(op)
		delete(r.waiting, op.id()) // of one with a helper
		r.dropForeign(op)
		p.abandon(op)
	}
	for id, index := range r.waiting {
		if op := r.ops.At(index); op.endpoint == p.number {
			delete(r.waiting, id)
			p.abandon(op)
		}
	}
}

// abandon ends an operation whose endpoint closes.
func (p *Protocol) abandon(op *operation) {
	if op.keyed {
		p.left = append(p.left, op.Message)
	} else {
		p.ep.Abandon(&op.Message)
	}
	p.rx.ops.Free(op.index)
}

// Leaves reports whether Abandon has something to do.
func (p *Protocol) Leaves() bool { return len(p.left) != 0 }

// Abandon ends the receives that Detach has left. The endpoint's transports are closed, and so is the protocol: no
// device is at their memory.
func (p *Protocol) Abandon() {
	for i := range p.left {
		p.ep.Abandon(&p.left[i])
	}
	p.left = nil
}

// Close takes back what was registered for messages that an endpoint which is closed leaves under way.
func (p *Protocol) Close() {
	for _, regions := range p.landings {
		rkey.Close(regions)
	}
	p.landings = nil
}
