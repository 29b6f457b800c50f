package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
)

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
	{color.RGBA{0x8a, 0x6d, 0x00, 0xff}, []vg.Length{4, 2}, draw.PyramidGlyph{}},
	{color.RGBA{0x00, 0x7a, 0x7a, 0xff}, []vg.Length{1, 2}, draw.CrossGlyph{}},
	{color.RGBA{0x55, 0x55, 0x55, 0xff}, []vg.Length{6, 2, 1, 2}, draw.PlusGlyph{}},
}

// Sizes. The margins are also for viewers whose letters are wider.
const (
	panelWidth, panelHeight = 9 * vg.Centimeter, 7 * vg.Centimeter
	legendHeight            = 0.8 * vg.Centimeter
	margin                  = 0.4 * vg.Centimeter
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// drawPanels draws panels side by side, on one scale if they have the same unit,
// and what the strokes mean below.
func drawPanels(path string, panels []panel) error {
	plot.DefaultFont = sans
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
	width := vg.Length(len(row)) * panelWidth
	if panels[0].categories {
		width *= 2 // there are many, and their names are long
	}
	canvas := vgsvg.New(width, panelHeight+legendHeight)
	whole := draw.New(canvas)
	legend(draw.Crop(whole, 0, 0, 0, -panelHeight), panels[0].curves)
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: margin, PadTop: margin / 2, PadLeft: margin / 2,
		PadRight: margin}
	above := draw.Crop(whole, 0, 0, legendHeight, 0)
	for i, p := range row {
		c := tiles.At(above, i, 0)
		if panels[i].y != "" {
			// beside the axis: as its label it would take room above
			style := p.Y.Label.TextStyle
			style.Rotation, style.YAlign = math.Pi/2, draw.YTop
			c.FillText(style, vg.Point{X: c.Min.X, Y: c.Center().Y}, panels[i].y)
			c = draw.Crop(c, 1.5*style.Font.Size, 0, 0, 0)
		}
		p.Draw(c)
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// where the font is not, its like
	svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return tool.ReplaceFile(path, svg)
}

// legend says in one line what the strokes are.
func legend(c draw.Canvas, curves []curve) {
	each := (c.Max.X - c.Min.X - 2*margin) / vg.Length(len(curves))
	for i := range curves {
		line, points := stroke(i)
		l := plot.NewLegend()
		l.Left, l.ThumbnailWidth, l.TextStyle.Font.Size = true, 20, 9
		l.Add(curves[i].provider, line, points)
		l.Draw(draw.Crop(c, margin+vg.Length(i)*each, 0, margin/2, 0))
	}
}

// stroke is how the curve of the i-th provider is drawn.
func stroke(i int) (*plotter.Line, *plotter.Scatter) {
	s := strokes[i%len(strokes)]
	line := &plotter.Line{LineStyle: draw.LineStyle{Color: s.colour, Dashes: s.dashes, Width: vg.Points(1.5)}}
	return line, &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: s.colour, Shape: s.glyph, Radius: vg.Points(2.5)}}
}

// quartiles are the points of a curve, for lines and for error bars.
type quartiles struct{ curve }

func (q quartiles) Len() int                    { return len(q.x) }
func (q quartiles) XY(i int) (float64, float64) { return q.x[i], q.y[i].median }
func (q quartiles) YError(i int) (float64, float64) {
	return q.y[i].median - q.y[i].low, q.y[i].high - q.y[i].median
}

// powers are ticks on an axis from one power of ten to another, with labels short
// enough for it.
type powers struct{}

// Ticks implements plot.Ticker.
func (powers) Ticks(low, high float64) []plot.Tick {
	var list []plot.Tick
	for e := math.Round(math.Log10(low)); e <= math.Round(math.Log10(high)); e++ {
		v := math.Pow(10, e)
		// the space keeps wider letters off the axis
		list = append(list, plot.Tick{Value: v, Label: power(v) + " "})
		for n := 2.0; n < 10 && n*v < high; n++ {
			list = append(list, plot.Tick{Value: n * v})
		}
	}
	return list
}

// power writes a power of ten.
func power(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.0fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.6g", v)
}

func (pn *panel) draw() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = pn.title, pn.x
	p.Title.TextStyle.Font.Size, p.Title.Padding = 10, 4
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 9, 9
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = 8, 8
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(pn.ticks), powers{}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xee}
	p.Add(grid)
	for i, c := range pn.curves {
		if len(c.x) == 0 {
			continue
		}
		line, points := stroke(i)
		xys, err := plotter.CopyXYs(quartiles{c})
		if err != nil {
			return nil, err
		}
		line.XYs, points.XYs = xys, xys
		bars, err := plotter.NewYErrorBars(quartiles{c})
		if err != nil {
			return nil, err
		}
		bars.Color = line.Color
		if p.Add(points, bars); !pn.categories {
			p.Add(line)
		}
	}
	if pn.categories {
		pn.scaleCategories(p)
		return p, nil
	}
	// whole powers of ten, so that there are at least two labels
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
	return p, nil
}

// scaleCategories gives a plot of categories its axes: ratios from 1 or less on, with ticks at round ones.
func (pn *panel) scaleCategories(p *plot.Plot) {
	p.X.Scale, p.X.Min, p.X.Max = plot.LinearScale{}, 0.5, float64(len(pn.ticks))+0.5
	p.Y.Min, p.Y.Max = min(p.Y.Min, 1)*0.95, max(p.Y.Max, 2)*1.05
	var ticks []plot.Tick
	for _, v := range []float64{0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.2, 1.5, 2, 3, 5, 7, 10, 20, 50, 100} {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g ", v)})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
}
