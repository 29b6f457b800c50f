package bench

import (
	"fmt"
	"math"
	"strings"
)

// The plot's geometry, in SVG units: a panel for each test, side by side.
const (
	panelWidth  = 250
	panelHeight = 240
	marginLeft  = 56
	marginTop   = 44
	panelGap    = 26
	plotWidth   = marginLeft + 3*panelWidth + 2*panelGap + 20
	plotHeight  = marginTop + panelHeight + 66
)

// Strokes of the providers, which differ in shape as well as in colour.
var strokes = []struct{ colour, dash string }{{"#0b61a4", "none"}, {"#c44e00", "6 4"}}

// scalingPlot draws the scaling figures: both axes logarithmic, the median of
// each number of threads.
func scalingPlot(found *figures, providers []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	low, high := scalingRange(found, providers)
	y := func(rate float64) float64 {
		return marginTop + panelHeight*(1-(math.Log10(rate)-low)/(high-low))
	}
	for i, t := range scalingTests {
		left := float64(marginLeft + i*(panelWidth+panelGap))
		x := func(threads int) float64 { return left + panelWidth*math.Log2(float64(threads))/4 }
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", left, marginTop-12, t.title)
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>`+"\n", left, marginTop, panelWidth, panelHeight)
		for d := low; d <= high; d++ {
			at := y(math.Pow(10, d))
			fmt.Fprintf(&b, `<path d="M%.1f %.1fh%d" stroke="#ddd"/>`+"\n", left, at, panelWidth)
			if i == 0 {
				fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end">%g</text>`+"\n", left-6, at+4, math.Pow(10, d))
			}
		}
		for _, n := range scalingThreads {
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(n), marginTop+panelHeight+16, n)
		}
		for k, p := range providers {
			drawCurve(&b, found, p, t.name, strokes[k].colour, strokes[k].dash, x, y)
		}
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">threads in each process</text>`+"\n", plotWidth/2, marginTop+panelHeight+36)
	fmt.Fprintf(&b, `<text x="14" y="%d" transform="rotate(-90 14 %d)" text-anchor="middle">million messages per second</text>`+"\n",
		marginTop+panelHeight/2, marginTop+panelHeight/2)
	for k, p := range providers {
		at := marginLeft + k*120
		fmt.Fprintf(&b, `<path d="M%d %dh30" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			at, plotHeight-10, strokes[k].colour, strokes[k].dash, at+36, plotHeight-6, p)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// drawCurve draws one provider's figures of one test.
func drawCurve(b *strings.Builder, found *figures, provider, test, colour, dash string, x func(int) float64, y func(float64) float64) {
	path := ""
	for _, n := range scalingThreads {
		s := found.of(provider, scalingFigure(test, n))
		if s.count == 0 || s.median <= 0 {
			continue
		}
		verb := "L"
		if path == "" {
			verb = "M"
		}
		path += fmt.Sprintf("%s%.1f %.1f", verb, x(n), y(s.median))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(n), y(s.median), colour)
	}
	if path != "" {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", path, colour, dash)
	}
}

// scalingRange returns the whole powers of ten that enclose all figures.
func scalingRange(found *figures, providers []string) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range providers {
		for _, t := range scalingTests {
			for _, n := range scalingThreads {
				if s := found.of(p, scalingFigure(t.name, n)); s.count > 0 && s.median > 0 {
					low, high = min(low, math.Floor(math.Log10(s.median))), max(high, math.Ceil(math.Log10(s.median)))
				}
			}
		}
	}
	if low >= high {
		return -1, 1
	}
	return low, high
}
