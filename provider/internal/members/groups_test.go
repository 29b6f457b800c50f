package members

import (
	"testing"

	"github.com/weft-fabric/weft/provider/names"
)

// TestPeers: a peer is the same for all groups that use it, and gone when none does.
func TestPeers(t *testing.T) {
	g := &Groups{}
	l := &peerList{g: g, of: map[names.Name]*peer{}}
	g.peers = l
	a, b := names.Name{Family: names.AFWord, IP: [16]byte{1}}, names.Name{Family: names.AFWord, IP: [16]byte{2}}
	first, second, again := l.use(a, nil), l.use(b, nil), l.use(a, nil)
	if first != again || first == second || first.Number() == second.Number() || len(l.all()) != 2 {
		t.Fatalf("%+v", l.all())
	}
	first.Release()
	if l.use(a, nil) != first {
		t.Error("a peer that a group uses is another's")
	}
	first.Release()
	again.Release()
	if list := l.all(); len(list) != 1 || list[0] != second {
		t.Errorf("%d peers are left", len(list))
	}
	if next := l.use(a, nil); next == first || next.Number() == first.Number() {
		t.Error("a peer that no group has used is there")
	}
}
