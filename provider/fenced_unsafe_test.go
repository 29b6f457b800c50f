package provider

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
)

// TestNothingAfterClose has peers with automatic progress close as soon as an atomic operation has been performed, the
// target when it sees it and the other when it is complete. What they unmap faults from then on, so a thread of weft's
// that still used it would end the test, and could not change what else the process had mapped there.
func TestNothingAfterClose(t *testing.T) {
	hints := progressHints(fi.ProgressAuto, fi.ProgressAuto)
	hints.Caps |= fi.RMA | fi.Atomic
	quick := func(c *config.Config) { c.PeerCheckInterval = time.Millisecond }
	open := map[string]func(t *testing.T) (x, y *side){
		"shared memory": func(t *testing.T) (x, y *side) { return newBench(t, quick, hints).pair(t) },
		"UDP": func(t *testing.T) (x, y *side) {
			sides := overUDPWith(t, 2, hints, quick)
			return sides[0], sides[1]
		},
	}
	for name, pair := range open {
		for range 8 {
			t.Run(name, func(t *testing.T) {
				t.Cleanup(mem.Fence()) // after what else is closed at the end
				x, y := pair(t)
				closesAfterAtomic(t, x, y)
			})
		}
	}
}

func closesAfterAtomic(t *testing.T, x, y *side) {
	word, one := new(uint64), uint64(1)
	bytes := func(w *uint64) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(w)), 8) }
	y.region(bytes(word), 1, fi.RemoteWrite)
	closed := make(chan bool)
	go func() {
		defer close(closed)
		for end := time.Now().Add(time.Minute); atomic.LoadUint64(word) == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		y.close()
	}()
	post(t, func() error {
		return x.ep.Atomic(&AtomicArgs{
			Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(bytes(&one)), Remote: []fi.RMAIOVec{{Len: 8, Key: 1}},
			Dest: x.addr[y], Context: 1, Flags: fi.DeliveryComplete,
		})
	})
	if e := x.completed(); e.Context != 1 {
		t.Errorf("completion %+v", e)
	}
	x.close()
	<-closed
	if got := atomic.LoadUint64(word); got != 1 {
		t.Errorf("the word is %d", got)
	}
}
