package provider

import (
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/tables"
	"github.com/weft-fabric/weft/provider/match"
)

// sender is the source of a message: a peer and which of its interfaces. Matching goes by the peer, answers go to the
// interface.
type sender struct {
	id     uint32 // identity, 0: not known
	number uint8
}

// senderOf returns the sender behind a remote interface.
func (e *leasedEP) senderOf(src hw.Source) sender {
	if s, ok := e.known(src); ok {
		return s
	}
	p, own := e.transportOf(src)
	a, err := peers.ParseAddress(p.SourceAddress(own))
	if err != nil {
		log.Warnf(log.EPData, "source %d has a name that does not parse: %v", src, err)
	}
	s := sender{e.rx.ids.Meet(origin{&e.Endpoint, src, a.Number}, a.Name, e.rx.merge), a.Number}
	e.setKnown(src, s)
	e.greet(src, s)
	return s
}

// addressOf returns a sender's address.
func (r *receiving) addressOf(s sender) peers.Address {
	return peers.Address{Name: r.ids.Name(s.id), Number: s.number}
}

// fillSource writes a sender into its line of the table by which the data plane delivers (hot.Source), unless it is
// there.
func (e *leasedEP) fillSource(src hw.Source) {
	if int(src) >= e.sourceLines.Len() || src > sourceMask || e.senders.Has(uint32(src)) {
		return
	}
	s := e.senderOf(src)
	if e.av.Shared() || e.av.Renames() {
		return
	}
	line, seen := e.sourceLines.At(uint32(src)), directoryNow(&e.peering)
	if addr := e.addrOf(s.id); reports(&e.Endpoint, addr) && e.iface.FillSource(src, line) {
		line.Context, line.ID = uint32(s.number), s.id
		e.senders.Fill(uint32(src), addr, seen, func() tables.Directory { return directoryNow(&e.peering) })
	}
}

// directoryNow is what the addresses of an endpoint's senders are found by now.
func directoryNow(e *peering) tables.Directory {
	return tables.Directory{Generation: e.av.Generation(), Links: e.links.Made()}
}

// reports reports whether the data plane takes messages from a sender with an address, fi.AddrNotAvail of a stranger.
// Where FI_SOURCE_ERR asks for a stranger's name the runtime does, and a connected endpoint has its peer's only.
func reports(e *Endpoint, addr fi.Addr) bool {
	return addr != fi.AddrNotAvail || !e.sourceErr && e.conn == nil
}

// forgetStrangers is called after an insertion into the address vector, after a link is made, and when the names of a
// peer have changed: any of these may give senders addresses.
func forgetStrangers(e *peering) {
	e.senders.DropStrangers()
	e.transportSenders.DropStrangers()
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
	if e.rx.recheck || int(src) >= e.sourceLines.Len() {
		return
	}
	e.fillSource(src)
	source := e.sourceLines.At(uint32(src))
	known := atomic.LoadUint64(&source.Addr)
	if known == hot.SenderUnknown {
		return
	}
	if source.Context != 0 || known == hot.SenderStranger {
		fillBackLine(e, uint32(src), source)
		return
	}
	addr := fi.Addr(hot.AddrOfSender(known))
	if line := e.peers.At(e.av.Line(addr)); line != nil && atomic.LoadUintptr(&line.Slots) != 0 {
		return
	}
	l, err := e.linkOf(addr)
	if err != nil {
		return
	}
	if p, err := e.connect(l); err == nil {
		e.fill(addr, l, p)
	}
	l.Release()
}

// fillBackLine is fillBack of a sender that is a context of a scalable endpoint, or a stranger: no address of the
// address vector need lead to it, so it has a line of its own.
func fillBackLine(e *leasedEP, src uint32, source *hot.Source) {
	if source.Back != 0 && atomic.LoadUintptr(&e.backLines.At(src).Slots) != 0 {
		return
	}
	l := e.linkBack(sender{source.ID, uint8(source.Context)})
	p, err := e.connect(l)
	if err != nil || p.transport.number != 0 {
		return
	}
	if e.backLines.Len() == 0 {
		if e.backLines, err = mem.NewSparseArray[hot.Peer](e.sourceLines.Len()); err != nil {
			log.Warnf(log.EPData, "lines of senders with several contexts: %v", err)
			return
		}
	}
	line := e.backLines.At(src)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path.Load() != p || p.Err() != nil {
		return
	}
	atomic.StoreUint32(&line.Link, l.Index+1)
	if e.iface.FillPeer(p.Endpoint, line) != nil {
		return
	}
	if !slices.Contains(l.backs, src) {
		l.backs = append(l.backs, src)
	}
	source.Back = addressOfLine(line)
}

