package bench

import (
	"strings"
	"testing"
)

func TestDistanceTable(t *testing.T) {
	f := newFigures()
	providers := []string{"a", "b"}
	round := func(p string, hop, us float64) {
		f.add(p, hopName, hop)
		f.add(p, "pingpong_8_us", us)
	}
	round("a", 50, 0.1)
	round("b", 51, 0.2)
	if s := distanceTable(f, providers); s != "" {
		t.Errorf("processors that stay: %s", s)
	}
	round("a", 200, 0.3)
	round("a", 52, 0.12)
	round("b", 210, 0.4)
	f.add("a", "rate_8_mps", 10) // in one round only
	s := distanceTable(f, providers)
	for _, want := range []string{"| 51 ns apart | 200 ns apart |", "| 0.110 / 0.200 = 0.55 (2, 1) | 0.300 / 0.400 = " +
		"0.75 (1, 1) | <= 0.85 x |"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if strings.Contains(s, "rate") {
		t.Errorf("a figure without its rounds:\n%s", s)
	}
}
