package provider

import (
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// TestDirectAllocations: reads and writes that the posting thread does allocate
// nothing.
func TestDirectAllocations(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	memory, local := make([]byte, 16<<10), make([]byte, 16<<10)
	y.region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
	for _, read := range []bool{false, true} {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
			Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		settle(t, x, y)
		var got [1]cq.Entry
		if n := testing.AllocsPerRun(200, func() {
			if err := x.ep.RMA(&a); err != nil {
				t.Fatal(err)
			}
			if n, err := x.cq.Read(got[:]); n != 1 {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("read %v: %v allocations", read, n)
		}
	}
}