// linkBack is the link to a peer that sent to this endpoint.
func (e *leasedEP) linkBack(s sender) *link {
	slot := peers.Slot(s.id)
	for slot >= len(e.backLinks) {
		e.backLinks = append(e.backLinks, nil)
	}
	l := e.backLinks[slot]
	if l == nil || l.to.Number != s.number {
		l = e.linkTo(e.rx.addressOf(s))
		e.backLinks[slot] = l
	}
	return l
}

// ownsLink reports whether a remote interface is the peer of a link, by whichever
// of its names: only it may speak about that link's requests.
func (e *leasedEP) ownsLink(src hw.Source, link uint32) bool {
	l := e.linkAt(link)
	if l == nil {
		return false // a forged request
	}
	p := l.path.Load()
	return p != nil && e.rx.addressOf(e.senderOf(src)) == p.peer
}

// onPeer ends what waits for a peer that is gone. The transport calls it from CheckPeers or Progress.
func (e *leasedEP) onPeer(ev hw.PeerEvent) {
	s, met := e.known(ev.Source)
	if met = met && ev.HasSource; met {
		e.rx.drainPosts(urgentRecv) // those on the ring may name it
		e.setKnown(ev.Source, sender{})
		e.loseTransportSource(ev.Source)
	}
	if ev.HasSource {
		for _, p := range e.protocols {
			p.SourceLost(ev.Source)
		}
	}
	if met {
		e.rx.senderLost(e, ev.Source)
		last := e.rx.ids.Part(origin{&e.Endpoint, ev.Source, s.number}, s.id, e.rx.unexpectedFrom)
		if last && (s.number == 0 || !ev.Closed) {
			e.rx.peerLost(s.id)
		}
	}
	if ev.Endpoint == nil {
		return
	}
	e.rmas.Forget(ev.Endpoint)
	for l := range e.links.All() {
		if p := l.path.Load(); p != nil && p.Endpoint == ev.Endpoint {
			e.linkLost(l, fi.ECONNRESET)
			e.silentLost(l.to, p.peer)
			l.leave(p)
			if e.conn != nil {
				e.conn.PeerGone()
			}
		}
	}
}

// silentLost ends the receives that name a peer, by any of its addresses, to which the link is lost and that has never
// sent: the receives from others end with their last source. A context of a scalable endpoint is not the whole peer.
func (e *leasedEP) silentLost(addresses ...peers.Address) {
	e.rx.drainPosts(urgentRecv) // those on the ring may name it
	for _, a := range addresses {
		if id := e.rx.ids.Known(a.Name); a.Number == 0 && id != peers.None && !e.rx.ids.Present(id) {
			e.rx.peerLost(id)
		}
	}
}

// linkLost ends with status what waits for a peer that is gone.
func (e *leasedEP) linkLost(l *link, status fi.Errno) {
	log.Infof(log.EPCtrl, "peer %s is gone", l.to)
	l.mu.Lock()
	e.forget(l)
	l.mu.Unlock()
	for _, p := range e.protocols {
		p.PeerLost(l.Index, status)
	}
	e.rx.out.Drop(func(to *destination) bool { return to.link == l })
}

// senderLost drops what is kept of a sender that is gone as one of a transport's sources: unexpected rendezvous, and
// answers. A sender that has begun anew under its name, or that another transport reaches, is another source.
func (r *receiving) senderLost(e *leasedEP, src hw.Source) {
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		for m := range eng.Messages() {
			switch {
			case keptEndpoint(m) != e.number || keptSource(m) != src:
			case m.Flags&msgRTS != 0:
				eng.RemoveMessage(m)
				r.releaseUnexpected(eng, m)
			default:
				m.Flags &^= msgSync // no sender waits for it any more
			}
		}
	}
	e.dropAnswers(src)
	e.dropBack(src)
}

// peerLost ends the receives that name a lost peer as their source.
func (r *receiving) peerLost(id uint32) {
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		for rv := range eng.Recvs() {
			if rv.Source() == id {
				eng.Remove(rv)
				r.dropRecv(eng, rv, fi.ECONNRESET)
			}
		}
	}
}
