package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// What this side does of peers' one-sided operations is package onesided's. Here is the endpoint as its target has it.

// targetHost is an endpoint as the target of one-sided operations has it.
type targetHost struct{ leasedHost }

// initTarget prepares the endpoint's target.
func (e *leasedEP) initTarget() {
	e.target.Init(targetHost{leasedHost{e}}, onesided.Counters{
		Reads: &e.ep.base.bound.remoteReadCntr, Writes: &e.ep.base.bound.remoteWriteCntr,
	})
}

// senderFrom is a sender as this package has it.
func senderFrom(s onesided.Sender) sender { return sender{ID: s.ID, Number: s.Number} }

// Deliver writes the completion of a write with CQ data.
func (h targetHost) Deliver(src hw.Source, n, data uint64) {
	if h.e.ep.base.bound.rxCQ != nil {
		h.e.ep.base.bound.rxCQ.Complete(cq.Entry{
			Flags: fi.RMA | fi.RemoteWrite | fi.RemoteCQData, Len: n, Data: data, Src: h.e.addrOf(h.e.senderOf(src).ID),
		})
	}
}

// Pool has memory for results.
func (h targetHost) Pool() *mem.Pool { return h.e.rx.matching.Pool }

// Access finds the region of a key and enters its gate.
func (h targetHost) Access(src hw.Source, key, addr, n, rights uint64) (*peerRegion, uint64, error) {
	return h.e.access(src, key, addr, n, rights)
}

// AccessOf is Access for a sender.
func (h targetHost) AccessOf(to onesided.Sender, key, addr, n, rights uint64) (*peerRegion, uint64, error) {
	return h.e.accessFor(h.e.linkBack(senderFrom(to)), key, addr, n, rights)
}

// Reached is the region of a key that a source reaches.
func (h targetHost) Reached(src hw.Source, key uint64) *peerRegion {
	m := h.e.ep.base.domain.regions.Find(key)
	if m == nil || !h.e.reaches(m, src) {
		return nil
	}
	return m
}

// Spend ends the key of a region for single use.
func (h targetHost) Spend(m *peerRegion) { h.e.ep.base.domain.regions.Expire(m) }

// Copying reports whether this side has copied n bytes itself.
func (h targetHost) Copying(n uint64) bool { return h.e.copying(n) }

// Sender is the sender behind a source.
func (h targetHost) Sender(src hw.Source) onesided.Sender {
	s := h.e.senderOf(src)
	return onesided.Sender{ID: s.ID, Number: s.Number}
}

// NameOf names the sender behind a source.
func (h targetHost) NameOf(src hw.Source) fmt.Stringer { return h.e.rx.addressOf(h.e.senderOf(src)) }

// Back connects to a sender.
func (h targetHost) Back(src hw.Source, to onesided.Sender) (onesided.Path, error) {
	p, err := h.e.connectBack(src, senderFrom(to))
	if err != nil {
		return nil, err
	}
	return &p.Path, nil
}

// Answer sends a sender the outcome of its request.
func (h targetHost) Answer(src hw.Source, to onesided.Sender, request uint64, head []byte) {
	h.e.rx.answer(h.e, src, senderFrom(to), wire.AMRMADone, request, head)
}

// FillBack has the data plane answer the next operation of a source.
func (h targetHost) FillBack(src hw.Source) { h.e.fillBack(src) }

// Send sends a message with a payload.
func (h targetHost) Send(
	p onesided.Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total int,
) error {
	return h.e.ep.base.sends.SendPayload(p.(*rma.Path), id, header, head, iov, total, h.e.ep.base.sends.Progress())
}

// Words are the words of one-sided operations that a source shares with this side.
func (h targetHost) Words(src hw.Source) *claim.Words {
	return claim.OneSidedWords(h.e.ep.base.links.Transports().Words(src))
}

// Memory reads and writes the memory of a source's process.
func (h targetHost) Memory(src hw.Source) hw.PeerMemory {
	p, err := h.e.ep.base.links.Connect(h.e.linkBack(h.e.senderOf(src)))
	if err != nil {
		return nil
	}
	peer, _ := p.Endpoint.(hw.PeerMemory)
	return peer
}
