package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/peers"
)

// senderOf returns the sender behind a remote interface.
func (e *leasedEP) senderOf(src hw.Source) sender {
	if s, ok := e.senders.Known(src); ok {
		return s
	}
	p, own := e.ep.base.links.Transports().Of(src)
	a, err := peers.ParseAddress(p.SourceAddress(own))
	if err != nil {
		log.Warnf(log.EPData, "source %d has a name that does not parse: %v", src, err)
	}
	s := sender{
		ID: e.rx.ids.Meet(origin{&e.ep, src, a.Number}, a.Name, e.rx.matching.Merge), Number: a.Number,
	}
	e.senders.SetKnown(src, s)
	e.greet(src, s)
	return s
}

// addressOf returns a sender's address.
func (r *receiving) addressOf(s sender) peers.Address {
	return peers.Address{Name: r.ids.Name(s.ID), Number: s.Number}
}

// fillSource writes a sender into its line of the table by which the data plane delivers (hot.Source), unless it is
// there.
func (e *leasedEP) fillSource(src hw.Source) {
	if int(src) >= e.ep.base.sourceLines.Len() || src > links.SourceMask || e.ep.base.sourceAddrs.Has(uint32(src)) {
		return
	}
	s := e.senderOf(src)
	if e.ep.base.bound.av.Shared() || e.ep.base.bound.av.Renames() {
		return
	}
	line, seen := e.ep.base.sourceLines.At(uint32(src)), e.ep.base.directoryNow()
	if addr := e.addrOf(s.ID); reports(&e.ep, addr) && e.ep.base.transports.iface.FillSource(src, line) {
		line.Context, line.ID = uint32(s.Number), s.ID
		e.ep.base.sourceAddrs.Fill(uint32(src), addr, seen, e.ep.base.directoryNow)
	}
}

// reports reports whether the data plane takes messages from a sender with an address, fi.AddrNotAvail of a stranger.
// Where FI_SOURCE_ERR asks for a stranger's name the runtime does, and a connected endpoint has its peer's only.
func reports(e *Endpoint, addr fi.Addr) bool {
	return addr != fi.AddrNotAvail || !e.base.chosen.sourceErr && e.base.conn == nil
}

// acquainting is h, followed by fillSource of the message's sender.
func (e *leasedEP) acquainting(h hw.Handler) hw.Handler {
	return func(src hw.Source, header uint64, head, payload []byte) {
		h(src, header, head, payload)
		e.fillSource(src)
	}
}

// fillBack connects to a sender and fills its line (fill), so that the data plane answers it. A connection that does
// not come up is tried again with the next RTS or atomic operation of that sender.
func (e *leasedEP) fillBack(src hw.Source) {
	if e.rx.recheck || int(src) >= e.ep.base.sourceLines.Len() {
		return
	}
	e.fillSource(src)
	source := e.ep.base.sourceLines.At(uint32(src))
	known := atomic.LoadUint64(&source.Addr)
	if known == hot.SenderUnknown {
		return
	}
	if source.Context != 0 || known == hot.SenderStranger { // it has a line of its own
		if !e.senders.HasLine(uint32(src), source) {
			l := e.linkBack(sender{ID: source.ID, Number: uint8(source.Context)})
			e.senders.FillLine(l, uint32(src), source, e.ep.base.sourceLines.Len())
		}
		return
	}
	addr := fi.Addr(hot.AddrOfSender(known))
	if line := e.ep.base.links.Line(addr); line != nil && atomic.LoadUintptr(&line.Slots) != 0 {
		return
	}
	l, err := e.ep.base.linkOf(addr)
	if err != nil {
		return
	}
	if p, err := e.ep.base.links.Connect(l); err == nil {
		e.ep.base.links.Publish(addr, l, p)
	}
	l.Release()
}

// linkBack is the link to a peer that sent to this endpoint.
func (e *leasedEP) linkBack(s sender) *link { return e.senders.Back(s, e.rx.addressOf) }

// ownsLink reports whether a remote interface is the peer of a link, by whichever
// of its names: only it may speak about that link's requests.
func (e *leasedEP) ownsLink(src hw.Source, link uint32) bool {
	l := e.ep.base.links.At(link)
	if l == nil {
		return false // a forged request
	}
	p := l.Path()
	return p != nil && e.rx.addressOf(e.senderOf(src)) == p.Peer
}

// onPeer ends what waits for a peer that is gone. The transport calls it from CheckPeers or Progress.
func (e *leasedEP) onPeer(ev hw.PeerEvent) {
	s, met := e.senders.Known(ev.Source)
	if met = met && ev.HasSource; met {
		e.rx.matching.Drain(dataplane.UrgentRecv) // those on the ring may name it
		e.senders.SetKnown(ev.Source, sender{})
		e.loseTransportSource(ev.Source)
	}
	if ev.HasSource {
		for _, p := range e.ep.protocols {
			p.SourceLost(ev.Source)
		}
	}
	if met {
		e.rx.senderLost(e, ev.Source)
		last := e.rx.ids.Part(origin{&e.ep, ev.Source, s.Number}, s.ID, e.rx.matching.UnexpectedFrom)
		if last && (s.Number == 0 || !ev.Closed) {
			e.rx.matching.PeerLost(s.ID)
		}
	}
	if ev.Endpoint == nil {
		return
	}
	e.ep.base.rmas.Forget(ev.Endpoint)
	for l := range e.ep.base.links.All() {
		if p := l.Path(); p != nil && p.Endpoint == ev.Endpoint {
			e.linkLost(l, fi.ECONNRESET)
			e.silentLost(l.To, p.Peer)
			l.Leave(p)
			if e.ep.base.conn != nil {
				e.ep.base.conn.PeerGone()
			}
		}
	}
}

// silentLost ends the receives that name a peer, by any of its addresses, to which the link is lost and that has never
// sent: the receives from others end with their last source. A context of a scalable endpoint is not the whole peer.
func (e *leasedEP) silentLost(addresses ...peers.Address) {
	e.rx.matching.Drain(dataplane.UrgentRecv) // those on the ring may name it
	for _, a := range addresses {
		if id := e.rx.ids.Known(a.Name); a.Number == 0 && id != peers.None && !e.rx.ids.Present(id) {
			e.rx.matching.PeerLost(id)
		}
	}
}

// linkLost ends with status what waits for a peer that is gone.
func (e *leasedEP) linkLost(l *link, status fi.Errno) {
	log.Infof(log.EPCtrl, "peer %s is gone", l.To)
	e.ep.base.links.Forget(l)
	for _, p := range e.ep.protocols {
		p.PeerLost(l.Index, status)
	}
	e.rx.out.Drop(func(to *destination) bool { return to.link == l })
}

// senderLost drops what is kept of a sender that is gone as one of a transport's sources: unexpected rendezvous, and
// answers. A sender that has begun anew under its name, or that another transport reaches, is another source.
func (r *receiving) senderLost(e *leasedEP, src hw.Source) {
	r.matching.SenderLost(&e.received, src)
	e.dropAnswers(src)
	e.dropBack(src)
}
