package peers

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// link is an element.
type link struct {
	Use
	number uint32
	gone   bool
	// lead counts what leads to it besides its users.
	lead atomic.Int32
}

func newLink(number uint32) *link { return &link{number: number} }

func at(port uint16) Address { return Address{Name: nameAt("10.0.0.1", port)} }

// TestTable: an address has one element, by whose number it is found, until that is retired.
func TestTable(t *testing.T) {
	var table Table[link, *link]
	table.Init()
	if table.Find(at(1)) != nil {
		t.Error("found in an empty table")
	}
	for port := uint16(1); port <= 100; port++ {
		l := table.Hold(at(port), newLink)
		if l.number != uint32(port-1) || table.At(l.number) != l || table.Find(at(port)) != l {
			t.Fatalf("port %d: number %d", port, l.number)
		}
		if due := table.Due(); due != (port >= slack) {
			t.Errorf("due with %d: %v", port, due)
		}
	}
	if l := table.Hold(at(7), newLink); l != table.At(6) || table.Made() != 100 {
		t.Errorf("another element for the same address, of %d", table.Made())
	}
	for l := range table.All() {
		if l.number != 6 { // which is kept twice
			l.Release()
		}
	}
	table.Sweep(func(l *link) bool { return l.number%2 == 0 && l.Retire(func() bool { return l.number != 4 }) })
	var left []uint32
	for l := range table.All() {
		left = append(left, l.number)
	}
	if len(left) != 52 || !slices.Contains(left, 4) || !slices.Contains(left, 6) || table.Due() || table.At(0) != nil {
		t.Errorf("left: %v", left)
	}
	l := table.Hold(at(1000), newLink)
	if l.number%2 != 0 || slices.Contains(left, l.number) || table.At(l.number) != l || table.Made() != 101 {
		t.Errorf("a new element has number %d", l.number)
	}
}

// TestRetire: threads that hold an element find it in place, while another thread retires what is not kept.
func TestRetire(t *testing.T) {
	var table Table[link, *link]
	table.Init()
	var over atomic.Bool
	var workers sync.WaitGroup
	for worker := range 3 {
		workers.Go(func() {
			for n := range 3000 {
				l := table.Hold(at(uint16(n%3)), newLink)
				if worker == 0 {
					l.lead.Add(1) // it stays, though no thread holds it
				}
				l.Release()
				if worker == 0 {
					if table.At(l.number) != l {
						t.Error("removed, though something leads to it")
					}
					l.lead.Add(-1)
				} else if l := table.Find(at(uint16(n % 3))); l != nil && l.Hold() {
					if l.gone {
						t.Error("kept after it was retired")
					}
					l.Release()
				}
			}
		})
	}
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for !over.Load() {
			table.Sweep(func(l *link) bool {
				if !l.Retire(func() bool { return l.lead.Load() == 0 }) {
					return false
				}
				l.gone = true
				return true
			})
		}
	})
	workers.Wait()
	over.Store(true)
	sweeps.Wait()
}
