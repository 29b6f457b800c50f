package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The keys by which devices reach memory on other hosts (package rkey): those of messages, and those of regions.

// takeKeys reads the keys of an RTS. False: they do not parse.
func takeKeys(list links.Transports, src hw.Source, m *wire.RTS, payload []byte) bool {
	if m.Flags&(wire.FlagKeyed|wire.FlagPacked) == 0 {
		return len(payload) == 0
	}
	p, _ := list.Of(src)
	return p.On.Device.Take(m, payload, p.Exposes())
}

// findKey returns the device's key of a peer's region: one that the peer has sent, or that a token has which is open.
// If there is none it asks for it.
func (e *peering) findKey(l *link, p *rma.Path, key uint64, device *hw.RemoteKey) bool {
	found, known, ask := p.Keys.Find(key)
	if ask {
		if found, known = e.opened.Find(key, p.On.Number, p.PeerDevice, func(a fi.Addr) bool {
			return e.links.Number(a) == l.Index+1
		}); known {
			p.Keys.Learn(key, found)
		}
	}
	*device = found
	if ask && !known {
		e.stats.Shared(stats.SharedKeyAsked, 1)
		rkey.Ask(p, key, l.Index)
	}
	return known
}

// keyHost is an endpoint as the exchange of keys has it.
type keyHost struct{ leasedHost }

// Back is the path to the sender behind a source.
func (h keyHost) Back(src hw.Source) (rkey.Path, bool) {
	e := h.e
	p, err := e.ep.base.links.Connect(e.linkBack(e.senderOf(src)))
	if own, _ := e.ep.base.links.Transports().Of(src); err != nil || p.Via != own {
		return nil, false
	}
	return p, true
}

// PathOf is the path of a link over the transport of a source.
func (h keyHost) PathOf(src hw.Source, link uint32) (rkey.Path, bool) {
	p := h.e.ep.base.links.At(link).Path()
	if own, _ := h.e.ep.base.links.Transports().Of(src); p == nil || p.Via != own {
		return nil, false
	}
	return p, true
}

// Key appends the key of a region for the device of a path.
func (h keyHost) Key(p rkey.Path, region uint64, to []byte) ([]byte, wire.KeyStatus) {
	if h.e.ep.base.bound.counted() {
		return nil, wire.KeyNever
	}
	return h.e.ep.base.deviceKey(p.(*path).Via, region, to)
}

// deviceKey appends the device's key of a region, which it registers with the transport's memory domain.
func (e *peering) deviceKey(p *transport, key uint64, to []byte) ([]byte, wire.KeyStatus) {
	d := e.domain
	m := d.regions.Enter(key)
	if m == nil {
		return nil, wire.KeyAbsent
	}
	defer m.Gate.Leave()
	if m.OnDevice() && !e.chosen.peerToPeer() {
		return nil, wire.KeyNever
	}
	device, _ := m.Export(&d.published, p.Memory(), to)
	if device == nil {
		return nil, wire.KeyNever
	}
	return device, wire.KeyHere
}
