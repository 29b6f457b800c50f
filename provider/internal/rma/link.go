package rma

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Link is what operations have of one peer of an endpoint, whatever path leads there.
type Link struct {
	Index uint32 // by which requests name it, immutable

	// InFlight counts operations that wait for the peer's answer. Added to by posting threads, subtracted from by the
	// lease holder; sequentially consistent.
	InFlight atomic.Int64

	// Order counts the operations of an endpoint that keeps one-sided operations in order.
	Order ordering.Peer

	// flow is the flow of segments over the path, nil while there was none. The lease holder's.
	flow *Flow
}

// Transport is what paths lead over. Immutable once there are paths.
type Transport struct {
	Attr     *hw.Attr
	Number   uint32
	Device   rkey.Device // registers memory with it
	Segments bool        // long operations are cut into segments
}

// oneSidedCaps are the abilities by which a device reads and writes memory.
const oneSidedCaps = hw.CapPutZcopy | hw.CapGetZcopy | hw.CapOneSidedFree | hw.CapFlush

// OneSided reports whether the transport's device reads and writes registered memory. Registrations are cached there.
func (p *Transport) OneSided() bool {
	return p.Device.Cache != nil && p.Attr.Caps&oneSidedCaps == oneSidedCaps &&
		p.Device.Domain.Attr().MaxKey <= rkey.MaxKey
}

// reachesDevices reports whether the transport's device reaches memory of other devices.
func (p *Transport) reachesDevices() bool { return p.Device.Domain.Attr().Caps&hw.MDDMABuf != 0 }

// Path is a connection to a peer: a transport endpoint, and what operations keep with it. Its fields are immutable once
// it is used.
type Path struct {
	hw.Endpoint
	On     *Transport
	Keys   *rkey.Peer // of the peer's regions, nil: no device reaches the peer's memory
	Serial uint32     // how many paths the link has had with this one, 0 if it belongs to none
	Back   bool       // the path belongs to a source and to no link
	// PeerDevice is the address of the peer's interface on the device that leads there, nil: none.
	PeerDevice []byte

	// rounds are those of shared operations, nil: there are none.
	rounds *Rounds
	// flow is the flow of segments over a path that belongs to no link, nil while there was none. The lease holder's.
	flow *Flow
}

// Transport is the transport's endpoint, with its optional abilities.
func (p *Path) Transport() hw.Endpoint { return p.Endpoint }

// TransportNumber is the number of the transport that the path leads over.
func (p *Path) TransportNumber() uint32 { return p.On.Number }

// Attr is what that transport can.
func (p *Path) Attr() *hw.Attr { return p.On.Attr }

// TransportDevice registers memory with the transport.
func (p *Path) TransportDevice() rkey.Device { return p.On.Device }

// DeviceKeys are the device's keys of the peer's regions.
func (p *Path) DeviceKeys() *rkey.Peer { return p.Keys }

// MaxPart is how many bytes of payload a message has at most.
func (p *Path) MaxPart() int { return p.On.Attr.MaxAMBcopy }

// Rounds are those of operations that are shared with the peer, nil: there are none.
func (p *Path) Rounds() *Rounds { return p.rounds }

// joins reports whether messages over the path may have several elements.
func (p *Path) joins() bool { return p.On.Attr.Caps&hw.CapDirectRing == 0 }
