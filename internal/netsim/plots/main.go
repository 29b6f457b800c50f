// Plots draws what package netsim's scenarios show over time, as SVG files into
// a folder: all, or those whose files are named, without ".svg". It is a module of its
// own, so that weft's does not depend on a plotting library.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weft-fabric/weft/internal/netsim"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: plots FOLDER [NAME]...")
		os.Exit(2)
	}
	folder, names := os.Args[1], os.Args[2:]
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	for _, s := range netsim.Scenarios() {
		if wanted(s.Name) {
			check(write(filepath.Join(folder, s.Name+".svg"), s))
		}
	}
	for _, f := range netsim.Figures() {
		if wanted(f.Name) {
			check(writeFigure(filepath.Join(folder, f.Name+".svg"), f))
		}
	}
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// panel is one plot with its lines.
func panel(title, unit string, lines []netsim.Series) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, unit
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	for i, s := range lines {
		points := make(plotter.XYs, len(s.Points))
		for k, pt := range s.Points {
			points[k].X, points[k].Y = pt.X, pt.Y
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color = plotutil.Color(i)
		p.Add(line)
		if len(lines) > 1 {
			p.Legend.Add(s.Name, line)
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// write draws a scenario's three panels, one above the other.
func write(path string, s netsim.Scenario) error {
	trace := s.Run()
	column := make([][]*plot.Plot, 3)
	for i, v := range []struct {
		title, unit string
		lines       []netsim.Series
	}{
		{s.Title, "window, KiB", trace.Windows},
		{"", "RTT, us", trace.RTTs},
		{"", "queue, us", trace.Queue},
	} {
		p, err := panel(v.title, v.unit, v.lines)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		p.X.Min = 0
		column[i] = []*plot.Plot{p}
	}
	column[2][0].X.Label.Text = "time, s"
	canvas := vgsvg.New(16*vg.Centimeter, 18*vg.Centimeter)
	tiles := draw.Tiles{Rows: 3, Cols: 1, PadY: vg.Points(6)}
	for i, c := range plot.Align(column, tiles, draw.New(canvas)) {
		column[i][0].Draw(c[0])
	}
	return save(canvas, path)
}

// writeFigure draws a figure.
func writeFigure(path string, f netsim.Figure) error {
	p, err := panel(f.Title, f.Y, f.Lines())
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	p.X.Label.Text, p.X.Min = f.X, f.From
	p.Legend.Top, p.Legend.Left = false, false // the lines rise from the left
	canvas := vgsvg.New(16*vg.Centimeter, 8*vg.Centimeter)
	p.Draw(draw.New(canvas))
	return save(canvas, path)
}

// save writes what is drawn.
func save(canvas *vgsvg.Canvas, path string) error {
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
