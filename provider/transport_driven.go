package provider

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/tables"
)

// An endpoint's driven transport is one to other hosts that the data plane polls and sends over (hw.Driven), so that a
// short message between two hosts enters the runtime on neither side. The runtime takes all else that comes there, and
// what the data plane does not deliver. Datagrams have none: they are dropped by rules of their own.

// drivenTransport is the transport to other hosts that the data plane polls, and what it knows of the peers there.
type drivenTransport struct {
	driven           *transport                     // nil: none
	paths            mem.Array[uintptr]             // the ways over it, by lines of peers
	transportSources mem.Array[hot.TransportSource] // its sources
	transportSenders tables.Senders                 // their addresses
}

// openDriven chooses the transport and makes the tables that the data plane needs.
func (e *peering) openDriven() error {
	for _, p := range e.transports {
		if p.attr.Caps&hw.CapDriven == 0 || p.network == nil || e.lossy {
			continue
		}
		var err error
		if e.paths, err = mem.NewSparseArray[uintptr](e.peers.Len()); err != nil {
			return err
		}
		if e.transportSources, err = mem.NewSparseArray[hot.TransportSource](e.sourceLines.Len()); err != nil {
			return err
		}
		e.transportSenders.Open(func(i uint32) *uint64 { return &e.transportSources.At(i).Addr })
		e.driven = p
		p.network.Drive(p.Iface.(hw.Driven), &e.hot.TransportActive)
		break
	}
	return nil
}

// fillDriven gives the transport to C.
func (e *drivenTransport) fillDriven(h *hot.EP) {
	if e.driven == nil {
		return
	}
	h.Transport = uintptr(unsafe.Pointer(e.driven.network.Driven()))
	h.Paths = uintptr(unsafe.Pointer(e.paths.At(0)))
	h.TransportSources = uintptr(unsafe.Pointer(e.transportSources.At(0)))
}

// closeDriven gives the tables back.
func (e *drivenTransport) closeDriven() {
	e.driven = nil
	_ = e.paths.Free()
	_ = e.transportSources.Free()
}

// fillPath publishes the way to a peer over the driven transport, and reports whether
// that is how it is reached. The caller has the link's mu.
func (e *drivenTransport) fillPath(line uint32, p *path) bool {
	if e.driven == nil || p.transport != e.driven {
		return false
	}
	way := p.Endpoint.(hw.DrivenEndpoint).HotPath()
	atomic.StoreUintptr(e.paths.At(line), uintptr(unsafe.Pointer(way)))
	return true
}

// hasPath reports whether a line has a way over the driven transport.
func (e *drivenTransport) hasPath(line uint32) bool {
	return e.driven != nil && atomic.LoadUintptr(e.paths.At(line)) != 0
}

// dropPath takes the way from a line.
func (e *drivenTransport) dropPath(line uint32) {
	if e.driven != nil {
		atomic.StoreUintptr(e.paths.At(line), 0)
	}
}

// fillTransportSource gives a sender at the driven transport to C, as fillSource.
func (e *leasedEP) fillTransportSource(src hw.Source) {
	own := uint32(src & sourceMask)
	if int(own) >= e.transportSources.Len() || e.transportSenders.Has(own) || e.av.Shared() || e.av.Renames() {
		return
	}
	s, ok := e.known(src)
	if !ok {
		return
	}
	seen := directoryNow(&e.peering)
	if addr := e.addrOf(s.id); reports(&e.Endpoint, addr) {
		line := e.transportSources.At(own)
		line.ID, line.Context, line.Source = s.id, uint32(s.number), uint32(src)
		e.transportSenders.Fill(own, addr, seen, func() tables.Directory { return directoryNow(&e.peering) })
	}
}

// loseTransportSource takes a sender that is gone from C.
func (e *leasedEP) loseTransportSource(src hw.Source) {
	if p, own := e.transportOf(src); p == e.driven && p != nil && int(own) < e.transportSources.Len() {
		atomic.StoreUint64(&e.transportSources.At(uint32(own)).Addr, 0)
	}
}

// transportPolled reports whether polls by the data plane include the endpoint's driven transport: with traffic, and
// always where peers may write what rings no bell.
func (e *drivenTransport) transportPolled() bool {
	if e.driven == nil {
		return false
	}
	n := e.driven.network
	return n.Busy() || atomic.LoadUint32(&n.Driven().Silent) != 0
}

// transportPolled says the same of any of the context's endpoints.
func (r *receiving) transportPolled() bool {
	for _, e := range r.eps {
		if e.transportPolled() {
			return true
		}
	}
	return false
}
