package provider

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The keys by which devices reach memory on other hosts (package rkey): those of messages, and those of regions.

// device is what registers memory for the port's transport.
func (p *port) device() rkey.Device { return rkey.Device{Domain: p.Memory(), Cache: p.cache} }

// over is the port as one-sided operations have it.
func (p *port) over() rma.Port {
	return rma.Port{Attr: &p.attr, Number: p.number, Device: p.device(), Segments: p.segments}
}

// oneSided reports whether the port's device reads and writes registered memory.
func (p *port) oneSided() bool {
	on := p.over()
	return on.OneSided()
}

// exposes reports whether messages to peers of a port are exposed.
func (p *port) exposes() bool {
	return p.attr.Caps&hw.CapGetZcopy != 0 && p.attr.Caps&hw.CapPeerMemory == 0 && p.device().Exposes()
}

// expose registers what a request sends and puts the keys into its RTS, or into keys, whose length it returns. Without
// memory for that the payload goes in fragments.
func (e *txRequests) expose(d rkey.Device, req *txRequest, id uint64, r *wire.RTS, keys []byte) int {
	regions, n, ok := d.Expose(req.IOV[:req.Count], r, keys)
	if ok {
		req.Flags |= txExposed
		e.exposed.Add(id, regions)
	}
	return n
}

// conceal takes back what a request exposed.
func (e *txRequests) conceal(req *txRequest, id uint64) {
	if req.Flags&txExposed != 0 {
		rkey.Close(e.exposed.Remove(id))
	}
}

// takeKeys reads the keys of an RTS. False: they do not parse.
func (e *portSet) takeKeys(src hw.Source, m *wire.RTS, payload []byte) bool {
	if m.Flags&(wire.FlagKeyed|wire.FlagPacked) == 0 {
		return len(payload) == 0
	}
	p, _ := e.portOf(src)
	return p.device().Take(m, payload, p.exposes())
}

// findKey returns the device's key of a peer's region: one that the peer has sent, or that a token has which is open.
// If there is none it asks for it.
func (e *peering) findKey(l *link, p *path, key uint64, device *hw.RemoteKey) bool {
	found, known, ask := p.Keys.Find(key)
	if ask {
		if found, known = e.opened.find(e, l, p, key); known {
			p.Keys.Learn(key, found)
		}
	}
	*device = found
	if ask && !known {
		e.stats.Shared(stats.SharedKeyAsked, 1)
		var b [wire.KeyHeadBytes]byte
		if err := p.AMShort(wire.AMKeyAsk, key, wire.PutKeyAsk(b[:], l.Index), nil); err != nil {
			p.Keys.Forget(key)
		}
	}
	return known
}

// onKeyAsk sends a peer the device's key of a region.
func (e *leasedEP) onKeyAsk(src hw.Source, key uint64, head, payload []byte) {
	link, ok := wire.ParseKeyAsk(head, len(payload))
	if !ok {
		e.malformed(src, "question for a key does not parse")
		return
	}
	p, err := e.connect(e.linkBack(e.senderOf(src)))
	if own, _ := e.portOf(src); err != nil || p.port != own {
		return // the way back is another, where the device's keys mean nothing
	}
	var b [wire.KeyHeadBytes + rkey.MaxKey]byte
	var packed [rkey.MaxKey]byte
	a := wire.KeyAnswer{Link: link, Status: wire.KeyNever}
	if p.Keys != nil && !e.counted() {
		a.Key, a.Status = e.deviceKey(p.port, key, packed[:0])
	}
	_ = p.AMShort(wire.AMKeyAnswer, key, a.Put(b[:]), nil) // no room: the peer asks again
}

// deviceKey appends the device's key of a region, which it registers with the port's memory domain.
func (e *peering) deviceKey(p *port, key uint64, to []byte) ([]byte, wire.KeyStatus) {
	d := e.domain
	m := d.regions.Enter(key)
	if m == nil {
		return nil, wire.KeyAbsent
	}
	defer m.Gate.Leave()
	if m.OnDevice() && !e.peerToPeer() {
		return nil, wire.KeyNever
	}
	device, _ := m.Export(&d.published, p.Memory(), to)
	if device == nil {
		return nil, wire.KeyNever
	}
	return device, wire.KeyHere
}

// onKeyAnswer takes in what a peer says of a region.
func (e *leasedEP) onKeyAnswer(src hw.Source, key uint64, head, payload []byte) {
	var a wire.KeyAnswer
	if !a.Parse(head, len(payload)) || !e.ownsLink(src, a.Link) {
		e.malformed(src, "answer about a key, status %d, %d bytes", a.Status, len(head))
		return
	}
	p := e.linkAt(a.Link).path.Load()
	if own, _ := e.portOf(src); p == nil || p.Keys == nil || p.port != own {
		return // the connection that asked is gone
	}
	switch a.Status {
	case wire.KeyAbsent:
		p.Keys.Absent(key)
	case wire.KeyNever:
		p.Keys.Refused(key)
	default:
		device, err := p.port.Memory().UnpackKey(a.Key)
		if err != nil {
			e.malformed(src, "answer about a key: %v", err)
			return
		}
		p.Keys.Learn(key, device)
	}
}
