package cxi

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// inNetwork is the address of to for from, in a network of from's.
func inNetwork(t *testing.T, from, to *matching, network int) hw.MatchAddress {
	t.Helper()
	a, err := from.m.ParseMatchName(to.m.MatchName())
	if err != nil {
		t.Fatal(err)
	}
	a, ok := from.m.(hw.NetworkMatcher).InNetwork(a, network)
	if !ok || from.m.(hw.NetworkMatcher).NetworkOf(a) != network {
		t.Fatalf("network %d: %v, %d", network, ok, from.m.(hw.NetworkMatcher).NetworkOf(a))
	}
	return a
}

// TestMatchNetworks: an interface in two virtual networks exchanges messages of every way with one in each, in turns,
// and each of the three reaches memory of the others; what comes says from which network.
func TestMatchNetworks(t *testing.T) {
	const size = 300000
	hub := newMatching(t, MatchConfig{VNIs: []uint16{10, 1}}, size)
	spokes := []*matching{newMatching(t, MatchConfig{VNIs: []uint16{10}}, size), newMatching(t, MatchConfig{}, size)}
	to, back := make([]hw.MatchAddress, 2), make([]hw.MatchAddress, 2)
	for k, x := range spokes {
		to[k], back[k] = inNetwork(t, hub, x, k), inNetwork(t, x, hub, 0)
	}
	pass := func(from, at *matching, dest, source hw.MatchAddress, n int, early bool) {
		t.Helper()
		fillBytes(from.b[:n], uint64(n))
		m := hw.MatchSend{To: dest, Tagged: true, Tag: 7, Local: from.at(0, n), Matched: n%2 == 0, Context: 3}
		r := hw.MatchReceive{From: source, Tagged: true, Tag: 7, Local: at.at(0, n), Context: 4}
		if early {
			from.send(m)
			await(from, at, 0, 0)
			for range 20 {
				at.i.Progress(64)
			}
			at.receive(r)
		} else {
			at.receive(r)
			from.send(m)
		}
		await(from, at, 1, 1)
		if e := at.events[0]; e.Err != nil || e.From != source || e.Length != uint64(n) || from.events[0].Err != nil ||
			!bytes.Equal(at.b[:n], from.b[:n]) {
			t.Fatalf("%d bytes, early %v: %+v, %+v", n, early, e, from.events[0])
		}
		from.clear()
		at.clear()
	}
	for _, n := range []int{0, 8, 192, 193, 18434, size} {
		for k, x := range spokes {
			pass(hub, x, to[k], back[k], n, k == 0)
			pass(x, hub, back[k], to[k], n, k == 1)
		}
	}
	for _, key := range exposed {
		id := hub.expose(key, hw.RemoteRead|hw.RemoteWrite)
		for k, x := range spokes {
			own := x.expose(key, hw.RemoteRead|hw.RemoteWrite)
			for _, c := range []struct {
				from, at *matching
				dest     hw.MatchAddress
			}{{hub, x, to[k]}, {x, hub, back[k]}} {
				fillBytes(c.from.b[:500], key+uint64(k))
				p := hw.MatchTransfer{To: c.dest, Key: key, Offset: 64, Local: c.from.at(0, 500)}
				if err := c.from.transfer(p); err != nil || !bytes.Equal(c.at.b[64:564], c.from.b[:500]) {
					t.Fatalf("key %d, network %d: a write: %v", key, k, err)
				}
				c.from.clear()
				a := hw.MatchAtomic{To: c.dest, Key: key, Offset: 64, Op: hw.MatchSum, Type: hw.MatchUint8, Fetch: true}
				was := c.at.b[64]
				if e, err := c.from.perform(a); err != nil || e[0] != was {
					t.Fatalf("key %d, network %d: a fetch: %v, %v", key, k, err, e)
				}
				c.from.clear()
			}
			x.withdraw(own, key)
			x.clear()
		}
		hub.withdraw(id, key)
		hub.clear()
	}
}

