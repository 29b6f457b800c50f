package top

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestNarrow: where the table does not fit, columns go that say nothing.
func TestNarrow(t *testing.T) {
	list := []watch.Process{{Snapshot: &stats.Snapshot{PID: 12345, Command: "program"}, User: "something"}}
	byRTT, _ := columnOf("rtt")
	whole := table(list, text.Style{}, 0, 0)[0]
	for _, want := range []string{"PID", "RMA op/s", "CHUNKS/s", "DEFER/s", "FORCED/s", "CREDITS/s", "PARTNERS",
		"RELAYED/s", "DROPPED/s", "STOPS/s", "SOFT/s", "ERRORS", "RTT"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %s in %q", want, whole)
		}
	}
	narrow := table(list, text.Style{}, byRTT, 100)[0]
	if text.Width(narrow) > 100 || strings.Contains(narrow, "ERRORS") || !strings.Contains(narrow, "RX B/s") ||
		!strings.HasSuffix(narrow, "RTT") {
		t.Errorf("100 columns: %q", narrow)
	}
	if got := table(list, text.Style{}, 0, 10)[0]; !strings.HasSuffix(got, "RX B/s") {
		t.Errorf("10 columns: %q", got)
	}
	if got := table(nil, text.Style{}, 0, 0); len(got) != 1 || got[0] == "" {
		t.Errorf("no process: %q", got)
	}
}
