package pending

import (
	"fmt"
	"slices"
	"testing"
)

// TestStep: operations that are completed are taken out, and the others stay in order, with what a step has changed.
func TestStep(t *testing.T) {
	for mask := range 1 << 6 {
		var l List[int]
		var want []int
		for i := range 6 {
			l.Add(i)
			if mask>>i&1 == 0 {
				want = append(want, i+10)
			}
		}
		var seen []int
		l.Step(func(op *int) bool {
			seen = append(seen, *op)
			*op += 10
			return mask>>(*op-10)&1 != 0
		})
		if !slices.Equal(seen, []int{0, 1, 2, 3, 4, 5}) || !slices.Equal(l, want) {
			t.Fatalf("mask %b: stepped %v, left %v, want %v", mask, seen, l, want)
		}
	}
}

// TestAdded: operations that a step adds come behind those that are left, whether or not the list has room for them.
func TestAdded(t *testing.T) {
	for room := 3; room <= 8; room++ {
		t.Run(fmt.Sprintf("room %d", room), func(t *testing.T) {
			l := make(List[int], 0, room)
			l = append(l, 1, 2, 3)
			l.Step(func(op *int) bool {
				l.Add(*op + 100)
				*op += 10 // after the list may have moved
				return *op == 12
			})
			if want := []int{11, 13, 101, 102, 103}; !slices.Equal(l, want) {
				t.Errorf("%v, want %v", l, want)
			}
		})
	}
}

// TestForgets: the list holds nothing of what was taken out, so that its memory can be collected.
func TestForgets(t *testing.T) {
	x := new(int)
	l := List[*int]{x, x, x, x}
	l.Step(func(**int) bool { return len(l) == 4 })
	if len(l) != 0 || slices.ContainsFunc(l[:4], func(p *int) bool { return p != nil }) {
		t.Errorf("%d are left, behind them %v", len(l), l[:4])
	}
}

// TestNothingAllocated: a step costs no memory.
func TestNothingAllocated(t *testing.T) {
	l, n := List[int]{1, 2, 3}, 0
	if a := testing.AllocsPerRun(100, func() { l.Step(func(op *int) bool { n += *op; return false }) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
