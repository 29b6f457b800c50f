package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

// row is a line of the table and what it is to reach. The value that is judged
// is the first provider's figure divided by the second's, round by round; with
// by, divided by another figure of the first provider; with absolute, the
// figure itself.
type row struct {
	name     string
	title    string
	target   float64
	atLeast  bool // more is better
	by       string
	absolute bool
}

var rows = []row{
	{name: "hop_ns", title: "cache line from core to core, ns (no provider)", target: math.NaN()},
	{name: "pingpong_8_us", title: "8 B tagged ping-pong, half round trip, us", target: 0.85},
	{name: "pingpong_4096_us", title: "4 KiB tagged ping-pong, us", target: 0.95},
	{name: "pingpong_65536_us", title: "64 KiB tagged ping-pong, us", target: 0.95},
	{name: "pingpong_1048576_us", title: "1 MiB tagged ping-pong, us", target: 0.95},
	{name: "pingpong_8_p99_us", title: "8 B tagged ping-pong, p99, us", target: math.NaN()},
	{name: "pingpong_8_p999_us", title: "8 B tagged ping-pong, p99.9, us", target: 1},
	{name: "pingpong_8_p9999_us", title: "8 B tagged ping-pong, p99.99, us", target: math.NaN()},
	{name: "rate_8_mps", title: "8 B tagged message rate, window 64, M/s", target: 2, atLeast: true},
	{name: "bandwidth_65536_mbps", title: "64 KiB tagged bandwidth, MB/s", target: 1.05, atLeast: true},
	{name: "bandwidth_1048576_mbps", title: "1 MiB tagged bandwidth, MB/s", target: 1.05, atLeast: true},
	{name: "write_8_mps", title: "8 B RMA write rate, window 64, M/s", target: 1.5, atLeast: true},
	{name: "write_65536_apart_mbps", title: "64 KiB RMA write bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "read_65536_apart_mbps", title: "64 KiB RMA read bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "write_65536_mbps", title: "the same, all writes to one place, MB/s", target: 1.5, atLeast: true},
	{name: "read_65536_mbps", title: "the same, all reads of one place, MB/s", target: 1.5, atLeast: true},
	{name: "write_1048576_mbps", title: "1 MiB RMA write bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "read_1048576_mbps", title: "1 MiB RMA read bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "fetch_add_us", title: "8 B fetch-add, round trip, us", target: 0.65},
	{name: "cq_read_empty_ns", title: "empty fi_cq_read, ns", target: 10, absolute: true},
	{name: "enter_1_ns", title: "fi_av_lookup (weft: a call into Go), 1 thread, ns", target: math.NaN()},
	{name: "enter_2_ns", title: "the same, 2 threads, ns each", target: math.NaN()},
	{name: "post_1_safe_mps", title: "posting, 1 thread, FI_THREAD_SAFE, M/s", target: math.NaN()},
	{name: "post_2_safe_mps", title: "posting, 2 threads to 2 peers, FI_THREAD_SAFE, M/s", target: 1.8, atLeast: true,
		by: "post_1_safe_mps"},
	{name: "post_4_safe_mps", title: "posting, 4 threads to 4 peers, M/s", target: math.NaN()},
	{name: "post_8_safe_mps", title: "posting, 8 threads to 8 peers, M/s", target: math.NaN()},
	{name: "post_16_safe_mps", title: "posting, 16 threads to 16 peers, M/s", target: 12, atLeast: true,
		by: "post_1_safe_mps"},
	{name: "post_1_domain_mps", title: "posting, 1 thread, FI_THREAD_DOMAIN, M/s", target: 1, atLeast: true,
		by: "post_1_safe_mps"},
	{name: "posted_in_order_10_ns", title: "match, 10 receives posted, in their order, ns", target: math.NaN()},
	{name: "posted_10_ns", title: "match, 10 receives posted, in another order, ns", target: math.NaN()},
	{name: "posted_100000_ns", title: "match, 100,000 receives posted, ns", target: 2.5, by: "posted_10_ns"},
	{name: "unexpected_10_ns", title: "match, 10 unexpected messages, ns", target: math.NaN()},
	{name: "unexpected_100000_ns", title: "match, 100,000 unexpected messages, ns", target: 3, by: "unexpected_10_ns"},
	{name: "peers_out_1_mps", title: "8 B messages to 1 peer, M/s", target: math.NaN()},
	{name: "peers_out_64_mps", title: "8 B messages to 64 peers in turn, M/s", target: math.NaN()},
	{name: "peers_in_1_mps", title: "8 B messages from 1 peer, M/s", target: math.NaN()},
	{name: "peers_in_64_mps", title: "8 B messages from 64 peers in turn, M/s", target: math.NaN()},
	{name: "one_core_manual_mps", title: "8 B rate, both processes on one core, manual progress, M/s",
		target: math.NaN()},
	{name: "one_core_auto_mps", title: "8 B rate, both processes and their progress threads on one core, M/s",
		target: 0.5, atLeast: true, by: "one_core_manual_mps"},
	{name: "apart_8_us", title: "8 B tagged ping-pong, progress threads on cores of their own, us", target: 1.1,
		by: "pingpong_8_us"},
	{name: "fetch_add_served_us", title: "8 B fetch-add, answered by a progress thread on the peer's core, us",
		target: 1.1, by: "fetch_add_us"},
	{name: "idle_auto_percent", title: "idle process with automatic progress, % of a core", target: 0.1,
		absolute: true},
	{name: "rss_open_kib", title: "resident memory after open, KiB", target: 1},
	{name: "endpoint_idle_kib", title: "resident memory per idle endpoint, KiB", target: 1},
}

