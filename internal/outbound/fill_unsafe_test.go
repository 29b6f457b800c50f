package outbound

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// TestFillChooses has payload go past the caches where the ordinary copy takes several times as long, and tries the
// other way once a period. A copy costs what its way does only once all buffers were written that way.
func TestFillChooses(t *testing.T) {
	const buffers = 42
	s := new(hot.Stripe)
	costs := [2]uint64{100, 60} // near
	way, since := uintptr(0), buffers
	run := func(n int) (past int) {
		for range n {
			w, cost := nextFill(s)
			if since++; w != way {
				way, since = w, 0
			}
			if cost != nil {
				ticks := costs[w]
				if since < buffers {
					ticks = 80
				}
				learn(cost, ticks)
			}
			past += int(w)
		}
		return past
	}
	if past := run(fillFirst); past != 0 {
		t.Errorf("%d of the first copies went past the caches", past)
	}
	if past := run(3 * fillPeriod); past != 3*fillTrial {
		t.Errorf("%d of %d copies to a near peer went past the caches", past, 3*fillPeriod)
	}
	costs[0] = 1000 // the peer has moved away
	run(fillPeriod)
	if past := run(3 * fillPeriod); past != 3*fillPeriod-2*fillTrial {
		t.Errorf("%d of %d copies to a far peer went past the caches", past, 3*fillPeriod)
	}
	costs[0] = 100 // and back
	run(fillPeriod)
	if past := run(3 * fillPeriod); past != 3*fillTrial {
		t.Errorf("%d of %d copies to a near peer went past the caches", past, 3*fillPeriod)
	}
}

// TestFillInterrupted has a copy that was interrupted count for little.
func TestFillInterrupted(t *testing.T) {
	cost := uint64(0)
	learn(&cost, 100)
	if learn(&cost, 1<<40); cost > 200 {
		t.Errorf("a copy costs %d ticks after one that was interrupted", cost)
	}
	for range 20 {
		learn(&cost, 0)
	}
	if cost == 0 {
		t.Error("a cost is not known any more")
	}
}

// TestFillCopies has each way copy all of the payload, and nothing else.
func TestFillCopies(t *testing.T) {
	const room = 70 << 10
	buffer := unsafe.Slice((*byte)(memory(t, room)), room)
	b := (*hot.Bounce)(unsafe.Pointer(unsafe.SliceData(buffer)))
	got := buffer[unsafe.Sizeof(*b):]
	from := make([]byte, room)
	for i := range from {
		from[i] = byte(i*7 + i>>8)
	}
	s := &hot.Stripe{Past: 1} // so past the caches
	for _, n := range []int{0, 1, 63, 4096, fillMin - 1, fillMin, fillMin + 1, fillMin + 63, 64 << 10} {
		for shift := range 9 {
			clear(got)
			fills := s.Fills
			Fill(s, b, uintptr(unsafe.Pointer(&from[shift])), uintptr(n))
			if !bytes.Equal(got[:n], from[shift:shift+n]) || got[n] != 0 {
				t.Fatalf("%d bytes from offset %d differ", n, shift)
			}
			if timed := s.Fills != fills; timed != (mem.HasTimed && n >= fillMin) {
				t.Fatalf("%d bytes: timed: %v", n, timed)
			}
		}
	}
}
