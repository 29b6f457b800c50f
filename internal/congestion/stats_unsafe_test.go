package congestion

import (
	"testing"
	"unsafe"
)

// TestTableLines: no two peers of a table share a cache line, whatever their
// number.
func TestTableLines(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 10, 17, 100, 1000} {
		for range 20 {
			table := NewTable(n)
			if at := uintptr(unsafe.Pointer(table.Peer(0))); at%cacheLine != 0 {
				t.Fatalf("a table of %d begins at %#x", n, at)
			}
		}
	}
	for i := range 2 {
		if at := unsafe.Offsetof(Stats{}.copies) + uintptr(i)*unsafe.Sizeof(record{}); at%cacheLine != 0 {
			t.Errorf("copy %d lies at %d", i, at)
		}
	}
}
