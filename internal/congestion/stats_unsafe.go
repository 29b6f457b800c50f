package congestion

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/order"
)

// cacheLine is the size of one on the processors that weft runs on. The sizes
// below are three lines and one.
const cacheLine = 64

var (
	_ [3*cacheLine - unsafe.Sizeof(Stats{})]byte
	_ [unsafe.Sizeof(Stats{}) - 3*cacheLine]byte
	_ [cacheLine - unsafe.Sizeof(record{})]byte
)

// publish gives the owner bit back with a release store.
func (s *Stats) publish(state uint64) {
	order.Store64((*uint64)(unsafe.Pointer(&s.state)), state) // W2
}
