package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/links"
)

// An endpoint's driven transport is one to other hosts that the data plane polls and sends over (hw.Driven), so that a
// short message between two hosts enters the runtime on neither side. The runtime takes all else that comes there, and
// what the data plane does not deliver. Datagrams have none: they are dropped by rules of their own.

// drivenTransport is what the data plane knows of the senders at the transport that it polls (links.Links.Driven).
type drivenTransport struct {
	transportSources mem.Array[hot.TransportSource] // the addresses of its sources plus one
	// transportSourcesSeen is how many of transportSources were ever used, written and read as sourcesSeen.
	transportSourcesSeen atomic.Uint32
}

// openDriven chooses the transport and makes the tables that the data plane needs.
func (e *peering) openDriven() error {
	for _, p := range e.links.Transports() {
		if p.Attr.Caps&hw.CapDriven == 0 || p.Network == nil || e.chosen.lossy {
			continue
		}
		if err := e.links.Drive(p); err != nil {
			return err
		}
		var err error
		if e.driven.transportSources, err = mem.NewSparseArray[hot.TransportSource](e.sourceLines.Len()); err != nil {
			return err
		}
		p.Network.Drive(p.Iface.(hw.Driven), &e.hot.TransportActive)
		break
	}
	return nil
}

// fillDriven gives the transport to C.
func (e *peering) fillDriven(h *hot.EP) {
	p := e.links.Driven()
	if p == nil {
		return
	}
	h.Transport = addressOf(p.Network.Driven())
	h.TransportSources = addressOf(e.driven.transportSources.At(0))
}

// closeDriven gives the table back.
func (e *drivenTransport) closeDriven() {
	_ = e.transportSources.Free()
}

// fillTransportSource gives a sender at the driven transport to C if the AV knows it.
func (e *leasedEP) fillTransportSource(src hw.Source) {
	own := uint32(src & links.SourceMask)
	if int(own) >= e.ep.driven.transportSources.Len() ||
		atomic.LoadUint64(&e.ep.driven.transportSources.At(own).Addr) != 0 ||
		e.ep.bound.av.Shared() || e.ep.bound.av.Renames() {
		return
	}
	s, ok := e.senders.Known(src)
	if !ok {
		return
	}
	if own >= e.ep.driven.transportSourcesSeen.Load() {
		e.ep.driven.transportSourcesSeen.Store(own + 1)
	}
	seen := e.ep.bound.av.Generation()
	addr := e.addrOf(s.ID)
	if addr == fi.AddrNotAvail {
		return
	}
	line := e.ep.driven.transportSources.At(own)
	line.ID, line.Context, line.Source = s.ID, uint32(s.Number), uint32(src)
	atomic.StoreUint64(&line.Addr, uint64(addr)+1)
	if e.ep.bound.av.Generation() != seen { // the address may be gone again: dropTransportSources ran before the store
		atomic.StoreUint64(&line.Addr, 0)
	}
}

// loseTransportSource takes a sender that is gone from C.
func (e *leasedEP) loseTransportSource(src hw.Source) {
	p, own := e.ep.links.Transports().Of(src)
	if p != nil && p == e.ep.links.Driven() && int(own) < e.ep.driven.transportSources.Len() {
		atomic.StoreUint64(&e.ep.driven.transportSources.At(uint32(own)).Addr, 0)
	}
}

// dropTransportSources takes the senders of an address that is removed from C.
func (e *peering) dropTransportSources(addr fi.Addr) {
	if e.links.Driven() == nil {
		return
	}
	for i := range e.driven.transportSourcesSeen.Load() {
		atomic.CompareAndSwapUint64(&e.driven.transportSources.At(i).Addr, uint64(addr)+1, 0)
	}
}

// transportPolled reports whether polls by the data plane include the endpoint's driven transport: with traffic, and
// always where peers may write what rings no bell.
func (e *peering) transportPolled() bool {
	if e.links.Driven() == nil {
		return false
	}
	n := e.links.Driven().Network
	return n.Busy() || atomic.LoadUint32(&n.Driven().Silent) != 0
}

// transportPolled says the same of any of the context's endpoints.
func (r *receiving) transportPolled() bool {
	for _, e := range r.eps {
		if e.ep.transportPolled() {
			return true
		}
	}
	return false
}
