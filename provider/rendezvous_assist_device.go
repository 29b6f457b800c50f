package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/outcome"
	"github.com/weft-fabric/weft/provider/rkey"
	"github.com/weft-fabric/weft/provider/wire"
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
// memory the two claim chunks by words there (rendezvous_assist.go).

// helpState is how far the sender of a message is with its help.
type helpState uint8

const (
	helpNone  helpState = iota
	helpAsked           // it knows where the message lands
	helpReady           // it waits for a put to do
	helpBusy            // it is at one
)

// helpedGets is how many gets of a message with a helper are under way: one that the device
// is at, and those by which it does not wait for this process.
const helpedGets = 4

// openLanding registers the target of an operation that its sender could help with so that the
// sender may write there, and reports false if there is none or no room. It is a region of its
// own, of these bytes only and until the operation ends: what is kept for later transfers is
// whole pages, and peers remember keys. Where a thread does the copies it posts all gets at once and
// sleeps, as it could not between a share and the next.
func (r *receiving) openLanding(e *leasedEP, op *recvOp, p *port) bool {
	least := uint64(r.cfg.AssistSize)
	if r.offload || least == 0 || op.want < least || p.attr.Caps&hw.CapSoftware == 0 || op.count != 1 ||
		op.t.Flags&hot.RecvIOV != 0 {
		return false
	}
	m, err := p.Memory().Register(hw.Region{
		Addr: pointerAt(op.t.Buf), Len: int(op.want), Access: hw.LocalWrite | hw.RemoteWrite,
	})
	if err != nil {
		log.Infof(log.EPData, "the sender of %d bytes cannot help: %v", op.want, err)
		return false
	}
	e.landings.put(op, []hw.Memory{m})
	op.open = true
	return true
}

// sendLanding sends the sender of an operation the address where it lands. Without room it sends none, and the sender
// does not help.
func (r *leasedRx) sendLanding(e *leasedEP, op *recvOp, p *path) {
	m := e.landings[op.id()][0]
	l := wire.Landing{Operation: op.id(), Addr: m.Region().Base, Want: op.want}
	if p.AMShort(wire.AMLanding, op.request, l.Put(r.head[:]), m.PackKey(nil)) != nil {
		return
	}
	op.help = helpAsked
	r.pulls[op.id()] = op.index
}

// stepHelped has the sender put the next chunk and posts the next get, and reports whether
// progress is done with the operation, as stepGet does. The operations are served in
// order: the first for which there is something to do takes the turn.
func (r *leasedRx) stepHelped(e *leasedEP, op *recvOp, p *path) bool {
	if op.status == fi.Success && !r.helpTurn {
		chunk := min(chunkSize(op.want), devicePieceBytes)
		left := op.want - op.tail - op.asked
		if op.help == helpReady && (left > chunk || left != 0 && op.pending != 0) {
			r.givePut(e, op, min(chunk, left))
			left = op.want - op.tail - op.asked
			r.helpTurn = true
		}
		if left != 0 && op.pending < helpedGets {
			if !r.postGet(e, op, p, min(chunk, left)) {
				return false
			}
			r.helpTurn = true
		}
	}
	if op.status == fi.Success && op.asked+op.tail < op.want {
		return false
	}
	return r.allAsked(e, op)
}

// givePut leaves the last n bytes that have not been requested to the sender.
func (r *receiving) givePut(e *leasedEP, op *recvOp, n uint64) {
	op.tail += n
	op.owed = n
	op.help = helpBusy
	r.answer(e, hw.Source(op.src), op.sender(), wire.AMPut, op.request, wire.PutSpan(r.head[:], op.want-op.tail, n))
}

// onHelped takes in that a sender waits for a put to do, the one that it had being done.
func (e *leasedEP) onHelped(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	if !ok {
		e.malformed(src, "word on help of %d bytes", len(head))
		return
	}
	r := e.rx
	index, known := r.pulls[header]
	if !known {
		return // the message did not wait for the help
	}
	op := r.ops.At(index)
	if op.help == helpNone || op.sender() != e.senderOf(src) || op.ep != e.number {
		e.malformed(src, "help with operation %#x, which is not shared with it", header)
		return
	}
	op.help = helpReady
	if op.owed == 0 {
		return
	}
	if status == fi.Success {
		op.done += op.owed
		e.stats.Rx(stats.RxHelped, op.owed)
	}
	r.endOwed(e, op, status)
}

// endOwed ends the put that the sender of an operation was at.
func (r *leasedRx) endOwed(e *leasedEP, op *recvOp, status fi.Errno) {
	op.owed = 0
	if status != fi.Success && op.status == fi.Success {
		log.Warnf(log.EPData, "%s has not put its part of %d bytes: %v", r.addressOf(op.sender()), op.want, status)
		op.status = status
	}
	if op.pulled && op.pending == 0 {
		r.finishOp(e, op)
	}
}

