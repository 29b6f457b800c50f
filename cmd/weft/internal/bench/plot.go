package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
)

// curve is one provider's figures: the median over x, with the quartiles.
type curve struct {
	provider string
	x        []float64
	y        []spread
}

// panel is a diagram with a curve for each provider. Axes are logarithmic. With categories the ticks of the x
// axis are names at 1, 2 and so on, and points of a curve are not joined.
type panel struct {
	title, x, y string
	ticks       []plot.Tick
	curves      []curve
	categories  bool
}

// drawing is a file with panels side by side.
type drawing struct {
	file, title string
	panels      func(res *result, found *figures) []panel
}

const scalingPlotFile = "scaling.svg"

// sectionPlots are those of the table's section.
var sectionPlots = []drawing{
	{"percentiles.svg", "latency of 8 bytes, percentiles", percentilePanels},
	{"sizes.svg", "latency and bandwidth over size", sizePanels},
	{"peers.svg", "rate over the number of peers", peerPanels},
}

// drawPlots draws what was measured into SVG files in dir, and returns their paths
// by name.
func drawPlots(dir string, res *result) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	found, drawn := res.figures(), map[string]string{}
	scaling := drawing{scalingPlotFile, "rate over threads", scalingPanels}
	for _, d := range slices.Concat(sectionPlots, []drawing{scaling}, allToAllPlots) {
		var list []panel
		for _, p := range d.panels(res, found) {
			if len(p.curves) != 0 {
				list = append(list, p)
			}
		}
		if len(list) == 0 {
			continue
		}
		path := filepath.Join(dir, d.file)
		if err := drawPanels(path, list); err != nil {
			return nil, fmt.Errorf("plot %s: %w", path, err)
		}
		drawn[d.file] = path
	}
	return drawn, nil
}

// curves has a curve for each provider that has figures; name gives that of an x.
func curves(res *result, found *figures, xs []float64, name func(x float64) string) []curve {
	var list []curve
	for _, p := range res.Providers {
		c := curve{provider: p}
		for _, x := range xs {
			if s := found.of(p, name(x)); s.count > 0 && s.low > 0 {
				c.x, c.y = append(c.x, x), append(c.y, s)
			}
		}
		if len(c.x) != 0 {
			list = append(list, c)
		}
	}
	return list
}

// percentiles over the share of messages that take longer.
func percentilePanels(res *result, found *figures) []panel {
	names := map[float64]string{2: "pingpong_8_us", 100: "pingpong_8_p99_us", 1000: "pingpong_8_p999_us",
		1e4: "pingpong_8_p9999_us"}
	return []panel{{
		title: "ping-pong, 8 bytes", x: "percentile", y: "half round trip, us",
		ticks: []plot.Tick{{Value: 2, Label: "50"}, {Value: 100, Label: "99"}, {Value: 1000, Label: "99.9"},
			{Value: 1e4, Label: "99.99"}},
		curves: curves(res, found, []float64{2, 100, 1000, 1e4}, func(x float64) string { return names[x] }),
	}}
}

func sizePanels(res *result, found *figures) []panel {
	var xs []float64
	var ticks []plot.Tick
	for bytes := 1; bytes <= 1<<20; bytes *= 4 {
		xs = append(xs, float64(bytes))
		ticks = append(ticks, plot.Tick{Value: float64(bytes)})
	}
	for i, label := range map[int]string{0: "1", 3: "64", 6: "4 Ki", 8: "64 Ki", 10: "1 Mi"} {
		ticks[i].Label = label
	}
	name := func(unit string) func(float64) string {
		return func(x float64) string { return fmt.Sprintf("size_%.0f_%s", x, unit) }
	}
	return []panel{
		{title: "ping-pong", x: "bytes", y: "half round trip, us", ticks: ticks,
			curves: curves(res, found, xs, name("us"))},
		{title: "one way, window of 64", x: "bytes", y: "MB/s", ticks: ticks,
			curves: curves(res, found, xs, name("mbps"))},
	}
}

func peerPanels(res *result, found *figures) []panel {
	xs := []float64{1, 8, 64}
	ticks := []plot.Tick{{Value: 1, Label: "1"}, {Value: 8, Label: "8"}, {Value: 64, Label: "64"}}
	name := func(way string) func(float64) string {
		return func(x float64) string { return fmt.Sprintf("peers_%s_%.0f_mps", way, x) }
	}
	return []panel{
		{title: "one to many, 8 bytes", x: "peers", y: "messages, M/s", ticks: ticks,
			curves: curves(res, found, xs, name("out"))},
		{title: "many to one, 8 bytes", x: "peers", y: "", ticks: ticks, curves: curves(res, found, xs, name("in"))},
	}
}

func scalingPanels(res *result, found *figures) []panel {
	var xs []float64
	var ticks []plot.Tick
	for _, n := range scalingThreads {
		xs = append(xs, float64(n))
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	var list []panel
	for i, t := range scalingTests {
		p := panel{title: t.title, x: "threads in each process", ticks: ticks,
			curves: curves(res, found, xs, func(x float64) string { return scalingFigure(t.name, int(x)) })}
		if i == 0 {
			p.y = "messages, M/s"
		}
		list = append(list, p)
	}
	return list
}
