package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/match"
	"github.com/weft-fabric/weft/provider/names"
)

// sourceID is the identity of a remote interface that sends to this endpoint.
func (e *Endpoint) sourceID(src hw.Source) uint32 {
	if int(src) < len(e.sources) && e.sources[src] != 0 {
		return e.sources[src]
	}
	n, err := names.FromSockaddr(e.iface.SourceAddress(src))
	if err != nil {
		log.Warnf(log.EPData, "source %d has a name that does not parse: %v", src, err)
	}
	id := e.rx.meet(origin{e, src}, n)
	for int(src) >= len(e.sources) {
		e.sources = append(e.sources, 0)
	}
	e.sources[src] = id
	return id
}

// fillSource gives a sender that the AV knows to the C path.
func (e *Endpoint) fillSource(src hw.Source) {
	if int(src) >= len(e.sources) || e.sources[src] == 0 || int(src) >= e.sourceLines.Len() {
		return
	}
	line := e.sourceLines.At(uint32(src))
	if atomic.LoadUint64(&line.Addr) != 0 || e.av.Shared() {
		return
	}
	if n := uint32(src) + 1; n > e.sourcesSeen.Load() {
		e.sourcesSeen.Store(n)
	}
	seen := e.av.Generation()
	addr := e.addrOf(e.sources[src])
	if addr == fi.AddrNotAvail || !e.iface.FillSource(src, line) {
		return
	}
	atomic.StoreUint64(&line.Addr, uint64(addr)+1)
	if e.av.Generation() != seen { // the address may be gone again: dropAddress looked before we stored
		atomic.StoreUint64(&line.Addr, 0)
	}
}

// linkBack is the link to a peer that sent to this endpoint. The caller holds
// the progress lease.
func (e *Endpoint) linkBack(id uint32) *link {
	for int(id) >= len(e.backLinks) {
		e.backLinks = append(e.backLinks, nil)
	}
	if e.backLinks[id] == nil {
		e.backLinks[id] = e.linkTo(e.rx.idNames[id-1])
	}
	return e.backLinks[id]
}

// ownsLink tells whether a remote interface is the peer of a link, by whichever
// of its names: only it may speak about that link's requests.
func (e *Endpoint) ownsLink(src hw.Source, link uint32) bool {
	p := (*e.links.Load())[link].path.Load()
	return p != nil && e.rx.idNames[e.sourceID(src)-1] == p.name
}

// onPeer ends what waits for a peer that is gone. The transport calls it from
// CheckPeers, under the progress lease.
func (e *Endpoint) onPeer(ev hw.PeerEvent) {
	if ev.HasSource && int(ev.Source) < len(e.sources) && e.sources[ev.Source] != 0 {
		id := e.sources[ev.Source]
		e.sources[ev.Source] = 0
		e.rx.sourceLost(e, id)
		e.rx.part(id)
	}
	if ev.Endpoint == nil {
		return
	}
	for _, l := range *e.links.Load() {
		if p := l.path.Load(); p != nil && p.Endpoint == ev.Endpoint {
			e.linkLost(l)
		}
	}
}

// linkLost ends the transmits that wait for the peer's acknowledgement.
func (e *Endpoint) linkLost(l *link) {
	log.Infof(log.EPCtrl, "peer %s is gone", l.name)
	l.mu.Lock()
	e.forget(l)
	l.mu.Unlock()
	e.requests.Range(func(id uint64, req *txRequest) {
		if req.link == l.index {
			e.stopStream(id)
			e.finishTx(req, id, fi.ECONNRESET)
		}
	})
	kept := e.rx.out[:0]
	for _, c := range e.rx.out {
		if c.link != l {
			kept = append(kept, c)
		}
	}
	e.rx.out = kept
}

// sourceLost ends the receives that only a lost peer could have satisfied: the
// fragments that are missing, and those that name it as their source.
func (r *rxContext) sourceLost(e *Endpoint, id uint32) {
	for _, index := range r.pulls {
		if op := r.ops.At(index); op.source == id && op.ep == e.number {
			op.status = fi.ECONNRESET
			r.finishOp(e, op)
		}
	}
	for _, eng := range []*match.Engine{r.tagged, r.untagged} {
		for rv := range eng.Recvs() {
			if rv.Source() == id {
				eng.Remove(rv)
				r.dropRecv(eng, rv, fi.ECONNRESET)
			}
		}
		for m := range eng.Messages() {
			if m.Source() == id && m.Flags&msgRTS != 0 {
				eng.RemoveMessage(m)
				r.releaseHeld(eng, m)
			}
		}
	}
}
