package bench

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curve is one provider's figures: the median over x, with the quartiles.
type curve struct {
	provider string
	x        []float64
	y        []spread
}

// panel is a diagram with a curve for each provider. Axes are logarithmic.
type panel struct {
	title, x, y string
	ticks       []plot.Tick
	curves      []curve
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
	for _, d := range append(sectionPlots[:len(sectionPlots):len(sectionPlots)], drawing{scalingPlotFile, "rate over threads", scalingPanels}) {
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
	names := map[float64]string{2: "pingpong_8_us", 100: "pingpong_8_p99_us", 1000: "pingpong_8_p999_us", 1e4: "pingpong_8_p9999_us"}
	return []panel{{
		title: "ping-pong, 8 bytes", x: "percentile", y: "half round trip, us",
		ticks:  []plot.Tick{{Value: 2, Label: "50"}, {Value: 100, Label: "99"}, {Value: 1000, Label: "99.9"}, {Value: 1e4, Label: "99.99"}},
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
		{title: "ping-pong", x: "bytes", y: "half round trip, us", ticks: ticks, curves: curves(res, found, xs, name("us"))},
		{title: "one way, window of 64", x: "bytes", y: "MB/s", ticks: ticks, curves: curves(res, found, xs, name("mbps"))},
	}
}

func peerPanels(res *result, found *figures) []panel {
	xs := []float64{1, 8, 64}
	ticks := []plot.Tick{{Value: 1, Label: "1"}, {Value: 8, Label: "8"}, {Value: 64, Label: "64"}}
	name := func(way string) func(float64) string {
		return func(x float64) string { return fmt.Sprintf("peers_%s_%.0f_mps", way, x) }
	}
	return []panel{
		{title: "one to many, 8 bytes", x: "peers", y: "messages, M/s", ticks: ticks, curves: curves(res, found, xs, name("out"))},
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

// Strokes of the providers, which differ in shape as well as in colour.
var strokes = []struct {
	colour color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}{
	{color.RGBA{0x0b, 0x61, 0xa4, 0xff}, nil, draw.CircleGlyph{}},
	{color.RGBA{0xc4, 0x4e, 0x00, 0xff}, []vg.Length{6, 4}, draw.SquareGlyph{}},
	{color.RGBA{0x3a, 0x7d, 0x2c, 0xff}, []vg.Length{2, 3}, draw.TriangleGlyph{}},
	{color.RGBA{0x80, 0x3e, 0x9b, 0xff}, []vg.Length{8, 3, 2, 3}, draw.RingGlyph{}},
}

const panelWidth, panelHeight = 9 * vg.Centimeter, 8 * vg.Centimeter

// drawPanels draws panels side by side, on one scale if they have the same unit.
func drawPanels(path string, panels []panel) error {
	row := make([]*plot.Plot, len(panels))
	for i := range panels {
		p, err := panels[i].draw()
		if err != nil {
			return err
		}
		row[i] = p
	}
	for i := 1; i < len(row); i++ {
		if panels[i].y == "" {
			low, high := min(row[0].Y.Min, row[i].Y.Min), max(row[0].Y.Max, row[i].Y.Max)
			for _, p := range row {
				p.Y.Min, p.Y.Max = min(p.Y.Min, low), max(p.Y.Max, high)
			}
		}
	}
	canvas := vgsvg.New(vg.Length(len(row))*panelWidth, panelHeight)
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: vg.Points(8)}
	for i, p := range row {
		p.Draw(tiles.At(draw.New(canvas), i, 0))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// quartiles are the points of a curve, for lines and for error bars.
type quartiles struct{ curve }

func (q quartiles) Len() int                    { return len(q.x) }
func (q quartiles) XY(i int) (float64, float64) { return q.x[i], q.y[i].median }
func (q quartiles) YError(i int) (float64, float64) {
	return q.y[i].median - q.y[i].low, q.y[i].high - q.y[i].median
}

func (pn *panel) draw() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = pn.title, pn.x, pn.y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(pn.ticks), plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xee}
	p.Add(grid)
	for i, c := range pn.curves {
		line, points, err := plotter.NewLinePoints(quartiles{c})
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(quartiles{c})
		if err != nil {
			return nil, err
		}
		s := strokes[i%len(strokes)]
		line.Color, line.Dashes, line.Width = s.colour, s.dashes, vg.Points(1.5)
		points.Color, points.Shape, points.Radius = s.colour, s.glyph, vg.Points(2.5)
		bars.Color = s.colour
		p.Add(line, points, bars)
		p.Legend.Add(c.provider, line, points)
	}
	// whole powers of ten, so that there are at least two labels; one above for the legend
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max))+1)
	return p, nil
}
