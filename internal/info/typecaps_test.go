package info

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestConnectedRefuses asks for connected endpoints with what the documents say that they have not, which is refused by
// name.
func TestConnectedRefuses(t *testing.T) {
	for _, c := range []uint64{fi.HMEM, fi.Collective, fi.Trigger, fi.Source, fi.DirectedRecv, fi.SharedAV} {
		_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) {
			h.EP.Type, h.Caps = fi.EPMsg, fi.Msg|c
		}), nil)
		wantRefused(t, err, "caps")
	}
}
