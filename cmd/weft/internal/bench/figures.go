package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// figures holds every value that was measured, by provider and name.
type figures struct {
	values map[string]map[string][]float64
	odd    []string // what was measured and is no value
}

func newFigures() *figures {
	return &figures{values: map[string]map[string][]float64{}}
}

// add takes in a value. One that is no number, or infinite, says nothing about the others.
func (f *figures) add(provider, name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		f.odd = append(f.odd, fmt.Sprintf("%s of %s was %v once", name, provider, value))
		return
	}
	if f.values[provider] == nil {
		f.values[provider] = map[string][]float64{}
	}
	f.values[provider][name] = append(f.values[provider][name], value)
}

// spread is the distribution of a figure over the rounds.
type spread struct {
	median, low, high float64 // low and high are quartiles
	count             int
}

// any reports whether a figure with such a name was measured.
func (f *figures) any(is func(name string) bool) bool {
	for _, values := range f.values {
		for name := range values {
			if is(name) {
				return true
			}
		}
	}
	return false
}

// has reports whether a provider has a figure with a name that begins so.
func (f *figures) has(provider, prefix string) bool {
	for name := range f.values[provider] {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// of returns the distribution of a provider's figure; count is 0 when it was
// never measured.
func (f *figures) of(provider, name string) spread {
	return distribution(f.values[provider][name])
}

func distribution(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(q float64) float64 {
		pos := q * float64(len(v)-1)
		i := int(pos)
		if i+1 == len(v) {
			return v[i]
		}
		return v[i] + (pos-float64(i))*(v[i+1]-v[i])
	}
	return spread{median: at(0.5), low: at(0.25), high: at(0.75), count: len(v)}
}

// String writes the median and, over several rounds, the quartiles.
func (s spread) String() string {
	switch s.count {
	case 0:
		return "–"
	case 1:
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.low), number(s.high))
}

// short writes the median.
func (s spread) short() string {
	s.count = min(s.count, 1)
	return s.String()
}

// number writes three significant digits, and all digits before the point.
func number(v float64) string {
	digits := 2
	if v != 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return strconv.FormatFloat(v, 'f', min(digits, 3), 64)
}

// pairs returns the distribution of a figure divided by another one of the same
// provider, round by round: both come from one moment, so that a machine whose
// speed changes between rounds does not show.
func (f *figures) pairs(provider, name, by string) spread {
	return quotients(f.values[provider][name], f.values[provider][by])
}

// quotients has count 0 where not both were measured in all rounds.
func quotients(a, b []float64) spread {
	if len(a) != len(b) || slices.Contains(b, 0) {
		return spread{}
	}
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return distribution(ratios)
}

// versus is a figure of one provider divided by that of another: of each round,
// or of the medians where not both were measured in all rounds.
func (f *figures) versus(provider, other, name string) spread {
	if s := quotients(f.values[provider][name], f.values[other][name]); s.count != 0 {
		return s
	}
	if v := ratio(f.of(provider, name), f.of(other, name)); !math.IsNaN(v) {
		return spread{median: v, low: v, high: v, count: 1}
	}
	return spread{}
}

// ratio divides the medians; NaN when one is missing.
func ratio(a, b spread) float64 {
	if a.count == 0 || b.count == 0 || b.median == 0 {
		return math.NaN()
	}
	return a.median / b.median
}
