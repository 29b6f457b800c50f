package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// allToAllTitle is what a figure is called.
func allToAllTitle(name string) (string, bool) {
	for i := range labNetworks {
		w := &labNetworks[i]
		for _, slice := range w.slices {
			for _, way := range allToAllWays {
				if unit, ok := strings.CutPrefix(name, allToAllFigure(w, slice, way.name, "")); ok {
					return strings.Join([]string{"all to all", w.title, sizeText(slice), way.title, unit}, ", "), true
				}
			}
		}
	}
	return "", false
}

// measuredWays are the orders that some of these providers has figures of.
func measuredWays(found *figures, providers ...string) (ways []allToAllWay) {
	for _, way := range allToAllWays {
		measured := false
		for i := range labNetworks {
			for _, slice := range labNetworks[i].slices {
				name := allToAllFigure(&labNetworks[i], slice, way.name, "ms")
				measured = measured || slices.ContainsFunc(providers, func(p string) bool {
					return len(found.values[p][name]) != 0
				})
			}
		}
		if measured || !way.policy {
			ways = append(ways, way)
		}
	}
	return ways
}

// bestFixed is the way with the least median of those that do not follow the network.
func bestFixed(found *figures, provider string, w *labNetwork, slice int64) string {
	best, least := "", spread{}
	for _, way := range allToAllWays {
		s := found.of(provider, allToAllFigure(w, slice, way.name, "ms"))
		if way.fixed && s.count != 0 && (least.count == 0 || s.median < least.median) {
			best, least = way.name, s
		}
	}
	return best
}

// times writes a ratio to two places.
func times(s spread) string {
	if s.count == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", s.median)
}

// goal is what is to be reached, and whether no order can.
func (w *labNetwork) goal(found *figures, provider string, slice int64) string {
	step := found.of(provider, allToAllFigure(w, slice, "step", "bounds"))
	if w.ofStep == 0 || step.count == 0 || 1/step.median <= w.ofStep {
		return w.reach
	}
	return fmt.Sprintf("%s (not possible: the bound is %.2f x step)", w.reach, 1/step.median)
}

// allToAllRow writes a row of a provider's table.
func allToAllRow(
	b *strings.Builder, found *figures, provider string, ways []allToAllWay, w *labNetwork, slice int64,
) {
	figure := func(way, unit string) string { return allToAllFigure(w, slice, way, unit) }
	if found.of(provider, figure("alltoall", "ms")).count == 0 {
		return
	}
	bound, on := found.of(provider, figure("alltoall", "bound_ms")), "–"
	if w.hosts != 0 {
		on = times(found.of(provider, figure("alltoall", "bounds")))
	}
	if rest := found.of(provider, figure("alltoall", "rests")); rest.count != 0 {
		on += ", rest " + times(rest)
	}
	fmt.Fprintf(b, "| %s | %s |", w.title, sizeText(slice))
	if w.hosts == 0 {
		b.WriteString(" – |")
	} else {
		fmt.Fprintf(b, " %s |", bound.short())
	}
	for _, way := range ways {
		fmt.Fprintf(b, " %v |", found.of(provider, figure(way.name, "ms")))
	}
	fixed := bestFixed(found, provider, w, slice)
	fmt.Fprintf(b, " %s | %s | %s (%s) |", on,
		times(found.pairs(provider, figure("alltoall", "ms"), figure("step", "ms"))),
		times(found.pairs(provider, figure("alltoall", "ms"), figure(fixed, "ms"))), wayTitle(fixed))
	for _, way := range ways {
		if way.policy {
			fmt.Fprintf(b, " %s |", times(found.pairs(provider, figure(way.name, "ms"), figure(fixed, "ms"))))
		}
	}
	means := found.pairs(provider, figure("alltoall", "mean_ms"), figure("step", "mean_ms"))
	fmt.Fprintf(b, " %s | %s |\n", times(means), w.goal(found, provider, slice))
}

// leastOf is the provider with the least median of a way, or of all that do not follow the network.
func leastOf(
	found *figures, providers []string, w *labNetwork, slice int64, way string,
) (provider, name string, s spread) {
	for _, p := range providers {
		this := way
		if this == "" {
			this = bestFixed(found, p, w, slice)
		}
		of := found.of(p, allToAllFigure(w, slice, this, "ms"))
		if of.count != 0 && (s.count == 0 || of.median < s.median) {
			provider, name, s = p, this, of
		}
	}
	return provider, name, s
}

