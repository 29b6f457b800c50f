package bench

import (
	"fmt"
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

// bestFixed is the way with the least median of those that do not follow the network.
func bestFixed(found *figures, provider string, w *labNetwork, slice int64) string {
	best, least := "", spread{}
	for _, way := range allToAllWays[:len(allToAllWays)-1] {
		s := found.of(provider, allToAllFigure(w, slice, way.name, "ms"))
		if s.count != 0 && (least.count == 0 || s.median < least.median) {
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

// allToAllRow writes a row of a provider's table.
func allToAllRow(b *strings.Builder, found *figures, provider string, w *labNetwork, slice int64) {
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
	for _, way := range allToAllWays {
		fmt.Fprintf(b, " %v |", found.of(provider, figure(way.name, "ms")))
	}
	fixed := bestFixed(found, provider, w, slice)
	fmt.Fprintf(b, " %s | %s | %s (%s) | %s | %s |\n", on,
		times(found.pairs(provider, figure("alltoall", "ms"), figure("step", "ms"))),
		times(found.pairs(provider, figure("alltoall", "ms"), figure(fixed, "ms"))), wayTitle(fixed),
		times(found.pairs(provider, figure("alltoall", "mean_ms"), figure("step", "mean_ms"))), w.reach)
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
func strangersLines(b *strings.Builder, found *figures, provider string) {
	for i := range labNetworks {
		for _, slice := range labNetworks[i].slices {
			strangersLine(b, found, provider, &labNetworks[i], slice, "stranger_lost", "share of their datagrams lost")
			strangersLine(b, found, provider, &labNetworks[i], slice, "stranger_mbps", "Mbit/s of both")
		}
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
nothing else is said, and keeps %d KiB for it; all ranks poll on two cores, %s.
Time of the last rank in ms, medians (quartiles) of the rounds; the ways take turns in every round. *step*: one
peer at a time; *all at once*: by messages; *off* and *on*: ` + "`fi_alltoall`, or `alltoallv`" + `, with
FI_WEFT_RTT_SCHED_ENABLE=no and as it is by default. The bound is the time of the port or path that needs longest,
headers included, by what the network was set to when. *Fixed* is the best of the other three. Ratios are the
median of the rounds'.%s

`

// allToAllSection writes a table for each provider, with a row for each network and length.
func allToAllSection(res *result, found *figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## All to all, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, allToAllIntroduction, labMbit, labQueue>>10, res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench alltoall`, as root\n\n")
	for _, p := range res.Providers {
		if !found.has(p, "alltoall_") {
			continue
		}
		fmt.Fprintf(&b, "| %s | slices | bound |", p)
		for _, way := range allToAllWays {
			fmt.Fprintf(&b, " %s |", way.title)
		}
		b.WriteString(" on / bound | on / step | on / fixed | mean end, on / step | to reach |\n")
		b.WriteString("| --- | --- | --- |" + strings.Repeat(" --- |", len(allToAllWays)+5) + "\n")
		for i := range labNetworks {
			for _, slice := range labNetworks[i].slices {
				allToAllRow(&b, found, p, &labNetworks[i], slice)
			}
		}
		b.WriteByte('\n')
		before := b.Len()
		if strangersLines(&b, found, p); b.Len() != before {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
