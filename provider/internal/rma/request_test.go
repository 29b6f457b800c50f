package rma

import (
	"testing"

	"github.com/weft-fabric/weft/provider/internal/wire"
)

// TestElementsAnswers: a peer that answers about elements that a request does not have is refused.
func TestElementsAnswers(t *testing.T) {
	req := &Request{flags: flagElements, elements: 5, total: 100}
	for at, want := range map[uint64]bool{0: true, 4: true, 5: false, wire.NoPlace: false} {
		if req.refusedAt(at) != want {
			t.Errorf("element %d of 5: %t", at, !want)
		}
	}
	req.flags |= flagIsRead
	for at, want := range map[uint64]bool{0: true, 99: true, 100: false, wire.NoPlace: false} {
		if req.refusedAt(at) != want {
			t.Errorf("byte %d of 100: %t", at, !want)
		}
	}
}