// TestMatchNetworksDriven: threads without the runtime post to both networks, too.
func TestMatchNetworksDriven(t *testing.T) {
	a := newDrivenMatching(t, 4096)
	hub := drivenBy(t, newMatching(t, MatchConfig{VNIs: []uint16{10, 1}}, 4096))
	other := drivenBy(t, newMatching(t, MatchConfig{VNIs: []uint16{10}}, 4096))
	for k := range 100 {
		for network, x := range []*drivenMatching{other, a} {
			r := hot.MatchPost{Kind: hot.MatchReceive | hot.MatchAny, Context: 4}
			m := hot.MatchPost{Peer: uint64(inNetwork(t, hub.matching, x.matching, network)), Context: 3}
			if said := x.give(r, 0, 8, false); said != hot.PathSent {
				t.Fatalf("receive %d: %d", k, said)
			}
			if said := hub.give(m, 0, 8, true); said != hot.PathSent {
				t.Fatalf("message %d: %d", k, said)
			}
			from := uint64(inNetwork(t, x.matching, hub.matching, 0))
			if found := x.next(); found != hot.TransportMatched || x.ev.From != from {
				t.Fatalf("receive %d: %d, %+v", k, found, *x.ev)
			}
			if found := hub.next(); found != hot.TransportMatched || hub.ev.Context != 3 {
				t.Fatalf("message %d: %d, %+v", k, found, *hub.ev)
			}
		}
	}
}

// TestMatchNetworksRefused: what is no list of VNIs, a VNI that the service does not have, and networks that are none.
func TestMatchNetworksRefused(t *testing.T) {
	for _, vnis := range [][]uint16{{0}, {1, 1}, {1, 2, 3, 4, 5}} {
		if _, err := domain(t).Open(Config{Match: &MatchConfig{VNIs: vnis}}); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d: %v", vnis, err)
		}
	}
	if i, err := domain(t).Open(Config{Match: &MatchConfig{VNIs: []uint16{1, 99}}}); err == nil {
		t.Errorf("VNI 99: %v", i.Close())
	}
	x := newMatching(t, MatchConfig{VNIs: []uint16{10, 1}}, 64)
	for _, c := range []struct {
		service uint32
		vni     uint16
		want    error
	}{{1, 1, nil}, {1, 10, nil}, {1, 99, hw.ErrPermission}, {1, 0, hw.ErrInvalid}, {2, 1, hw.ErrInvalid}} {
		if err := x.i.d.Admits(c.service, c.vni); !errors.Is(err, c.want) {
			t.Errorf("service %d, VNI %d: %v", c.service, c.vni, err)
		}
	}
	n := x.m.(hw.NetworkMatcher)
	if a, ok := n.InNetwork(x.self, 2); ok || a != x.self {
		t.Errorf("a third network: %#x", uint64(a))
	}
	if k := n.NetworkOf(x.self&^(0xffff<<32) | 99<<32); k != -1 {
		t.Errorf("VNI 99 is network %d", k)
	}
}

// TestMatchNetworksApart: what goes to an interface of another virtual network does not arrive: messages end with an
// error, and so do reads of its memory.
func TestMatchNetworksApart(t *testing.T) {
	a := newMatching(t, MatchConfig{VNIs: []uint16{10}, PID: new(uint32(77))}, 4096)
	b := newMatching(t, MatchConfig{PID: new(uint32(78))}, 4096)
	a.expose(5, hw.RemoteRead)
	a.clear()
	a.receive(hw.MatchReceive{From: hw.AnyAddress, Local: a.at(0, 8), Context: 4})
	to := inNetwork(t, b, a, 0)
	b.send(hw.MatchSend{To: to, Inject: []byte{1}, Context: 3})
	await(b, b, 1, 1)
	if err := b.events[0].Err; err == nil {
		t.Error("a message arrives in another network")
	}
	b.clear()
	if err := b.transfer(hw.MatchTransfer{To: to, Key: 5, Get: true, Local: b.at(0, 8)}); err == nil {
		t.Error("memory of another network is read")
	}
	for range 100 {
		a.i.Progress(64)
	}
	if len(a.events) != 0 {
		t.Errorf("%+v", a.events)
	}
	stranger := to&^(0xffff<<32) | 10<<32
	if err := b.m.PostMatched(&hw.MatchSend{To: stranger, Inject: []byte{1}}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a message to a network that the interface is not in: %v", err)
	}
}
