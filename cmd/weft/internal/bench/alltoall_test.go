package bench

import (
	"math"
	"strings"
	"testing"
)

// TestAllToAllBound computes the time of the slowest port by hand.
func TestAllToAllBound(t *testing.T) {
	alike, slow, halves := &allToAllNetworks[0], &allToAllNetworks[1], &allToAllNetworks[2]
	slice := 256.0 * 1024 * 8 / 1e5 * 1514 / 1451 // ms at 100 Mbit/s
	for _, c := range []struct {
		got, want float64
	}{
		{allToAllBound(alike.in, alike.out, true), 7 * slice},
		{allToAllBound(alike.in, alike.out, false), 7 * slice},
		{allToAllBound(slow.in, slow.out, true), 28 * slice},
		{allToAllBound(slow.in, slow.out, false), 7 * slice}, // 4 for the slice of the slowest sender
		{allToAllBound(halves.in, halves.out, true), 14 * slice},
		{allToAllBound(halves.in, halves.out, false), 14 * slice},
	} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("bound of %v ms, want %v", c.got, c.want)
		}
	}
}

// TestAllToAllSection shows every network and way, of those that have figures.
func TestAllToAllSection(t *testing.T) {
	f := newFigures()
	f.addPrefixed("weft", "alltoall_alike_", []byte("step_ms 200\nalltoall_ms 160\nalltoall_ms 170\n"))
	f.add("weft", "net_use", 1)
	got := allToAllSection(&result{Libfabric: "9.9", Machine: "a machine", Providers: []string{"weft", "shm"}}, f)
	for _, part := range []string{
		"| network | way | bound | weft |\n",
		"| all alike | one peer at a time | 153 | 200 |\n",
		"| all alike | `fi_alltoall` | 153 | 165 (162–168) |\n",
		"| half of the hosts slow out, half slow in (1/2) | all to the first | 306 | – |\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if title := titleOf("alltoall_slow_step_ms"); !strings.Contains(title, "two hosts at 1/4") {
		t.Errorf("the figure is called %q", title)
	}
}