// judge returns what is compared with the target, and how that reads.
func (r row) judge(found *figures, providers []string) (float64, string) {
	own := found.of(providers[0], r.name)
	switch {
	case math.IsNaN(r.target):
		return math.NaN(), ""
	case r.absolute:
		if own.count == 0 {
			return math.NaN(), "–"
		}
		return own.median, number(own.median)
	case r.by != "":
		s := found.pairs(providers[0], r.name, r.by)
		if s.count == 0 {
			return math.NaN(), "–"
		}
		return s.median, ratioText(s.median, "")
	}
	if len(providers) < 2 {
		return math.NaN(), "–"
	}
	s := found.versus(providers[0], providers[1], r.name)
	if s.count == 0 {
		return math.NaN(), "–"
	}
	return s.median, ratioText(s.median, providers[1])
}

func ratioText(v float64, of string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strings.TrimSpace(fmt.Sprintf("%.2f x %s", v, of))
}

// goal writes the target.
func (r row) goal() string {
	if math.IsNaN(r.target) {
		return ""
	}
	sign := "<="
	if r.atLeast {
		sign = ">="
	}
	if r.absolute {
		return fmt.Sprintf("%s %g", sign, r.target)
	}
	return fmt.Sprintf("%s %g x", sign, r.target)
}

func (r row) reached(v float64) string {
	switch {
	case math.IsNaN(r.target):
		return ""
	case math.IsNaN(v):
		return "not measured"
	case r.atLeast && v >= r.target, !r.atLeast && v <= r.target:
		return "yes"
	}
	return "no"
}

// inTable are the providers that have a figure of the table.
func inTable(found *figures, providers []string) []string {
	return slices.DeleteFunc(slices.Clone(providers), func(p string) bool {
		return !slices.ContainsFunc(rows, func(r row) bool { return found.of(p, r.name).count != 0 })
	})
}

// section writes the Markdown of one run: the rows that were measured.
func section(res *result, found *figures, drawn map[string]string) string {
	var b strings.Builder
	providers := inTable(found, res.Providers)
	fmt.Fprintf(&b, "## libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "%s. %d rounds of each provider in turn, %v per figure, cores %d,%d; "+
		"median over the rounds (quartiles).%s\n\n", res.Machine, res.Rounds, res.perFigure(), res.Cores[0],
		res.Cores[1], res.noiseText())
	fmt.Fprintf(&b, "Command: `make bench`, with `LIBFABRIC=<folder>` for a libfabric other than the system's\n\n")
	fmt.Fprintf(&b, "| what | %s | ratio | to reach | reached |\n", strings.Join(providers, " | "))
	fmt.Fprintf(&b, "| --- |%s\n", strings.Repeat(" --- |", len(providers)+3))
	for _, r := range rows {
		if found.of(providers[0], r.name).count == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.title)
		for _, p := range providers {
			fmt.Fprintf(&b, " %v |", found.of(p, r.name))
		}
		v, text := r.judge(found, providers)
		fmt.Fprintf(&b, " %s | %s | %s |\n", text, r.goal(), r.reached(v))
	}
	fmt.Fprintln(&b)
	b.WriteString(distanceTable(found, providers))
	for _, p := range sectionPlots {
		if path := drawn[p.file]; path != "" {
			fmt.Fprintf(&b, "![%s](%s)\n", p.title, path)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// date is the day of the run.
func (r *result) date() string { return r.Taken.Format(time.DateOnly) }

// noiseText says what makes the figures doubtful, as a sentence behind another.
func (r *result) noiseText() string {
	if len(r.Noise) == 0 {
		return ""
	}
	return " Doubtful: " + strings.Join(r.Noise, "; ") + "."
}

// plain writes what was measured as columns: medians and quartiles, without the
// quartiles on a terminal that is too narrow for them.
func plain(w io.Writer, res *result) error {
	style := text.StyleFor(w)
	lines := columns(res, spread.String)
	if width := text.Columns(w); width > 0 &&
		slices.ContainsFunc(lines, func(l string) bool { return text.Width(l) > width }) {
		lines = columns(res, spread.short)
	}
	lines[0] = style.Bold(lines[0])
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// columns lays the figures out, the head first.
func columns(res *result, write func(spread) string) []string {
	found := res.figures()
	two := len(res.Providers) > 1
	t := text.Table{Right: []bool{false}}
	head := append([]string{"median over the rounds"}, res.Providers...)
	for range res.Providers {
		t.Right = append(t.Right, true)
	}
	if two {
		head = append(head, "ratio")
		t.Right = append(t.Right, true)
	}
	t.Row(head...)
	shown := map[string]bool{}
	for i := range res.Figures {
		f := &res.Figures[i]
		if shown[f.Name] {
			continue
		}
		shown[f.Name] = true
		cells := []string{f.Title}
		for _, p := range res.Providers {
			cells = append(cells, write(found.of(p, f.Name)))
		}
		if two {
			cells = append(cells, write(found.versus(res.Providers[0], res.Providers[1], f.Name)))
		}
		t.Row(cells...)
	}
	lines := t.Lines("")
	if two {
		lines = append(lines, "ratio: "+res.Providers[0]+" by "+res.Providers[1]+", of each round where both were "+
			"measured in all")
	}
	return lines
}

// machine describes processor and kernel.
func machine() string {
	model := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	var u unix.Utsname
	kernel := "unknown kernel"
	if err := unix.Uname(&u); err == nil {
		kernel = "Linux " + unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", model, runtime.NumCPU(), kernel, runtime.Version())
}
