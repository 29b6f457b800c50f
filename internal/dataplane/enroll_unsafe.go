package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// numbers has a bit for each number that a thread has. CAS by threads that begin, cleared with release by those that
// end: what a thread added to its lines of counters is
// there for the next one with its number to add to.
var numbers uint64

const _ = 64 - stats.Lines // a number has a bit

// Enroll gives a thread a number, and a line to say that it posts, for as long as it lives. With no number left it has
// that which several have, with no line left none. The shim takes both back when the thread ends. at is the address of
// its hot.Thread.
func Enroll(at, _, _, _ uintptr) uintptr {
	t := (*hot.Thread)(pointer(at))
	if t.Number == 0 || t.Number == stats.Lines {
		t.Number, t.Numbers = freeNumber()+1, uintptr(unsafe.Pointer(&numbers))
	}
	for i := range hot.EpochReaders {
		p := hot.EpochReaderAt(i)
		if atomic.LoadUint32(&p.Taken) == 0 && atomic.CompareAndSwapUint32(&p.Taken, 0, 1) {
			t.Line = uintptr(unsafe.Pointer(p))
			break
		}
	}
	return 0
}

// Discharge takes back what Enroll gave to a thread, which posts no more: release, with the acquire of the thread that
// gets it next. The shim does the same where a thread of C ends, at a time when it cannot call the data plane.
func Discharge(t *hot.Thread) {
	if t.Line != 0 {
		order.Store32(&(*hot.EpochReader)(pointer(t.Line)).Taken, 0)
	}
	if t.Number != 0 && t.Number < stats.Lines {
		atomic.AndUint64(&numbers, ^(1 << (t.Number - 1)))
	}
	t.Line, t.Number = 0, 0
}

func freeNumber() uint32 {
	for {
		seen := atomic.LoadUint64(&numbers)
		n := uint32(bits.TrailingZeros64(^seen))
		if n >= stats.Lines-1 || atomic.CompareAndSwapUint64(&numbers, seen, seen|1<<n) {
			return min(n, stats.Lines-1)
		}
	}
}
