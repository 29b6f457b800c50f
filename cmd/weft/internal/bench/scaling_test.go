package bench

import (
	"strings"
	"testing"
)

func TestScalingSection(t *testing.T) {
	f := newFigures()
	for i, n := range scalingThreads {
		f.add("weft", scalingFigure("scale_own", n), float64(5+i))
		f.add("shm", scalingFigure("scale_own", n), 0.02/float64(n))
	}
	text := scalingSection(resultOf(f, "weft", "shm"), f, "plots/x.svg")
	for _, line := range []string{
		"![rate over threads](plots/x.svg)",
		"| an endpoint and a queue for each thread | weft | 5.00 | 6.00 | 7.00 | 8.00 | 9.00 |",
		"| one endpoint and one queue for all threads | shm | – | – | – | – | – |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}
