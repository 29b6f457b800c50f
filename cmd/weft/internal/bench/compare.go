package bench

import (
	"fmt"

	"golang.org/x/perf/benchmath"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

// compareResults writes the figures of two runs beside each other. Whether they
// differ is asked of the Mann-Whitney U test, which assumes nothing of how the
// values are distributed, at 5 %.
func compareResults(style text.Style, old, now *result) []string {
	before := old.figures()
	t := text.Table{Right: []bool{false, false, true, true, true, true}}
	t.Row("figure", "provider", "before", "now", "change", "p", "")
	missing := 0
	for i := range now.Figures {
		f := &now.Figures[i]
		values := before.values[f.Provider][f.Name]
		if len(values) == 0 {
			missing++
			continue
		}
		t.Row(changeOf(style, f, values)...)
	}
	lines := t.Lines("")
	lines[0] = style.Bold(lines[0])
	lines = append(lines, "", "~: the runs do not differ more than their rounds do (Mann-Whitney U test, 5 %)")
	if old.Machine != now.Machine || old.Libfabric != now.Libfabric {
		lines = append(lines,
			style.Warn(fmt.Sprintf(
				"the runs are of different machines or libraries: %s, libfabric %s; %s, libfabric %s",
				old.Machine, old.Libfabric, now.Machine, now.Libfabric)))
	}
	if missing != 0 {
		lines = append(lines, fmt.Sprintf("%d figures were not measured before", missing))
	}
	return lines
}

// changeOf is the row of one figure.
func changeOf(style text.Style, f *figure, before []float64) []string {
	a := benchmath.NewSample(before, &benchmath.DefaultThresholds)
	b := benchmath.NewSample(f.Values, &benchmath.DefaultThresholds)
	c := benchmath.AssumeNothing.Compare(a, b)
	was := distribution(before).median
	verdict := "~"
	if c.P < c.Alpha && was != f.Median {
		if (f.Median > was) == higherIsBetter(f.Name) {
			verdict = style.Good("better")
		} else {
			verdict = style.Bad("worse")
		}
	}
	for _, w := range c.Warnings {
		verdict += " (" + w.Error() + ")"
	}
	change := "–"
	if was != 0 {
		change = fmt.Sprintf("%+.1f %%", 100*(f.Median-was)/was)
	}
	return []string{f.Title, f.Provider, number(was), number(f.Median), change, fmt.Sprintf("%.3f", c.P), verdict}
}
