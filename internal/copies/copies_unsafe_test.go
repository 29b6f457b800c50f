package copies

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// run is copies by a rule that cost what costs says of each way, once as many buffers were written that way.
type run struct {
	rule    *Rule
	copies  hot.Copies
	buffers int
	costs   [2]uint64
	other   bool
	since   int
}

// copy makes n of them, and returns how many went the other way.
func (r *run) copy(n int) (others int) {
	for range n {
		other, cost := r.rule.next(&r.copies)
		if r.since++; other != r.other {
			r.other, r.since = other, 0
		}
		w := 0
		if other {
			w = 1
		}
		if cost != nil {
			ticks := r.costs[w]
			if r.since < r.buffers {
				ticks = (r.costs[0] + r.costs[1]) / 2
			}
			learn(cost, ticks)
		}
		others += w
	}
	return others
}

// TestChooses has each rule take the other way where it is as much faster as the rule says, and try the way that is not
// taken once a period.
func TestChooses(t *testing.T) {
	for name, c := range map[string]struct {
		rule          *Rule
		buffers       int
		slower, other uint64 // costs at which string moves stay, and at which they do not
	}{
		"in":  {&In, 42, 29000, 31000},
		"out": {&Out, 0, 10600, 10700},
	} {
		period := int(c.rule.period)
		r := &run{rule: c.rule, buffers: c.buffers, costs: [2]uint64{c.slower, 10000}, since: c.buffers}
		if n := r.copy(int(c.rule.first)); n != 0 {
			t.Errorf("%s: %d of the first copies go the other way", name, n)
		}
		if n := r.copy(3 * period); n != 3*int(c.rule.trial) {
			t.Errorf("%s: %d of %d copies go the other way, which is not so much faster", name, n, 3*period)
		}
		r.costs[0] = c.other
		r.copy(2 * period)
		if n := r.copy(3 * period); n != 3*period-3*int(c.rule.trial) {
			t.Errorf("%s: %d of %d copies go the other way, which is faster", name, n, 3*period)
		}
		r.costs[0] = c.slower
		r.copy(2 * period)
		if n := r.copy(3 * period); n != 3*int(c.rule.trial) {
			t.Errorf("%s: %d of %d copies go the other way, which is faster no more", name, n, 3*period)
		}
	}
}

// TestInterrupted has a copy that was interrupted count for little.
func TestInterrupted(t *testing.T) {
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

// TestCopies has each way of each rule copy all of the payload, timed and not, and nothing else.
func TestCopies(t *testing.T) {
	const room = 70 << 10
	buffer := make([]byte, room+16)
	to := buffer[-uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))%16:]
	from := make([]byte, room)
	for i := range from {
		from[i] = byte(i*7 + i>>8)
	}
	for name, r := range map[string]*Rule{"in": &In, "out": &Out} {
		least := int(r.least)
		for _, count := range []uint64{0, r.first, r.first + r.trial/2, r.first + r.trial + 1, r.first + 3*r.trial} {
			for _, taken := range []uint64{0, 1} {
				for _, n := range []int{0, 1, 63, least - 1, least, least + 1, least + 63, least + 127, 64 << 10} {
					for shift := range 9 {
						clear(to)
						c := hot.Copies{Cost: 1, Other: 1, Count: count, Taken: taken}
						r.Copy(&c, address(to), address(from[shift:]), uintptr(n))
						if !bytes.Equal(to[:n], from[shift:shift+n]) || to[n] != 0 {
							t.Fatalf("%s: %d bytes from offset %d differ, copy %d", name, n, shift, count)
						}
						if counted := c.Count != count; counted != (mem.HasWays && n >= least) {
							t.Fatalf("%s: %d bytes: counted: %v", name, n, counted)
						}
					}
				}
			}
		}
	}
}

// address is that of bytes that stay where they are until the test ends.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
