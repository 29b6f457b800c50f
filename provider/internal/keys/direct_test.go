package keys

import (
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/hot"
)

// find is what the data plane does.
func find(t *Direct, key uint64) *hot.Region {
	place := hot.KeyPlace(key, DirectSize)
	for n := range uint32(hot.KeyProbes) {
		if r := t.table.At((place + n) & (DirectSize - 1)); atomic.LoadUint32(&r.Live) != 0 && r.Key == key {
			return r
		}
	}
	return nil
}

// TestDirect: regions are found by their keys until they are removed, and those that have no room are not entered.
func TestDirect(t *testing.T) {
	var d Direct
	defer d.Close()
	if first := d.First(); first == nil || first != d.First() {
		t.Fatal("no table, or several")
	}
	entries := map[uint64]*hot.Region{}
	for key := uint64(1); key <= 2*DirectSize; key++ {
		if r := d.Add(hot.Region{Key: key, Base: 7, Addr: key << 12, Len: 100, Access: hot.KeyRead}); r != nil {
			entries[key] = r
		}
	}
	if n := len(entries); n < DirectSize/2 || n > DirectSize {
		t.Errorf("%d of %d regions entered in %d places", n, 2*DirectSize, DirectSize)
	}
	for key, r := range entries {
		if find(&d, key) != r || r.Addr != key<<12 || r.Base != 7 || r.Len != 100 || r.Access != hot.KeyRead {
			t.Fatalf("key %d: %+v", key, r)
		}
		d.Remove(nil, r)
		if find(&d, key) != nil {
			t.Fatalf("key %d is found after it was removed", key)
		}
		if d.Add(hot.Region{Key: key}) == nil {
			t.Fatalf("no room for key %d in its place", key)
		}
	}
}
