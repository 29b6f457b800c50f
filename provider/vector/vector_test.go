package vector

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestWindow compares each window of a vector, with an empty piece in it, with that of its bytes one by one.
func TestWindow(t *testing.T) {
	iov := []fi.IOVec{{Base: 100, Len: 3}, {Base: 200}, {Base: 300, Len: 1}, {Base: 400, Len: 4}}
	bytes := func(iov []fi.IOVec) (all []uintptr) {
		for _, v := range iov {
			for i := range v.Len {
				all = append(all, v.Base+uintptr(i))
			}
		}
		return all
	}
	all := bytes(iov)
	for from := range len(all) + 2 {
		for n := range len(all) + 2 {
			got := Window(nil, iov, uint64(from), uint64(n))
			want := all[min(from, len(all)):min(from+n, len(all))]
			if !slices.Equal(bytes(got), want) {
				t.Errorf("%d bytes from %d: %v, want %v", n, from, got, want)
			}
			if slices.ContainsFunc(got, func(v fi.IOVec) bool { return v.Len == 0 }) {
				t.Errorf("%d bytes from %d: %v has an empty part", n, from, got)
			}
		}
	}
}

// TestNoAllocation: a walk into a slice with room allocates nothing.
func TestNoAllocation(t *testing.T) {
	iov := []fi.IOVec{{Base: 100, Len: 3}, {Base: 300, Len: 5}}
	to := make([]fi.IOVec, 0, len(iov))
	if n := testing.AllocsPerRun(100, func() { to = Window(to[:0], iov, 1, 6) }); n != 0 || len(to) != 2 {
		t.Errorf("%v allocations, %v", n, to)
	}
}
