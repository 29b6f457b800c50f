package rkey

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// find finds the key of region 7, and says what it is not by 0.
func find(k *Peer) (device uint64, ask bool) {
	d, known, ask := k.Find(7)
	if known != (d != hw.RemoteKey{}) {
		return ^uint64(0), ask
	}
	return d[0], ask
}

// TestPeerAsks asks a peer for a key once, and again when many operations have gone as messages.
func TestPeerAsks(t *testing.T) {
	var k Peer
	for round := range 3 {
		if d, ask := find(&k); d != 0 || !ask {
			t.Fatalf("round %d: key %d, ask %t", round, d, ask)
		}
		for i := range askAgain {
			if d, ask := find(&k); d != 0 || ask {
				t.Fatalf("round %d, operation %d: key %d, ask %t", round, i, d, ask)
			}
		}
	}
	k.Learn(7, hw.RemoteKey{5})
	if d, ask := find(&k); d != 5 || ask {
		t.Errorf("key %d, ask %t", d, ask)
	}
	k.Forget(7)
	if d, ask := find(&k); d != 0 || !ask {
		t.Errorf("of a key that is forgotten: %d, ask %t", d, ask)
	}
}

// TestPeerRefuses knows why a region is not reached, until the peer says otherwise.
func TestPeerRefuses(t *testing.T) {
	var k Peer
	if k.Learn(7, hw.RemoteKey{5}); k.Refusal(7) != fi.Success {
		t.Error("a refusal without a question")
	}
	if d, _ := find(&k); d != 0 {
		t.Error("an answer that was not asked for counts")
	}
	k.Refused(7)
	for i := range tryAgain {
		if _, ask := find(&k); ask || k.Refusal(7) != fi.EOPNOTSUPP {
			t.Fatalf("operation %d: ask %t, %v", i, ask, k.Refusal(7))
		}
	}
	if _, ask := find(&k); !ask || k.Refusal(7) != fi.EOPNOTSUPP {
		t.Errorf("then: ask %t, %v", ask, k.Refusal(7))
	}
	k.Absent(7)
	if _, ask := find(&k); !ask || k.Refusal(7) != fi.ENOKEY {
		t.Errorf("absent: ask %t, %v", ask, k.Refusal(7))
	}
	k.Learn(7, hw.RemoteKey{6})
	if d, _ := find(&k); d != 6 || k.Refusal(7) != fi.Success {
		t.Errorf("key %d, %v", d, k.Refusal(7))
	}
}

// TestPeerBound keeps a bounded number of keys, and more than 4,096.
func TestPeerBound(t *testing.T) {
	var k Peer
	most := 0
	for key := range uint64(3 * lists * listKeys) {
		k.Find(key)
		n := 0
		for i := range k.lists {
			if list := k.lists[i].Load(); list != nil {
				n += len(*list)
			}
		}
		if most = max(most, n); n > lists*listKeys {
			t.Fatalf("%d keys", n)
		}
	}
	if most < 4096 {
		t.Errorf("%d keys", most)
	}
}
