package backends

import (
	"testing"

	"github.com/weft-fabric/weft/internal/config"
)

// TestUDPCongestion has the configuration reach the transport.
func TestUDPCongestion(t *testing.T) {
	for _, name := range []string{"delay", "aimd", "bbr", "fixed"} {
		cc, err := udpCongestion(&config.Config{CC: name, RTTAlpha: 0.5, RTTBeta: 1})
		if err != nil {
			t.Fatal(err)
		}
		if cc.Algorithm.String() != name || cc.Alpha != 0.5 || cc.Beta != 1 {
			t.Errorf("%s: %+v", name, cc)
		}
		if err := cc.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
