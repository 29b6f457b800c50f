package provider

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// An endpoint's driven port is one to other hosts that C polls and sends over
// (hw.Driven), so that a short message between two hosts enters Go on neither
// side. Go is entered for all else that comes there, and for what C finds no
// receive for. Datagrams have none: they are dropped by rules of their own.

// drivenPort is the port to other hosts that C polls, and what C knows of its peers.
type drivenPort struct {
	driven      *port                     // nil: none
	paths       mem.Array[uintptr]        // the ways over it, by lines of peers
	portSources mem.Array[hot.PortSource] // the addresses of its sources plus one
	// portSourcesSeen is how many of portSources were ever used, written and read as sourcesSeen.
	portSourcesSeen atomic.Uint32
}

// openDriven chooses the port and makes the tables that C needs.
func (e *peering) openDriven() error {
	for _, p := range e.ports {
		if p.attr.Caps&hw.CapDriven == 0 || p.network == nil || e.lossy {
			continue
		}
		var err error
		if e.paths, err = mem.NewSparseArray[uintptr](e.peers.Len()); err != nil {
			return err
		}
		if e.portSources, err = mem.NewSparseArray[hot.PortSource](e.sourceLines.Len()); err != nil {
			return err
		}
		e.driven = p
		p.network.Drive(p.Iface.(hw.Driven), &e.hot.PortActive)
		break
	}
	return nil
}

// fillDriven gives the port to C.
func (e *drivenPort) fillDriven(h *hot.EP) {
	if e.driven == nil {
		return
	}
	h.Port = uintptr(unsafe.Pointer(e.driven.network.Driven()))
	h.Paths = uintptr(unsafe.Pointer(e.paths.At(0)))
	h.PortSources = uintptr(unsafe.Pointer(e.portSources.At(0)))
}

// closeDriven gives the tables back.
func (e *drivenPort) closeDriven() {
	e.driven = nil
	_ = e.paths.Free()
	_ = e.portSources.Free()
}

// fillPath publishes the way to a peer over the driven port, and reports whether
// that is how it is reached. The caller has the link's mu.
func (e *drivenPort) fillPath(line uint32, p *path) bool {
	if e.driven == nil || p.port != e.driven {
		return false
	}
	way := p.Endpoint.(hw.DrivenEndpoint).HotPath()
	atomic.StoreUintptr(e.paths.At(line), uintptr(unsafe.Pointer(way)))
	return true
}

// hasPath reports whether a line has a way over the driven port.
func (e *drivenPort) hasPath(line uint32) bool {
	return e.driven != nil && atomic.LoadUintptr(e.paths.At(line)) != 0
}

// dropPath takes the way from a line.
func (e *drivenPort) dropPath(line uint32) {
	if e.driven != nil {
		atomic.StoreUintptr(e.paths.At(line), 0)
	}
}

// fillPortSource gives a sender at the driven port to C if the AV knows it.
func (e *leasedEP) fillPortSource(src hw.Source) {
	own := uint32(src & sourceMask)
	if int(own) >= e.portSources.Len() || atomic.LoadUint64(&e.portSources.At(own).Addr) != 0 ||
		e.av.Shared() || e.av.Renames() {
		return
	}
	s, ok := e.known(src)
	if !ok {
		return
	}
	if own >= e.portSourcesSeen.Load() {
		e.portSourcesSeen.Store(own + 1)
	}
	seen := e.av.Generation()
	addr := e.addrOf(s.id)
	if addr == fi.AddrNotAvail {
		return
	}
	line := e.portSources.At(own)
	line.ID, line.Context, line.Source = s.id, uint32(s.number), uint32(src)
	atomic.StoreUint64(&line.Addr, uint64(addr)+1)
	if e.av.Generation() != seen { // the address may be gone again: dropPortSources ran before the store
		atomic.StoreUint64(&line.Addr, 0)
	}
}

// losePortSource takes a sender that is gone from C.
func (e *leasedEP) losePortSource(src hw.Source) {
	if p, own := e.portOf(src); p == e.driven && p != nil && int(own) < e.portSources.Len() {
		atomic.StoreUint64(&e.portSources.At(uint32(own)).Addr, 0)
	}
}

// dropPortSources takes the senders of an address that is removed from C.
func (e *drivenPort) dropPortSources(addr fi.Addr) {
	if e.driven == nil {
		return
	}
	for i := range e.portSourcesSeen.Load() {
		atomic.CompareAndSwapUint64(&e.portSources.At(i).Addr, uint64(addr)+1, 0)
	}
}

// portPolled reports whether polls of C include the endpoint's driven port: while there is traffic, and always
// where peers may write what rings no bell.
func (e *drivenPort) portPolled() bool {
	if e.driven == nil {
		return false
	}
	n := e.driven.network
	return n.Busy() || atomic.LoadUint32(&n.Driven().Silent) != 0
}

// portPolled says the same of any of the context's endpoints.
func (r *receiving) portPolled() bool {
	for _, e := range r.eps {
		if e.portPolled() {
			return true
		}
	}
	return false
}
