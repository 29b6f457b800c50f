//go:build race

package lease

import "testing"

// TestTakenWithoutLease: a caller of Taken that has no lease is found, one of a lease that is taken, or of state
// without one, is not.
func TestTakenWithoutLease(t *testing.T) {
	panics := func(g Guarded[int]) (found bool) {
		defer func() { found = recover() != nil }()
		g.Taken()
		return false
	}
	var word uint32
	g := Guard(&word, new(int))
	if !panics(g) {
		t.Error("the state of a free lease is returned")
	}
	g.Take()
	if panics(g) || panics(Guard(nil, new(int))) || panics(Guarded[int]{}) {
		t.Error("the state is not returned to a caller that may use it")
	}
}