// putter is this side's help with a message that it sends. It belongs to the lease holder.
type putter struct {
	done    hw.Completion
	e       *leasedEP
	request uint64
	wire.Landing
	key  hw.RemoteKey
	path *path

	ready bool   // the device can put there, and the receiver knows that
	from  uint64 // of what is to be put, 0 bytes: nothing
	n     uint64
}

// onLanding takes in where a message of this side lands.
func (e *rendezvousHelp) onLanding(src hw.Source, header uint64, head, payload []byte) {
	g := &putter{e: e.leasedEP, request: header}
	req, known := rendezvousOf(e.leasedEP, src, header)
	if !g.Parse(head) || !known || g.Want > req.Length || req.Count != 1 ||
		req.Flags&txExposed == 0 || e.putters[header] != nil {
		e.malformed(src, "landing of request %#x", header)
		return
	}
	var ok bool
	if g.path, ok = e.linkAt(req.Link).ready(); !ok || g.path.port.number != uint32(src>>sourcePortShift) {
		return
	}
	var err error
	if g.key, err = g.path.port.Memory().UnpackKey(payload); err != nil {
		e.malformed(src, "landing of request %#x: %v", header, err)
		return
	}
	g.done.Func, g.done.Idempotent = func(c *hw.Completion) { g.ended(c.Err()) }, true
	if e.putters == nil {
		e.putters = map[uint64]*putter{}
	}
	e.putters[header] = g
	e.stepPutter(g)
}

// onPut takes in what the receiver of a message leaves to this side.
func (e *rendezvousHelp) onPut(src hw.Source, header uint64, head, payload []byte) {
	g := e.putters[header]
	req, known := e.requests.Lookup(header)
	if g == nil || !known || !e.ownsLink(src, req.Link) || !g.ready || g.n != 0 {
		e.malformed(src, "put for request %#x, with which this side does not help", header)
		return
	}
	var ok bool
	if g.from, g.n, ok = wire.ParseSpan(head, g.Want); !ok {
		g.n = 0
		e.malformed(src, "put for request %#x beyond its %d bytes", header, g.Want)
		return
	}
	e.stepPutter(g)
}

// stepPutter goes on with a putter, now or when there is room.
func (e *rendezvousHelp) stepPutter(g *putter) {
	if !g.step() {
		e.putting = append(e.putting, g)
	}
}

// stepPutters goes on with what earlier steps left.
func (e *rendezvousHelp) stepPutters() {
	list := e.putting
	e.putting = nil
	for _, g := range list {
		e.stepPutter(g)
	}
}

// step reports whether there is nothing to go on with: the message has ended, or the device is at the put or cannot.
func (g *putter) step() bool {
	e := g.e
	req, known := e.requests.Lookup(g.request)
	if !known || e.help.putters[g.request] != g {
		return true
	}
	o := g.path.Endpoint.(hw.OneSided)
	if !g.ready {
		_, err := o.PutZcopy(nil, g.Addr, g.key, nil) // which makes the connection for puts
		if errors.Is(err, hw.ErrNoResource) {
			return false
		}
		if g.ready = err == nil; g.ready {
			g.sendPutState(req, fi.Success)
		}
		return true
	}
	v := fi.IOVec{Base: req.IOV[0].Base + uintptr(g.from), Len: g.n}
	local := [1]hw.Segment{{Addr: pointerAt(uint64(v.Base)), Len: int(g.n),
		Memory: rkey.Covering(e.exposed.Of(g.request), v.Base, v.Len)}}
	g.done.Expect(1)
	switch status, err := o.PutZcopy(local[:], g.Addr+g.from, g.key, &g.done); {
	case errors.Is(err, hw.ErrNoResource):
		return false
	case err != nil || status == hw.Done:
		g.ended(err)
	}
	return true
}

// ended takes in that a put has ended. The transport calls it under the progress lease, or while the endpoint closes.
func (g *putter) ended(err error) {
	e := g.e
	if e.state.Load() == stateClosed {
		return
	}
	req, known := e.requests.Lookup(g.request)
	if !known || e.help.putters[g.request] != g {
		return
	}
	g.n = 0
	status := fi.Success
	if err != nil {
		log.Warnf(log.EPData, "put %d bytes to %s: %v", g.Want, e.linkAt(req.Link).to, err)
		status = outcome.OfCopy(err)
	}
	g.sendPutState(req, status)
}

// sendPutState sends the receiver word that this side waits for a put to do.
func (g *putter) sendPutState(req *txRequest, status fi.Errno) {
	r := g.e.rx
	r.send(g.e, g.e.linkAt(req.Link), wire.AMHelped, g.Operation, wire.PutAck(r.head[:], status))
}
