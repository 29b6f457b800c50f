package info

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/internal/nic"
)

// TestSlingshot: what is shown of NICs of Slingshot.
func TestSlingshot(t *testing.T) {
	r := &Report{Slingshot: []nic.CXIDevice{
		{
			Name: "cxi0", NID: 0x1a, Netdev: "hsn0", Link: "up", Mbps: 200000,
			Limits:  []nic.CXILimit{{What: "event queues", Count: 2047}},
			Service: 9, VNI: 1234, Why: "said by the launcher",
		},
		{Name: "cxi1", Link: "down", NUMANode: -1, Why: "the best one", Problem: "open /dev/cxi1: permission denied"},
	}}
	got := strings.Join(r.slingshotTable(text.Style{}).Lines(""), "\n")
	for _, want := range []string{
		"cxi0  NID 0x1a, hsn0, link up, 200000 Mbit/s, NUMA node 0", "has 2047 event queues",
		"service 9, VNI 1234: said by the launcher",
		"cxi1  NID 0x0, no network interface, link down", "service: the best one", "open /dev/cxi1: permission denied",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
