package pieces

import (
	"fmt"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
)

// Room is the memory of a list's runs. That of many is not on the Go heap: a process that may have no more memory gets
// an error, where the Go runtime would end it. The zero Room is of an empty list; it is for one thread.
type Room struct {
	mapped []byte // nil: the runs are on the heap
}

const (
	// firstRuns is for how many runs of a list there is room before it is known how many pieces become one.
	firstRuns = 16
	// heapRuns is how many runs are on the heap at most.
	heapRuns = 1024
	// hugeRuns is from how many bytes of runs on they are on huge pages.
	hugeRuns = 2 * mem.HugeSize
)

// runsOf makes room for n runs, with those that there are.
func runsOf(runs []dataplane.Run, n int) ([]dataplane.Run, Room, error) {
	if n <= heapRuns {
		return append(make([]dataplane.Run, 0, n), runs...), Room{}, nil
	}
	bytes, flags := n*int(unsafe.Sizeof(dataplane.Run{})), mem.Flags(0)
	if bytes >= hugeRuns {
		flags = mem.Huge
	}
	b, err := mem.Map(bytes, flags)
	if err != nil {
		return nil, Room{}, fmt.Errorf("memory for %d runs: %w: %w", n, err, fi.ENOMEM)
	}
	all := unsafe.Slice((*dataplane.Run)(unsafe.Pointer(unsafe.SliceData(b))), n)
	return append(all[:0], runs...), Room{b}, nil
}

// move gives the list room for n runs in place of what it has. Of an error nothing has come.
func (r *Room) move(l *dataplane.List, n int) error {
	runs, room, err := runsOf(l.Runs, n)
	if err != nil {
		return err
	}
	r.Free()
	l.Runs, *r = runs, room
	return nil
}

// Grow makes room for more runs if there is none, before piece i of n: for as many as there are if those to come join
// as those before. Most of what a long list takes is the first use of its memory. fi.ENOMEM: there is no memory.
func (r *Room) Grow(l *dataplane.List, i, n int) error {
	used := len(l.Runs)
	if used != cap(l.Runs) {
		return nil
	}
	left := min(n-i, dataplane.MaxElements-used) // a piece adds one at most
	want := min(left, firstRuns)
	if used != 0 {
		want = min(left, max(used, used*left/i+1))
	}
	return r.move(l, used+want)
}

// Trim takes back the room for runs of a list that is complete, where there is more than twice what they need, and
// memory for less.
func (r *Room) Trim(l *dataplane.List) {
	if cap(l.Runs) > 2*len(l.Runs) {
		_ = r.move(l, len(l.Runs)) // else it stays as it is
	}
}

// Free gives the memory back, where that is not the collector's to do. No run is used after it.
func (r *Room) Free() {
	if r.mapped != nil {
		_ = mem.Unmap(r.mapped)
		r.mapped = nil
	}
}
