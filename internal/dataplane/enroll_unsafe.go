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
	takeLine(t)
	return 0
}

// takeLine gives a thread a line, if there is one left.
func takeLine(t *hot.Thread) {
	for i := range hot.EpochReaders {
		p := hot.EpochReaderAt(i)
		if atomic.LoadUint32(&p.Taken) == 0 && atomic.CompareAndSwapUint32(&p.Taken, 0, 1) {
			t.Line = uintptr(unsafe.Pointer(p))
			return
		}
	}
}

// goroutine is Post.Thread of goroutines, which have no number: they add to the last line of counters, and prefer the
// first stripe, so that what one of them posts completes in its order.
const goroutine = 1 << 31

// EnrollGo gives a line to what a goroutine uses in the place of a thread. False: none is left.
func EnrollGo(t *hot.Thread) bool {
	takeLine(t)
	return t.Line != 0
}

// DischargeGo takes it back: release, with the acquire of the thread that gets it next. A thread that has left a call
// by a panic is still an epoch reader, and is none from here on.
func DischargeGo(t *hot.Thread) {
	if line := (*hot.EpochReader)(pointer(t.Line)); line != nil {
		if line.Posting&1 != 0 {
			turn(line)
		}
		order.Store32(&line.Taken, 0)
	}
	t.Line = 0
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
