package udp

import (
	"testing"

	"github.com/weft-fabric/weft/internal/congestion"
)

// TestDeparture: a packet left halfway between post and the kernel's return, within bounds.
func TestDeparture(t *testing.T) {
	const posted, us = congestion.Time(1e9), congestion.Time(1e3)
	for _, c := range []struct{ took, want congestion.Time }{
		{0, 0}, {4 * us, 2 * us}, {6 * us, 3 * us}, {15 * us, 3 * us}, {1000 * us, 0},
	} {
		if got := departure(posted, posted+c.took); got != posted+c.want {
			t.Errorf("back after %v: left after %v, not %v", c.took, got-posted, c.want)
		}
	}
}
