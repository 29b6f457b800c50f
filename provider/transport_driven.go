package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/tables"
)

// An endpoint's driven transport is one to other hosts that the data plane polls and sends over (hw.Driven), so that a
// short message between two hosts enters the runtime on neither side. The runtime takes all else that comes there, and
// what the data plane does not deliver. Datagrams have none: they are dropped by rules of their own.

// drivenTransport is what the data plane knows of the senders at the transport that it polls (links.Links.Driven).
type drivenTransport struct {
	transportSources mem.Array[hot.TransportSource] // its sources
	sourceAddrs      tables.Senders                 // their addresses
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
		e.driven.sourceAddrs.Open(func(i uint32) *uint64 { return &e.driven.transportSources.At(i).Addr })
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

// fillTransportSource gives a sender at the driven transport to C, as fillSource.
func (e *leasedEP) fillTransportSource(src hw.Source) {
	own := uint32(src & links.SourceMask)
	if int(own) >= e.ep.base.driven.transportSources.Len() || e.ep.base.driven.sourceAddrs.Has(own) ||
		e.ep.base.bound.av.Shared() || e.ep.base.bound.av.Renames() {
		return
	}
	s, ok := e.senders.Known(src)
	if !ok {
		return
	}
	seen := e.ep.base.directoryNow()
	if addr := e.addrOf(s.ID); reports(&e.ep, addr) {
		line := e.ep.base.driven.transportSources.At(own)
		line.ID, line.Context, line.Source = s.ID, uint32(s.Number), uint32(src)
		e.ep.base.driven.sourceAddrs.Fill(own, addr, seen, e.ep.base.directoryNow)
	}
}

// loseTransportSource takes a sender that is gone from C.
func (e *leasedEP) loseTransportSource(src hw.Source) {
	p, own := e.ep.base.links.Transports().Of(src)
	if p != nil && p == e.ep.base.links.Driven() && int(own) < e.ep.base.driven.transportSources.Len() {
		atomic.StoreUint64(&e.ep.base.driven.transportSources.At(uint32(own)).Addr, 0)
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
		if e.ep.base.transportPolled() {
			return true
		}
	}
	return false
}
