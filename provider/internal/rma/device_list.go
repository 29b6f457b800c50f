package rma

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
)

// Elements of lists that a device moves without requests of their own (list.ByDevice): what else they need.

// linked is the peer of a list, as links are embedded there.
type linked interface{ RMALink() *Link }

// pathed is the path of one, likewise.
type pathed interface{ RMAPath() *Path }

// RMALink is the link.
func (l *Link) RMALink() *Link { return l }

// RMAPath is the path.
func (p *Path) RMAPath() *Path { return p }

// byDevice is an endpoint's.
type byDevice struct{ in *Initiator }

// ByDevice is what the elements of the lists of an endpoint need.
func ByDevice(in *Initiator) list.ByDevice { return byDevice{in} }

// DeviceKey finds a device's key, or asks for it.
func (b byDevice) DeviceKey(to list.Peer, over list.Path, key uint64) (device hw.RemoteKey, known bool) {
	known = b.in.host.FindKey(to.(linked).RMALink(), over.(pathed).RMAPath(), key, &device)
	return device, known
}

// KeyRefused forgets a key that the device of a path has refused.
func (b byDevice) KeyRefused(over list.Path, key uint64) {
	p := over.(pathed).RMAPath()
	b.in.host.KeyRefused(p, key)
	p.Keys.Forget(key)
}

// CountDevice counts elements that a device was given.
func (b byDevice) CountDevice(to list.Peer, read bool, elements, n uint64) {
	b.in.counts.Direct(read, elements, n)
	b.in.counts.Shared(stats.SharedDevice, elements)
	b.in.host.Took(to.(linked).RMALink(), list.WayRDMA, elements, n)
}

// OneSided is by what the device of the path reads and writes, and the most bytes of an operation.
func (p *Path) OneSided(read bool) (by hw.OneSided, longest uint64) {
	longest = p.On.Attr.MaxPutZcopy
	if read {
		longest = p.On.Attr.MaxGetZcopy
	}
	by, _ = p.Endpoint.(hw.OneSided)
	return by, min(longest, rendezvous.PieceBytes)
}

// Uncork has the device begin with what it has kept for the next operation (Operation.More).
func (p *Path) Uncork() {
	if c, ok := p.Endpoint.(hw.Corker); ok {
		c.Uncork()
	}
}
