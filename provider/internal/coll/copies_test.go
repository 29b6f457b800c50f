package coll

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
)

// sum posts an allreduce of count numbers.
func (n *node) sum(g *Group, in, out []byte, count uint64) error {
	return n.groups.Collective(&CollectiveArgs{
		Kind: collective.AllReduce, Buf: uintptr(mem.Address(in)), Result: uintptr(mem.Address(out)),
		Count: count, Datatype: fi.Uint64, Op: fi.OpSum, Group: g.Addr(), Context: 5,
	})
}

// TestOffersTakenBack: chunks go as messages whose memory was offered and cannot be reached.
func TestOffersTakenBack(t *testing.T) {
	for _, f := range []meshForm{meshPuts, meshGets} {
		const slice = 200000
		m := newMesh(t, onHosts(3), f.set)
		groups := m.join()
		in, out := make([][]byte, 3), make([][]byte, 3)
		m.still = true // the offers are out, and nothing is there
		for i := range 3 {
			in[i], out[i] = m.fill(3*slice), make([]byte, 3*slice)
			m.postAllToAll(i, groups[i], in[i], out[i], slice)
		}
		offers := 0
		for _, g := range groups {
			for _, o := range g.runs.under {
				for i := range o.exchange.peers.all {
					if p := &o.exchange.peers.all[i]; p.region != nil {
						_ = p.region.Close()
						offers++
					}
				}
			}
		}
		m.still = false
		for i := range 3 {
			if err := m.outcome(i); err != fi.Success {
				t.Fatalf("%s: rank %d ends with %v", f.name, i, err)
			}
		}
		if m.compare(in, out, slice); offers != 6 {
			t.Errorf("%s: %d of 6 slices are offered", f.name, offers)
		}
	}
}

// TestCopiesEndFirst: an operation that has failed completes when nothing that it puts is read any more, and nothing
// that it gets is written. What its peers may have the keys of is registered no more, nor is it known to a device.
func TestCopiesEndFirst(t *testing.T) {
	for _, f := range []meshForm{meshPuts, meshGets} {
		t.Run(f.name, func(t *testing.T) { copiesEndFirst(t, f, false) })
		t.Run(f.name+" by device", func(t *testing.T) { copiesEndFirst(t, f, true) })
	}
}

func copiesEndFirst(t *testing.T, f meshForm, devices bool) {
	const slice = 4 << 20
	m := newMesh(t, onHosts(3), f.set)
	if devices {
		m.devices()
	}
	groups := m.join()
	for i := range 2 {
		m.postAllToAll(i, groups[i], make([]byte, 3*slice), make([]byte, 3*slice), slice)
	}
	n := m.nodes[0]
	var x *collExchange
	m.until("copies under way", func() bool {
		list := n.protocol.ordered.list
		if len(list) == 0 || list[0].exchange.flying == 0 {
			return false
		}
		o := list[0]
		x = o.exchange
		n.protocol.fail(o, fi.ECONNRESET)
		if o.exchange != x || x.flying == 0 || len(n.ended) != 0 {
			t.Errorf("%s: the operation has completed with %d copies under way", f.name, x.flying)
		}
		for _, r := range m.keys {
			if r.n == n && r.of.Access&(hw.RemoteRead|hw.RemoteWrite) != 0 {
				t.Errorf("%d bytes of a failed operation are reached by peers", r.of.Len)
			}
		}
		if n.keeps != 2 {
			t.Errorf("%d of 2 keys are not given again", n.keeps)
		}
		return true
	})
	for i := range 2 {
		if err := m.outcome(i); err != fi.ECONNRESET {
			t.Errorf("%s: rank %d ends with %v", f.name, i, err)
		}
	}
	if x.flying != 0 || len(m.keys) != 0 {
		t.Errorf("%s: the operation has completed with %d copies under way, %d regions", f.name, x.flying, len(m.keys))
	}
}

// TestCopiesClosed: an endpoint that closes while flushes wait for room behind its puts leaves nothing that a device
// knows.
func TestCopiesClosed(t *testing.T) {
	const slice = 1 << 20
	m := newMesh(t, onHosts(3), meshPuts.set)
	m.devices()
	groups := m.join()
	for i := range 3 {
		m.postAllToAll(i, groups[i], make([]byte, 3*slice), make([]byte, 3*slice), slice)
	}
	n := m.nodes[0]
	n.crammed = true
	m.until("puts that have ended", func() bool { return len(n.protocol.ordered.unflushed) > 2 && len(n.flying) == 0 })
	m.leave(groups[0])
	n.closed = true
	n.protocol.Close()
	for _, r := range m.keys {
		if r.n == n {
			t.Errorf("a device knows %d bytes of the endpoint that is closed", r.of.Len)
		}
	}
}

// TestDeviceMemory: chunks go as messages whose memory a device does not take, at either side, and, of puts, those that
// are sent before the receiver's offer comes.
func TestDeviceMemory(t *testing.T) {
	for _, f := range []meshForm{meshPuts, meshGets} {
		for _, locked := range [][]int{{}, {0}, {1, 2}, {0, 1, 2}} {
			m := newMesh(t, onHosts(3), f.set)
			m.devices()
			for _, i := range locked {
				m.nodes[i].locked = true
			}
			m.allToAll(m.join(), 200000)
			copied := uint64(0)
			for _, n := range m.nodes {
				copied += f.bytes(n)
			}
			most := [...]uint64{6, 2, 0, 0}[len(locked)] * 200000
			if copied > most || copied < most/2 || f == meshGets && copied != most || len(m.keys) != 0 {
				t.Errorf("%s: %d ranks without such memory: %d bytes are copied, %d regions are left",
					f.name, len(locked), copied, len(m.keys))
			}
		}
	}
}
