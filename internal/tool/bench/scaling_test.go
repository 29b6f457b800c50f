package bench

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestScalingPlotAndSection(t *testing.T) {
	f := newFigures()
	for i, n := range scalingThreads {
		f.add("weft", scalingFigure("scale_own", n), float64(5+i))
		f.add("shm", scalingFigure("scale_own", n), 0.02/float64(n))
	}
	svg := string(scalingPlot(f, []string{"weft", "shm"}))
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 10 {
		t.Errorf("%d points, want 10", n)
	}
	for _, part := range []string{">0.001<", ">10<", ">weft<", ">shm<", "one queue with many readers"} {
		if !strings.Contains(svg, part) {
			t.Errorf("no %s in the plot", part)
		}
	}
	text := scalingSection(options{out: "docs/benchmarks.md", scaling: "docs/plots/x.svg", program: "false", rounds: 3}, f, []string{"weft", "shm"})
	for _, line := range []string{
		"![rate over threads](plots/x.svg)",
		"| an endpoint and a queue for each thread | weft | 5.00 | 6.00 | 7.00 | 8.00 | 9.00 |",
		"| one endpoint and one queue for all threads | shm | – | – | – | – | – |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if low, high := scalingRange(newFigures(), []string{"a", "b"}); low != -1 || high != 1 {
		t.Errorf("range without figures %g to %g", low, high)
	}
}
