package coll

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// landing is a put of a device that has ended and is not in the memory of the other node yet.
type landing struct {
	to    *node
	place func()
}

// devices has the nodes of different hosts reach each other over a device: both sides' memory is registered, and a put
// that has ended need not be in place without a flush.
func (m *mesh) devices() {
	for _, n := range m.nodes {
		p := n.transports[1]
		p.Iface, p.DeviceName = meshIface{n: n, device: true}, "device"
		p.Caps = hw.CapPutZcopy | hw.CapGetZcopy | hw.CapFlush
		p.Device = rkey.Device{Domain: p.Memory()}
	}
}

// device reports whether the path is over one.
func (p meshPath) device() bool { return p.Over().Caps&hw.CapFlush != 0 }

// known fails the test if the device does not know memory of this side.
func (p meshPath) known(s hw.Segment, access hw.Access) {
	p.from.t.Helper()
	r, ok := s.Memory.(*meshRegion)
	if !ok || p.from.keys[r.key] != r || r.n != p.from || r.of.Access&access != access {
		p.from.t.Fatalf("node %d copies %d bytes of memory that its device does not know", p.from.number, s.Len)
	}
	first, at := mem.Address(p.memory(hw.Segment{Addr: r.of.Addr, Len: 1})), mem.Address(p.memory(s))
	if at < first || at+uint64(s.Len) > first+uint64(r.of.Len) {
		p.from.t.Fatalf("node %d copies %d bytes beside what its device knows", p.from.number, s.Len)
	}
}

// putByDevice puts: when it ends the bytes have gone, and some time later they are in place if the region is still
// there.
func (p meshPath) putByDevice(local hw.Segment, at uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	p.known(local, 0)
	r := p.from.keys[key[0]]
	if r == nil || r.n != p.to || r.of.Access&hw.RemoteWrite == 0 || at+uint64(local.Len) > uint64(r.of.Len) {
		return hw.Done, hw.ErrKey
	}
	if p.from.full != 0 && p.from.r.IntN(p.from.full) == 0 {
		return hw.Done, hw.ErrNoResource
	}
	do := func() error {
		p.known(local, 0)
		switch {
		case p.to.gone:
			return hw.ErrPeerDead
		case p.from.keys[r.key] != r:
			return hw.ErrKey
		}
		bytes := append([]byte(nil), p.memory(local)...)
		p.from.landing = append(p.from.landing, landing{p.to, func() {
			if p.from.keys[r.key] == r {
				copy(p.memory(hw.Segment{Addr: r.of.Addr, Len: r.of.Len})[at:], bytes)
			}
		}})
		return nil
	}
	if p.from.r.IntN(3) == 0 {
		return hw.Done, do()
	}
	p.from.flying = append(p.from.flying, func() { c.Update(1, do()) })
	return hw.InProgress, nil
}

// land has some of what a node has put get into place.
func (n *node) land() {
	for len(n.landing) != 0 && n.r.IntN(8) == 0 {
		n.landing[0].place()
		n.landing = n.landing[1:]
	}
}

// Flush ends when what was put to the peer before has ended and is in place.
func (p meshPath) Flush(_ hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	switch n := p.from; {
	case p.to.gone:
		return hw.Done, hw.ErrPeerDead
	case n.crammed, n.r.IntN(3) == 0:
		return hw.Done, hw.ErrNoResource
	case len(n.flying)+len(n.landing) == 0:
		return hw.Done, nil
	}
	p.from.flying = append(p.from.flying, func() {
		var left []landing
		for _, l := range p.from.landing {
			if l.to == p.to {
				l.place()
			} else {
				left = append(left, l)
			}
		}
		p.from.landing = left
		if p.to.gone {
			c.Update(1, hw.ErrPeerDead)
		} else {
			c.Update(1, nil)
		}
	})
	return hw.InProgress, nil
}

func (p meshPath) Fence() error { return nil }