// allToAllBest writes how each way that follows the network stands beside the best of all providers, which may be
// one of another congestion control.
func allToAllBest(b *strings.Builder, found *figures, providers []string, slice int64) {
	b.WriteString("Beside the better of them, medians divided:\n\n| network | slices | best step | best fixed |")
	var columns []string // provider and way
	for _, p := range providers {
		for _, way := range measuredWays(found, p) {
			if !way.fixed {
				columns = append(columns, p, way.name)
				fmt.Fprintf(b, " %s, %s / step | / fixed |", p, way.title)
			}
		}
	}
	b.WriteString("\n| --- | --- | --- | --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for i := range labNetworks {
		w := &labNetworks[i]
		ofStep, _, step := leastOf(found, providers, w, slice, "step")
		ofFixed, way, fixed := leastOf(found, providers, w, slice, "")
		if step.count == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s (%s) | %s (%s, %s) |", w.title, sizeText(slice),
			step.short(), ofStep, fixed.short(), ofFixed, wayTitle(way))
		for k := 0; k < len(columns); k += 2 {
			s := found.of(columns[k], allToAllFigure(w, slice, columns[k+1], "ms"))
			fmt.Fprintf(b, " %s | %s |", ofMedians(s, step), ofMedians(s, fixed))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// ofMedians divides medians.
func ofMedians(a, b spread) string {
	if v := ratio(a, b); !math.IsNaN(v) {
		return fmt.Sprintf("%.2f", v)
	}
	return "–"
}

func wayTitle(name string) string {
	for _, way := range allToAllWays {
		if way.name == name {
			return way.title
		}
	}
	return "–"
}

// strangersLines say what became of the strangers, beside each way.
func strangersLines(b *strings.Builder, found *figures, provider string, slice int64) {
	for i := range labNetworks {
		strangersLine(b, found, provider, &labNetworks[i], slice, "stranger_lost", "share of their datagrams lost")
		strangersLine(b, found, provider, &labNetworks[i], slice, "stranger_mbps", "Mbit/s of both")
	}
}

func strangersLine(
	b *strings.Builder, found *figures, provider string, w *labNetwork, slice int64, unit, title string,
) {
	var parts []string
	for _, way := range allToAllWays {
		if s := found.of(provider, allToAllFigure(w, slice, way.name, unit)); s.count != 0 {
			parts = append(parts, way.title+" "+s.short())
		}
	}
	if len(parts) != 0 {
		fmt.Fprintf(b, "- %s, %s, %s: strangers' %s beside %s.\n",
			provider, w.title, sizeText(slice), title, strings.Join(parts, ", "))
	}
}

const allToAllIntroduction = `Hosts, which are network namespaces, around a switch that sends %d Mbit/s to each, where
nothing else is said, and keeps %d KiB for it. The ranks share two cores and let each other
run when they find nothing to do: %s.
Time of the last rank in ms, medians (quartiles) of the rounds. Each way has ranks, endpoints and connections of
its own; they take turns in every round, another one first in each. *step*: one peer at a time; *all at once*: by
messages; *off* and *on*: ` + "`fi_alltoall`, or `alltoallv`" + `, with FI_WEFT_RTT_SCHED_ENABLE=no and as it is
by default, where the policy is adaptive; other policies have columns of their own. Long slices go pairwise by eights
where scheduling is off, so *off* is that order, too. The bound is the time of the port or path that needs longest,
headers included, by what the network was set to when. *Fixed* is the best of *step*, *all at once* and *off*.
Ratios are the median of the rounds'. A share of step that is less than the bound's is said to be not possible.%s

`

// exchanged are the providers that have figures of all-to-alls.
func exchanged(res *result, found *figures) []string {
	return slices.DeleteFunc(slices.Clone(res.Providers), func(p string) bool {
		return !found.has(p, "alltoall_")
	})
}

// exchangedSlices are the lengths that all-to-alls were measured with.
func exchangedSlices(found *figures) (lengths []int64) {
	for i := range labNetworks {
		w := &labNetworks[i]
		for _, slice := range w.slices {
			prefix := allToAllFigure(w, slice, "", "")
			if !slices.Contains(lengths, slice) &&
				found.any(func(name string) bool { return strings.HasPrefix(name, strings.TrimSuffix(prefix, "_")) }) {
				lengths = append(lengths, slice)
			}
		}
	}
	slices.Sort(lengths)
	return lengths
}

// allToAllSections places a section for each length that was measured. Those of other lengths stay as they are.
func allToAllSections(document string, res *result, found *figures, drawn map[string]string) string {
	const kind = "all to all, "
	for _, slice := range exchangedSlices(found) {
		document = placeBeside(document, kind, kind+sizeText(slice)+", "+res.Libfabric,
			allToAllSection(res, found, drawn, slice))
	}
	return document
}

// allToAllSection writes a table for each provider, with a row for each network; drawn are the plots.
func allToAllSection(res *result, found *figures, drawn map[string]string, slice int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## All to all, slices of %s, libfabric %s, %s\n\n", sizeText(slice), res.Libfabric, res.date())
	fmt.Fprintf(&b, allToAllIntroduction, labMbit, labQueue>>10, res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench alltoall --slices %s`, as root\n\n", sizeText(slice))
	providers := exchanged(res, found)
	for _, p := range providers {
		ways := measuredWays(found, p)
		allToAllHead(&b, p, ways)
		for i := range labNetworks {
			allToAllRow(&b, found, p, ways, &labNetworks[i], slice)
		}
		b.WriteByte('\n')
		before := b.Len()
		if strangersLines(&b, found, p, slice); b.Len() != before {
			b.WriteByte('\n')
		}
	}
	if len(providers) > 1 {
		allToAllBest(&b, found, providers, slice)
	}
	d := allToAllPlot(slice)
	if path := drawn[d.file]; path != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", d.title, path)
	}
	return b.String()
}

// allToAllHead writes the head of a provider's table.
func allToAllHead(b *strings.Builder, provider string, ways []allToAllWay) {
	fmt.Fprintf(b, "| %s | slices | bound |", provider)
	columns := len(ways)
	for _, way := range ways {
		fmt.Fprintf(b, " %s |", way.title)
	}
	b.WriteString(" on / bound | on / step | on / fixed |")
	for _, way := range ways {
		if way.policy {
			fmt.Fprintf(b, " %s / fixed |", way.title)
			columns++
		}
	}
	b.WriteString(" mean end, on / step | to reach |\n")
	b.WriteString("| --- | --- | --- |" + strings.Repeat(" --- |", columns+5) + "\n")
}
