package pieces

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Region is what a list knows of the remote region of elements: the address by which peers name its first byte, and its
// bytes.
type Region struct{ Base, Length uint64 }

// Fit completes a run of count elements of which local and remote addresses, length and distances are set, and checks
// that it fits into a list, and into its region. A distance of 0 is the length. Errors: fi.EINVAL for more elements
// than a list has, no local memory, or addresses that wrap; fi.EMSGSIZE for elements, or all of them together, longer
// than a message; fi.EACCES for elements beyond their region.
func Fit(l *dataplane.List, run *dataplane.Run, count uint64, r Region) error {
	if run.Here == 0 {
		run.Here = run.Len
	}
	if run.There == 0 {
		run.There = run.Len
	}
	switch {
	case count > dataplane.MaxElements-uint64(l.Count):
		return fmt.Errorf("over %d elements in all: %w", dataplane.MaxElements, fi.EINVAL)
	case run.Len > wire.MaxMessage || count*run.Len > wire.MaxMessage-l.Bytes:
		return fmt.Errorf("%d elements of %d bytes, at most %d in all: %w", count, run.Len,
			uint64(wire.MaxMessage), fi.EMSGSIZE)
	case run.Local == 0 && run.Len != 0:
		return fmt.Errorf("no local memory: %w", fi.EINVAL)
	}
	if _, ok := Extent(run.Local, run.Here, run.Len, count); !ok {
		return fmt.Errorf("%d elements of %d bytes at %#x, %d bytes apart: %w", count, run.Len, run.Local,
			run.Here, fi.EINVAL)
	}
	length, ok := Extent(run.Remote, run.There, run.Len, count)
	if offset := run.Remote - r.Base; !ok || offset > r.Length || length > r.Length-offset {
		return fmt.Errorf("%d elements of %d bytes at %#x, %d bytes apart, are not in %d bytes at %#x: %w",
			count, run.Len, run.Remote, run.There, r.Length, r.Base, fi.EACCES)
	}
	run.First, run.Count = l.Count, uint32(count)
	return nil
}

// Extent is how many bytes there are from the first byte of count elements of n bytes, stride bytes apart, to the last;
// n is at most wire.MaxMessage. ok: the addresses do not wrap.
func Extent(addr, stride, n, count uint64) (bytes uint64, ok bool) {
	if count-1 != 0 && stride > (1<<63)/(count-1) {
		return 0, false
	}
	bytes = stride*(count-1) + n // n is far below 1<<63
	return bytes, addr+bytes >= addr
}

// Append appends a run that fits, or makes it part of the last. The list is flat, and directly reached, as long as all
// its runs are; an empty one is to be both.
func Append(l *dataplane.List, run dataplane.Run) {
	l.Direct = l.Direct && run.Direct
	l.Count += run.Count
	l.Bytes += uint64(run.Count) * run.Len
	if n := len(l.Runs); n != 0 {
		if last := &l.Runs[n-1]; takes(last, &run) {
			last.Count += run.Count
			l.Flat = false
			return
		}
	}
	l.Flat = l.Flat && run.Count == 1
	l.Runs = append(l.Runs, run)
}

// takes reports whether a run goes on where r ends, and if that has a single element makes the distances those to the
// run's.
func takes(r, next *dataplane.Run) bool {
	if r.Len != next.Len || r.Key != next.Key || r.Direct != next.Direct || r.Mapped != next.Mapped ||
		next.Local < r.Local || next.Remote < r.Remote {
		return false
	}
	here, there := r.Here, r.There
	if r.Count == 1 {
		here, there = next.Local-r.Local, next.Remote-r.Remote
	}
	n := uint64(r.Count)
	if next.Local != r.Local+n*here || next.Remote != r.Remote+n*there ||
		next.Count != 1 && (next.Here != here || next.There != there) {
		return false
	}
	r.Here, r.There = here, there
	return true
}
