package rendezvous

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A device that is software (soft-RoCE) has the initiator's processor copy
// what it moves. The receiver of a long message gets it at the speed of one processor, and
// the sender's does nothing but wait for the end. So the receiver says where the message
// lands, gets chunks from the front, and leaves the last ones to the sender, one at a time:
//
//	receiver                             sender
//	   landing              →
//	                        ←               helped: waits for a put to do
//	   put of the last chunk →
//	   gets the first                       puts the last
//	                        ←               helped: it is there
//	   put of the last but one, and so on
//
// A sender that computes does not answer, and the receiver gets all. One that answers and
// computes then has the message wait for one chunk. Between processes of a host that share
// memory the two claim chunks by words there (shared_rx.go).

// helpState is how far the sender of a message is with its help.
type helpState uint8

const (
	helpNone  helpState = iota
	helpAsked           // it knows where the message lands
	helpReady           // it waits for a put to do
	helpBusy            // it is at one
)

// HelpedGets is how many gets of a message with a helper are under way: one that the device
// is at, and those by which it does not wait for this process.
const HelpedGets = 4

// openLanding registers the target of an operation that its sender could help with so that the sender may write there,
// and reports false if there is none or no room. It is a region of its own, of these bytes only and until the operation
// ends: what is kept for later transfers is whole pages, and peers remember keys. Where a thread does the copies it
// posts all gets at once and sleeps, as it could not between a share and the next.
func (p *Protocol) openLanding(op *operation, path Path) bool {
	if p.ep.Offload() || path.Attr().Caps&hw.CapSoftware == 0 || !p.long(op) {
		return false
	}
	to := op.Target.Segments(p.rx.local[:0], 0, op.want)[0]
	m, err := path.TransportDevice().Domain.Register(hw.Region{
		Addr: to.Addr, Len: to.Len, Access: hw.LocalWrite | hw.RemoteWrite,
	})
	if err != nil {
		log.Infof(log.EPData, "the sender of %d bytes cannot help: %v", op.want, err)
		return false
	}
	p.landings.put(op, []hw.Memory{m})
	op.open = true
	return true
}

// sendLanding sends the sender of an operation the address where it lands. Without room it sends none, and the sender
// does not help.
func (p *Protocol) sendLanding(op *operation, path Path) {
	m := p.landings[op.id()][0]
	l := wire.Landing{Operation: op.id(), Addr: m.Region().Base, Want: op.want}
	if path.AMShort(wire.AMLanding, op.Request, l.Put(p.rx.head[:]), m.PackKey(nil)) != nil {
		return
	}
	op.help = helpAsked
	p.rx.waiting[op.id()] = op.index
}

// stepHelped has the sender put the next chunk and posts the next get, and reports whether progress is done with the
// operation, as stepGet does. The operations are served in order: the first for which there is something to do takes
// the turn.
func (p *Protocol) stepHelped(op *operation, path Path) bool {
	r := p.rx
	if op.status == fi.Success && !r.turn {
		chunk := min(chunkSize(op.want), PieceBytes)
		left := op.want - op.tail - op.asked
		if op.help == helpReady && (left > chunk || left != 0 && op.pending != 0) {
			p.givePut(op, min(chunk, left))
			left = op.want - op.tail - op.asked
			r.turn = true
		}
		if left != 0 && op.pending < HelpedGets {
			if !p.postGet(op, path, min(chunk, left)) {
				return false
			}
			r.turn = true
		}
	}
	if op.status == fi.Success && op.asked+op.tail < op.want {
		return false
	}
	return p.allAsked(op)
}

// givePut leaves the last n bytes that have not been requested to the sender.
func (p *Protocol) givePut(op *operation, n uint64) {
	op.tail += n
	op.owed = n
	op.help = helpBusy
	p.ep.Answer(&op.Message, wire.AMPut, wire.PutSpan(p.rx.head[:], op.want-op.tail, n))
}

// onHelped takes in that a sender waits for a put to do, the one that it had being done.
func (p *Protocol) onHelped(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	if !ok {
		p.ep.Malformed(src, "word on help of %d bytes", len(head))
		return
	}
	index, known := p.rx.waiting[header]
	if !known {
		return // the message did not wait for the help
	}
	op := p.rx.ops.At(index)
	if op.help == helpNone || op.endpoint != p.number || !p.ep.IsFrom(src, &op.Message) {
		p.ep.Malformed(src, "help with operation %#x, which is not shared with it", header)
		return
	}
	op.help = helpReady
	if op.owed == 0 {
		return
	}
	if status == fi.Success {
		op.done += op.owed
		p.ep.Count(stats.RxHelped, op.owed)
	}
	p.endOwed(op, status)
}

// endOwed ends the put that the sender of an operation was at.
func (p *Protocol) endOwed(op *operation, status fi.Errno) {
	op.owed = 0
	if status != fi.Success && op.status == fi.Success {
		log.Warnf(log.EPData, "%s has not put its part of %d bytes: %v", p.ep.SenderOf(&op.Message), op.want, status)
		op.status = status
	}
	if op.waits && op.pending == 0 {
		p.end(op)
	}
}
