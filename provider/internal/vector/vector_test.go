package vector

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestNoAllocation: a walk into a slice with room allocates nothing.
func TestNoAllocation(t *testing.T) {
	to := make([]fi.IOVec, 0, 2)
	if n := testing.AllocsPerRun(100, func() {
		iov := [...]fi.IOVec{{Base: 100, Len: 3}, {Base: 300, Len: 5}} // on the stack
		to = Window(to[:0], iov[:], 1, 6)
	}); n != 0 || len(to) != 2 {
		t.Errorf("%v allocations, %v", n, to)
	}
}
