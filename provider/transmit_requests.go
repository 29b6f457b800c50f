package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

// transmits are those of an endpoint that wait for acknowledgements, of the data plane and of this package.
type transmits struct {
	*dataplane.Requests // nil before the endpoint is enabled
	injectMax           int
	inject              []byte                      // one buffer of injectMax bytes for each request
	links               mem.Growing[dataplane.Link] // by numbers of links; grown with the table of links locked
	// copies counts messages that are complete and whose receivers have still to read them from a copy here (sendCopy).
	// Added to by posting threads, taken from by them and the lease holder, read by Close; sequentially consistent.
	copies atomic.Int32
	// lost says that a thread sent an RTS while its peer was lost. Set by that thread, cleared by the lease holder;
	// sequentially consistent.
	lost atomic.Bool
}

// open makes room for perStripe requests in each of n stripes, with payloads of injectMax bytes that were injected, and
// for the counts of a number of links.
func (t *transmits) open(n, perStripe, injectMax, links int) (err error) {
	if err = t.links.Reserve(links); err != nil {
		return err
	}
	if t.Requests, err = stripe.NewTable[txRequest](n, perStripe); err != nil {
		return err
	}
	t.injectMax = injectMax
	t.inject, err = mem.Map(n*perStripe*injectMax, mem.NoReserve)
	return err
}

// close gives all memory back.
func (t *transmits) close() {
	if t.inject != nil {
		_ = mem.Unmap(t.inject)
		t.inject = nil
	}
	if t.Requests != nil {
		_ = t.Requests.Close()
	}
	_ = t.links.Free()
}

// fill gives the data plane what it needs for rendezvous.
func (t *transmits) fill(h *hot.EP) {
	h.Requests, h.Links = addressOf(t.Requests), uintptr(t.links.Base())
	atomic.StoreUint32(&h.LinkLimit, t.links.Ready())
}

// lineOf is where the data plane counts for a peer, by the number of its link. The caller has the table of links
// locked.
func (t *transmits) lineOf(h *hot.EP, index uint32) *dataplane.Link {
	if int(index) >= t.links.Len() || t.links.Grow(int(index)+1) != nil {
		return new(dataplane.Link) // the data plane finds the number beyond its limit
	}
	atomic.StoreUint32(&h.LinkLimit, t.links.Ready())
	line := t.links.At(uint64(index))
	line.Listed.Store(0)
	line.ListedBytes.Store(0)
	return line
}

// injectBuffer is the buffer of a request for a payload that was injected.
func (t *transmits) injectBuffer(id uint64) []byte {
	i := t.Index(id) * t.injectMax
	return t.inject[i : i+t.injectMax]
}

// rtsMax is the longest message, in bytes, of which the data plane sends an RTS, 0: of none (hot.EP.RTSMax).
func rtsMax(p *transport, lossy bool) uint64 {
	if p.Attr.Caps&hw.CapPeerMemory == 0 || lossy {
		return 0
	}
	return wire.MaxMessage
}

// lostRendezvous ends those of the data plane with peers of which the end has been reported.
func (e *leasedEP) lostRendezvous() {
	e.ep.tx.requests.Range(func(id uint64, req *txRequest) {
		live := uint32(id >> 32)
		if req.Live.Load() != live || req.Ring == 0 || e.ep.links.At(req.Link).LeadsTo(req.Ring) ||
			!req.Live.CompareAndSwap(live, 0) {
			return
		}
		e.finishTx(req, id, fi.ECONNRESET)
	})
}

// onAck completes a tracked transmit.
func (e *leasedEP) onAck(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	e.ackReceived(src, header, status, ok)
}

// ackReceived completes a tracked transmit with the status in an acknowledgement of src. ok is false for one that does
// not parse.
func (e *leasedEP) ackReceived(src hw.Source, header uint64, status fi.Errno, ok bool) {
	req, known := e.ep.tx.requests.Lookup(header)
	if !ok || !known || !e.ownsLink(src, req.Link) {
		e.malformed(src, "acknowledgement of unknown request %#x", header)
		return
	}
	if status == fi.Success {
		if todo, done := dataplane.EndRequest(e.ep.hot, nil, req, header); done {
			e.ep.bound.act(todo)
			return
		}
	}
	if !req.Live.CompareAndSwap(uint32(header>>32), 0) {
		e.malformed(src, "acknowledgement of request %#x, which has not gone out", header)
		return
	}
	e.finishTx(req, header, status)
}

// AckReceived is onAck of an ACK that the data plane has taken in. The caller holds the progress lease.
func (e *Endpoint) AckReceived(source uint32, request, status uint64) {
	outcome, ok := wire.AckStatus(status)
	e.leased.Taken().ackReceived(hw.Source(source), request, outcome, ok)
}

// SendAck sends a source the ACK of its request, whose message the data plane has taken in, or keeps the ACK until
// there is room. The caller holds the progress lease.
func (e *Endpoint) SendAck(source uint32, request uint64) {
	e.leased.Taken().sendAck(source, request)
}

func (e *leasedEP) sendAck(source uint32, request uint64) {
	s := e.senderOf(hw.Source(source))
	e.rx.sendAck(&arrived{ep: e, source: s.ID, number: s.Number, src: hw.Source(source), request: request}, fi.Success)
	e.fillBack(hw.Source(source)) // the data plane sends the next one
	e.rx.sendSoon()
}
