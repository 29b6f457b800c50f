package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Long messages are package rendezvous's. Here is the endpoint as rendezvous have it.

// readMax is the longest message of a rendezvous, in bytes, that the data plane has the shim read (hot.EP.ReadMax), 0
// for none: shorter than what the sender copies a share of and what is cut into segments; none where a progress thread
// does the copies.
func (e *peering) readMax() uint32 {
	p := e.links.Transports()[0]
	if p.Attr.Caps&hw.CapPeerMemory == 0 || e.rx.offload {
		return 0
	}
	return uint32(e.wholeMax(p, rendezvous.Burst, e.domain.cfg.AssistSize))
}

// wholeMax is the longest copy over a transport, in bytes, that one thread does in one piece: at most most, not cut
// into segments, and shorter than assist, from which on the peer copies a share (0: it never does).
func (e *attributes) wholeMax(p *transport, most uint64, assist int) uint64 {
	if p.On.Segments {
		most = min(most, uint64(e.domain.cfg.MinSegment))
	}
	if assist != 0 {
		most = min(most, uint64(assist)-1)
	}
	return most
}

// rendezvousHost is an endpoint as rendezvous have it.
type rendezvousHost struct{ leasedHost }

// Closed reports whether the endpoint closes or has closed.
func (h rendezvousHost) Closed() bool { return h.e.ep.base.state.Load() == stateClosed }

// TakeKeys reads the keys of an RTS.
func (h rendezvousHost) TakeKeys(src hw.Source, rts *wire.RTS, payload []byte) bool {
	return takeKeys(h.e.ep.base.links.Transports(), src, rts, payload)
}

// Arrived matches the message of an RTS and begins to read it, or keeps the RTS as unexpected.
func (h rendezvousHost) Arrived(src hw.Source, header uint64, m *wire.RTS) {
	h.e.received.Arrived(src, header, m)
}

// IsFrom reports whether a source is the sender of a message.
func (h rendezvousHost) IsFrom(src hw.Source, m *rendezvous.Message) bool {
	return h.e.senderOf(src) == sender{ID: m.Sender, Number: m.Number}
}

// Back connects to the sender of a message.
func (h rendezvousHost) Back(m *rendezvous.Message) (rendezvous.Path, error) {
	p, err := h.e.connectBack(m.Src, sender{ID: m.Sender, Number: m.Number})
	if err != nil {
		return nil, err
	}
	return &p.Path, nil
}

// Answer sends a message about the sender's request.
func (h rendezvousHost) Answer(m *rendezvous.Message, id hw.AMID, head []byte) {
	h.e.rx.answer(h.e, m.Src, sender{ID: m.Sender, Number: m.Number}, id, m.Request, head)
}

// Words are the words of messages that a source shares with this side.
func (h rendezvousHost) Words(src hw.Source) *claim.Words {
	return claim.MessageWords(h.e.ep.base.links.Transports().Words(src))
}

// Reads reports whether the memory of a source's process can be read.
func (h rendezvousHost) Reads(src hw.Source) bool { return h.e.ep.base.links.Transports().Read(src) }

// Gets reports whether memory that a source exposes can be read.
func (h rendezvousHost) Gets(src hw.Source) bool { return h.e.ep.base.links.Transports().Get(src) }

// Maps reports whether memory of devices may be moved from process to process.
func (h rendezvousHost) Maps() bool { return h.e.ep.base.chosen.p2p.Load() != fi.HMEMP2PDisabled }

// Offload reports whether the progress thread does the copies.
func (h rendezvousHost) Offload() bool { return h.e.rx.base.offload }

// Segmented reports whether n bytes over a transport are cut into segments.
func (h rendezvousHost) Segmented(transport uint32, n uint64) bool {
	return h.e.ep.base.rmas.Segmented(&h.e.ep.base.links.Transports()[transport].On, n)
}

// Flow returns the flow over the path to a message's sender.
func (h rendezvousHost) Flow(m *rendezvous.Message, p rendezvous.Path) *rendezvous.Flow {
	n := h.e.initiated.FlowOf(&h.e.linkBack(sender{ID: m.Sender, Number: m.Number}).Link, p.(*rma.Path))
	if n == nil {
		return nil
	}
	return n.Reads()
}

// Fetch begins to map memory of another process's device.
func (h rendezvousHost) Fetch(pid uint32, token, near uint64) rendezvous.Memory {
	a := cuda.Foreign{PID: int(pid), Token: token}
	device := h.e.ep.base.info.Caps&fi.HMEM != 0 && cuda.Load() == nil
	return foreignMemory{h.e.ep.base.domain.mappings.Fetch(a, near, device, h.e.rx.base.ring)}
}

// foreignMemory is memory of another process's device as rendezvous have it.
type foreignMemory struct{ *hmem.Memory }

// Do calls f with the mapping.
func (m foreignMemory) Do(f func(rendezvous.Mapping) error) bool {
	return m.Memory.Do(func(x *hmem.Mapping) error { return f(x) })
}

// Complete completes a message on both sides.
func (h rendezvousHost) Complete(m *rendezvous.Message, done uint64, status fi.Errno) {
	h.e.received.Complete(m, done, status)
}

// Abandon ends the receive of a message whose endpoint has left the receive context.
func (h rendezvousHost) Abandon(m *rendezvous.Message) { h.e.received.Abandon(m) }

// SenderOf names the sender of a message.
func (h rendezvousHost) SenderOf(m *rendezvous.Message) fmt.Stringer {
	return h.e.rx.addressOf(sender{ID: m.Sender, Number: m.Number})
}

// Request returns a request of the endpoint.
func (h rendezvousHost) Request(id uint64) (*dataplane.Request, bool) {
	return h.e.ep.base.sends.Requests().Lookup(id)
}

// CameOver reports whether a source is of the transport that a path leads over.
func (h rendezvousHost) CameOver(src hw.Source, p rendezvous.Path) bool {
	return p.TransportNumber() == links.NumberOf(src)
}

// Path returns the path of a link if it works.
func (h rendezvousHost) Path(link uint32) (rendezvous.Path, bool) {
	p, ok := h.e.ep.base.links.At(link).Ready()
	if !ok {
		return nil, false
	}
	return &p.Path, true
}

// Send sends a message to the peer of a link.
func (h rendezvousHost) Send(link uint32, id hw.AMID, header uint64, head []byte) {
	h.e.rx.send(h.e, h.e.ep.base.links.At(link), id, header, head)
}

// Fragment sends a part of a request, and counts it.
func (h rendezvousHost) Fragment(p rendezvous.Path, req *dataplane.Request, from, n uint64) error {
	return h.e.sent.Fragment(p.(*rma.Path), req, from, n)
}

// Exposed are the regions of a request that its receiver may read.
func (h rendezvousHost) Exposed(request uint64) []hw.Memory {
	return h.e.ep.base.sends.Exposed(request)
}

// PeerOf names the peer of a link.
func (h rendezvousHost) PeerOf(link uint32) fmt.Stringer { return h.e.ep.base.links.At(link).To }
