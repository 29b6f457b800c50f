package links

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// Path is a transport endpoint, boxed so that it can be swapped atomically. Its fields are immutable once it is used,
// but former.
type Path struct {
	rma.Path
	Via  *Transport
	Peer peers.Address // the peer's own, whose name may differ from the link's
	// Slots is the address of the peer's inbound ring, as lines of the hot peer table have it, 0: none.
	Slots uintptr
	// former says that the peer's address was inserted into the address vector again since it was connected:
	// another endpoint may have it now. Written under link.mu, read by Connect; sequentially consistent.
	former atomic.Bool
}

// NewPath is the path over an endpoint of a transport.
func NewPath(ep hw.Endpoint, p *Transport) *Path {
	return &Path{Path: rma.Path{Endpoint: ep, On: &p.On}, Via: p}
}

// gone is what is left of a path whose end was reported.
func (p *Path) gone() *Path {
	g := NewPath(peers.Gone{PathLost: errors.Is(p.Err(), hw.ErrPathLost)}, p.Via)
	g.Peer, g.Slots = p.Peer, p.Slots
	g.former.Store(p.former.Load())
	return g
}

// Over is the transport as collective operations have it.
func (p *Path) Over() *coll.Transport { return &p.Via.Coll }

// Mover copies pieces by the posting thread, nil: none does.
func (p *Path) Mover() hw.PieceMover {
	mover, ok := p.Endpoint.(hw.PieceMover)
	if !ok || p.Via.Attr.Caps&hw.CapPieces == 0 {
		return nil
	}
	return mover
}

// Device is the device that reaches the peer's memory, nil: none does.
func (p *Path) Device() list.Device {
	if p.Keys == nil {
		return nil
	}
	return p.Via
}

// AckOfNote reports whether a notification over the path, with flags of its post, ends when the receiver answers.
func (p *Path) AckOfNote(flags uint64) bool {
	return flags&fi.DeliveryComplete != 0 ||
		flags&fi.TransmitComplete != 0 && p.Via.Attr.Caps&hw.CapDirectRing == 0
}
