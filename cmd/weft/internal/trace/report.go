package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

// line is a histogram with its name.
type line struct {
	name, result string
	counts
}

// sample is what was measured so far.
type sample struct {
	pid        int
	command    string
	taken      time.Duration // since the probes were set
	calls, ops []line        // most time first
	threads    []threadTime
	lost       [lostKinds]uint64
	names      []string // of the calls
	library    string
}

// read reads the kernel's maps.
func (p *probe) read() (*sample, error) {
	buckets, err := words(p.buckets, p.slots()*histogram)
	if err != nil {
		return nil, err
	}
	sums, err := words(p.sums, p.slots())
	if err != nil {
		return nil, err
	}
	lost, err := words(p.lost, lostKinds)
	if err != nil {
		return nil, err
	}
	l := &sample{library: p.lib.mapped}
	for i := range p.lib.points {
		l.names = append(l.names, p.lib.points[i].name)
	}
	copy(l.lost[:], lost)
	for slot := range p.slots() {
		c := counts{sum: sums[slot]}
		copy(c.buckets[:], buckets[slot*histogram:])
		if c.total() == 0 {
			continue
		}
		if slot < p.firstKind() {
			l.calls = append(l.calls, line{p.lib.points[slot/results].name, resultNames[slot%results], c})
		} else {
			l.ops = append(l.ops, line{p.kinds[slot-p.firstKind()], "", c})
		}
	}
	byTime := func(a, b line) int { return cmp.Compare(b.sum, a.sum) }
	slices.SortStableFunc(l.calls, byTime)
	slices.SortStableFunc(l.ops, byTime)
	if p.threads != nil {
		l.threads, err = p.threadTimes()
	}
	return l, err
}

func (l *sample) head() string {
	return fmt.Sprintf("process %d (%s), %.1f s, %d calls of %s", l.pid, l.command, l.taken.Seconds(), len(l.names),
		l.library)
}

// table writes one line for each histogram.
func (l *sample) table(style text.Style) []string {
	t := text.Table{Right: []bool{false, false, true, true, true, true, true, true, true}}
	row := func(n *line) {
		count := n.total()
		t.Row(n.name, n.result, fmt.Sprint(count), fmt.Sprintf("%.0f/s", float64(count)/l.taken.Seconds()),
			duration(float64(n.sum)/float64(count)), duration(float64(n.quantile(0.5))),
			duration(float64(n.quantile(0.99))), duration(float64(n.quantile(0.999))), duration(float64(n.quantile(1))))
	}
	t.Row("call", "result", "count", "rate", "mean", "p50", "p99", "p99.9", "longest")
	for i := range l.calls {
		row(&l.calls[i])
	}
	if len(l.ops) != 0 {
		t.Row("")
		t.Row("post to completion", "", "count", "rate", "mean", "p50", "p99", "p99.9", "longest")
		for i := range l.ops {
			row(&l.ops[i])
		}
	}
	lines := t.Lines("")
	for i, s := range lines {
		if i == 0 || strings.HasPrefix(s, "post to completion") {
			lines[i] = style.Bold(s)
		}
	}
	return lines
}

const barWidth = 40

// bars draws a histogram: a line for each power of two from the first to the
// last that has values.
func (n *line) bars(style text.Style) []string {
	const step = 1 << subBits
	var sums []uint64
	first, last, most := -1, 0, uint64(0)
	for log := 0; log*step < histogram; log++ {
		sum := uint64(0)
		for _, b := range n.buckets[log*step : (log+1)*step] {
			sum += b
		}
		if sum != 0 {
			if first < 0 {
				first = log
			}
			last, most = log, max(most, sum)
		}
		sums = append(sums, sum)
	}
	lines := []string{"", style.Bold(strings.TrimSpace(n.name + " " + n.result))}
	for log := first; log <= last; log++ {
		full := int(float64(sums[log])/float64(most)*barWidth + 0.5)
		if sums[log] != 0 {
			full = max(full, 1)
		}
		lines = append(lines, fmt.Sprintf("%8s to %-8s %-*s %d", duration(float64(lowest(log*step))),
			duration(float64(lowest((log+1)*step))), barWidth, strings.Repeat("#", full), sums[log]))
	}
	return lines
}

// notes says what the figures leave out.
func (l *sample) notes() []string {
	var list []string
	for _, n := range []struct {
		count uint64
		text  string
	}{
		{l.lost[failed], "operations failed; they are not in the histograms"},
		{l.lost[lostReused], "posts had a context that was in use: neither operation was measured"},
		{l.lost[lostFull], "posts were not followed: too many operations under way"},
		{l.lost[lostRead], fmt.Sprintf("reads returned more than %d completions, of which the rest was not followed",
			maxEntries)},
		{l.lost[lostStart], "completions were of operations that began before the trace or share a context"},
	} {
		if n.count != 0 {
			list = append(list, fmt.Sprintf("%d %s", n.count, n.text))
		}
	}
	return list
}

// text is the whole report, or its table only.
func (l *sample) text(style text.Style, whole bool) []string {
	lines := append([]string{l.head(), ""}, l.table(style)...)
	if len(l.calls) == 0 {
		lines = []string{l.head(), "", "no call of libfabric ended meanwhile"}
	}
	if whole {
		for _, list := range [][]line{l.ops, l.calls} {
			for i := range list {
				lines = append(lines, list[i].bars(style)...)
			}
		}
	}
	if notes := l.notes(); len(notes) != 0 {
		lines = append(append(lines, ""), notes...)
	}
	return lines
}

// folded writes the time of each thread in each call as a flame graph's program
// reads it: frames from the outermost in, and nanoseconds.
func (l *sample) folded() []string {
	var lines []string
	clean := strings.NewReplacer(";", ",", " ", "_")
	for _, t := range l.threads {
		lines = append(lines, fmt.Sprintf("%s;%s-%d;%s;%s %d", clean.Replace(l.command), clean.Replace(t.name), t.tid,
			l.names[t.slot/results], resultNames[t.slot%results], t.ns))
	}
	slices.Sort(lines)
	return lines
}
