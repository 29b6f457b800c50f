package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Processors of a virtual machine may move on the machine below it: now they
// share a cache, now they do not, and a message takes twice the time. A median
// over rounds of both kinds belongs to neither. So the rounds are distinguished by
// the time that a cache line takes from one to the other, which every round of
// latency measures first.

// hopName is that figure.
const hopName = "hop_ns"

// apart is how many times the shortest time is the longest when the processors
// have moved.
const apart = 2

// distance returns the time that divides the rounds of near processors from
// those of distant ones, and whether there are both.
func (f *figures) distance(providers []string, hop string) (limit float64, both bool) {
	if len(providers) < 2 {
		return 0, false
	}
	var all []float64
	for _, p := range providers[:2] {
		all = append(all, f.values[p][hop]...)
	}
	if len(all) == 0 {
		return 0, false
	}
	low, high := slices.Min(all), slices.Max(all)
	return math.Sqrt(low * high), high > apart*low
}

// split returns the distributions of a figure over the rounds on both sides of
// a limit. They are empty for a figure that was not measured in every round.
func (f *figures) split(provider, name, hop string, limit float64) (near, far spread) {
	hops, values := f.values[provider][hop], f.values[provider][name]
	if len(hops) != len(values) {
		return spread{}, spread{}
	}
	var sides [2][]float64
	for n, v := range values {
		side := 0
		if hops[n] > limit {
			side = 1
		}
		sides[side] = append(sides[side], v)
	}
	return distribution(sides[0]), distribution(sides[1])
}

// distanceTable writes what crosses from processor to processor by distance,
// nothing if the processors have not moved.
func distanceTable(found *figures, providers []string) string {
	return distances(found, providers, hopName, slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return math.IsNaN(r.target) || r.absolute || r.by != "" || strings.HasSuffix(r.name, "_kib")
	}))
}

// distances does so for the rows of any table, of which one is the time of a cache line.
func distances(found *figures, providers []string, hop string, table []row) string {
	limit, both := found.distance(providers, hop)
	if !both {
		return ""
	}
	near, far := found.split(providers[0], hop, hop, limit)
	var b strings.Builder
	fmt.Fprintf(&b, "The processors move. The same by their distance at the start of a round, %s / %s = ratio "+
		"(rounds of each):\n\n", providers[0], providers[1])
	fmt.Fprintf(&b, "| what | %.0f ns apart | %.0f ns apart | to reach |\n| --- | --- | --- | --- |\n", near.median,
		far.median)
	for _, r := range table {
		if r.name == hop {
			continue
		}
		own, other := [2]spread{}, [2]spread{}
		own[0], own[1] = found.split(providers[0], r.name, hop, limit)
		other[0], other[1] = found.split(providers[1], r.name, hop, limit)
		if own[0].count+own[1].count == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.title, quotient(own[0], other[0]), quotient(own[1], other[1]),
			r.goal())
	}
	return b.String() + "\n"
}

// quotient writes two medians and their ratio.
func quotient(a, b spread) string {
	if a.count == 0 || b.count == 0 {
		return "–"
	}
	return fmt.Sprintf("%s / %s = %.2f (%d, %d)", number(a.median), number(b.median), a.median/b.median, a.count,
		b.count)
}
