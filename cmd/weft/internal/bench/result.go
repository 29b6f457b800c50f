package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// result is what a run measured, as it is saved.
type result struct {
	Format    int       `json:"format"` // resultFormat
	Taken     time.Time `json:"taken"`
	Weft      string    `json:"weft"`
	Libfabric string    `json:"libfabric"`
	Machine   string    `json:"machine"`
	Cores     [2]int    `json:"cores"`
	Rounds    int       `json:"rounds"`
	Seconds   float64   `json:"seconds_per_figure"`
	Providers []string  `json:"providers"`
	Noise     []string  `json:"noise"`
	Figures   []figure  `json:"figures"`
}

// figure is one thing that was measured of one provider, in each round.
type figure struct {
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Better   string    `json:"better"` // "higher" or "lower"
	Median   float64   `json:"median"`
	Low      float64   `json:"quartile_low"`
	High     float64   `json:"quartile_high"`
	Values   []float64 `json:"values"`
}

const resultFormat = 1

// higherIsBetter decides by the unit at the end of a figure's name.
func higherIsBetter(name string) bool {
	for _, unit := range []string{"_mps", "_kps", "_mbps", "_use", "_jain", "_gflops", "_gbps"} {
		if strings.HasSuffix(name, unit) {
			return true
		}
	}
	return false
}

// tables are all that have rows.
var tables = [][]row{rows, tokenRows, tokenNetRows, tokenGPURows, mpiRows, netTable}

// titleOf is what a figure is called, its name if the table has none.
func titleOf(name string) string {
	for _, table := range tables {
		if i := rowOf(table, name); i >= 0 {
			return table[i].title
		}
	}
	if title, ok := allToAllTitle(name); ok {
		return title
	}
	if title, ok := mpiJobTitle(name); ok {
		return title
	}
	return name
}

// rowOf is the index of a figure in a table, -1 if it is not in it.
func rowOf(table []row, name string) int {
	return slices.IndexFunc(table, func(r row) bool { return r.name == name })
}

// list returns the figures in the table's order, others behind by name.
func (f *figures) list(providers []string) []figure {
	var list []figure
	for _, p := range providers {
		for name, values := range f.values[p] {
			s := distribution(values)
			better := "lower"
			if higherIsBetter(name) {
				better = "higher"
			}
			list = append(list, figure{p, name, titleOf(name), better, s.median, s.low, s.high, values})
		}
	}
	place := func(name string) int {
		before := 0
		for _, table := range tables {
			if i := rowOf(table, name); i >= 0 {
				return before + i
			}
			before += len(table)
		}
		return before
	}
	slices.SortStableFunc(list, func(a, b figure) int {
		return cmp.Or(cmp.Compare(place(a.Name), place(b.Name)), cmp.Compare(naturally(a.Name), naturally(b.Name)),
			cmp.Compare(slices.Index(providers, a.Provider), slices.Index(providers, b.Provider)))
	})
	return list
}

// naturally makes numbers in a name compare by value.
func naturally(name string) string {
	var b strings.Builder
	var digits int
	for ; name != ""; name = name[digits:] {
		for digits = 0; digits < len(name) && name[digits] >= '0' && name[digits] <= '9'; digits++ {
		}
		if digits == 0 {
			b.WriteByte(name[0])
			digits = 1
			continue
		}
		fmt.Fprintf(&b, "%020s", name[:digits])
	}
	return b.String()
}

// perFigure is how long each figure was measured in a round.
func (r *result) perFigure() time.Duration { return time.Duration(r.Seconds * 1e9) }

// figures is the opposite of list.
func (r *result) figures() *figures {
	f := newFigures()
	for i := range r.Figures {
		for _, v := range r.Figures[i].Values {
			f.add(r.Figures[i].Provider, r.Figures[i].Name, v)
		}
	}
	return f
}

// load reads a saved result.
func load(path string) (*result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("saved figures: %w", err)
	}
	var r result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("saved figures %s: %w", path, err)
	}
	if r.Format != resultFormat {
		return nil, fmt.Errorf("saved figures %s: format %d; this command reads %d", path, r.Format, resultFormat)
	}
	return &r, nil
}
