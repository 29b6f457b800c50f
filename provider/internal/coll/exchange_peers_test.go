package coll

import (
	"reflect"
	"testing"

	"github.com/weft-fabric/weft/provider/collective"
)

// TestExchangePeers: what an exchange keeps follows the peers with bytes, in a group of 10,000 at most 100 KiB for 256
// of them, also after one with all; the engine gets the lengths of all.
func TestExchangePeers(t *testing.T) {
	const members, some = 10_000, 128
	g := &Group{rank: 5, members: make([]collMember, members)}
	x, xs := &collExchange{peers: exchangePeers{slots: make([]int32, members-1)}}, &exchanges{}
	few := func(r int) (in, out collective.Piece) {
		if r%(members/some) == 1 {
			in = collective.Piece{Off: uint64(r), Len: uint64(r)}
		}
		if r%(members/some) == 2 || r == g.rank {
			out = collective.Piece{Off: 7, Len: uint64(r)}
		}
		return in, out
	}
	all := func(r int) (in, out collective.Piece) { return collective.Piece{Len: 3}, collective.Piece{Len: 4} }
	for round, of := range []func(r int) (in, out collective.Piece){few, all, few} {
		x.layOut(g, of)
		out, in := xs.lengths(g, x)
		for r := range members {
			given, got := of(r)
			if r == g.rank {
				if x.ownIn != given || x.ownOut != got {
					t.Fatalf("round %d: own pieces %v and %v", round, x.ownIn, x.ownOut)
				}
				continue
			}
			p := g.peerOf(r)
			if out[p] != int64(given.Len) || in[p] != int64(got.Len) || x.peers.out(p) != got {
				t.Fatalf("round %d: rank %d gets %d bytes and gives %d", round, r, out[p], in[p])
			}
			if given.Len != 0 && x.peers.at(p).in != given {
				t.Fatalf("round %d: rank %d is given %v", round, r, x.peers.at(p).in)
			}
		}
		entry := int(reflect.TypeFor[exchangePeer]().Size()) + 4
		if bytes := 4*len(x.peers.slots) + cap(x.peers.all)*entry; round != 1 && bytes > 100<<10 {
			t.Errorf("round %d: %d bytes", round, bytes)
		}
	}
	before := len(x.peers.ids)
	if p := x.peers.at(4000); p.in.Len != 0 || len(x.peers.ids) != before+1 || x.peers.at(4000) != p {
		t.Error("a peer without bytes does not get one entry")
	}
}
