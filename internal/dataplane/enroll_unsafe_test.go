package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestEnroll has more threads than there are numbers and lines: those have the shared number, or no line. What a thread
// had that ends is the next one's.
func TestEnroll(t *testing.T) {
	threads := make([]hot.Thread, hot.EpochReaders+1)
	at := func(i int) uintptr { return uintptr(unsafe.Pointer(&threads[i])) }
	for i := range threads {
		Enroll(at(i), 0, 0, 0)
	}
	lines := map[uintptr]bool{}
	for i, th := range threads {
		if want := uint32(min(i+1, stats.Lines)); th.Number != want {
			t.Fatalf("thread %d has the number %d, not %d", i, th.Number, want)
		}
		if (th.Line == 0) != (i == hot.EpochReaders) || lines[th.Line] ||
			th.Line%unsafe.Sizeof(hot.EpochReader{}) != 0 {
			t.Fatalf("thread %d has the line at %#x", i, th.Line)
		}
		lines[th.Line] = true
	}
	last := hot.EpochReaders
	leave := func(i int) { // as the shim does
		if line := (*hot.EpochReader)(pointer(threads[i].Line)); line != nil {
			line.Taken = 0
		}
		if n := threads[i].Number; n < stats.Lines {
			*(*uint64)(pointer(threads[i].Numbers)) &^= 1 << (n - 1)
		}
	}
	leave(3)
	Enroll(at(last), 0, 0, 0)
	if threads[last].Line != threads[3].Line || threads[last].Number != 4 {
		t.Errorf("the next one has the line at %#x and the number %d", threads[last].Line, threads[last].Number)
	}
	for i := range threads {
		if i != 3 {
			leave(i)
		}
	}
	if numbers != 0 {
		t.Errorf("numbers %#x are taken", numbers)
	}
}

// TestDischargeReading: a thread that is dropped in the middle of a call is no epoch reader any more.
func TestDischargeReading(t *testing.T) {
	for _, reading := range []bool{false, true} {
		var self hot.Thread
		if !EnrollGo(&self) {
			t.Fatal("no line is left")
		}
		line := (*hot.EpochReader)(pointer(self.Line))
		if reading && !resume(&self) {
			t.Fatal("a thread with a line does not read")
		}
		DischargeGo(&self)
		if line.Posting&1 != 0 || self.Line != 0 {
			t.Errorf("reading %v: at %d, with a line %v", reading, line.Posting, self.Line != 0)
		}
	}
}
