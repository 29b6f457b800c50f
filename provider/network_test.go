package provider

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/config"
)

// TestPatience has something arrive soon after polls stopped to look, and late.
func TestPatience(t *testing.T) {
	n := &network{began: time.Now().Add(-time.Hour)}
	n.patience.Store(int64(leastPatience))
	for range 10 {
		n.calmed.Store(int64(time.Since(n.began)))
		n.learn()
	}
	if p := time.Duration(n.patience.Load()); p != mostPatience {
		t.Errorf("patience is %v, want %v", p, mostPatience)
	}
	n.calmed.Store(0)
	for range 10 {
		n.learn()
	}
	if p := time.Duration(n.patience.Load()); p != leastPatience {
		t.Errorf("patience is %v, want %v", p, leastPatience)
	}
}

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
