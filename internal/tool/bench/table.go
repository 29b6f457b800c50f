package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// row is a line of the table and what it is to reach. The value that is judged
// is the first provider's figure divided by the second's; with by, divided by
// another figure of the first provider, round by round; with absolute, the
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
	{name: "pingpong_8_us", title: "8 B tagged ping-pong, half round trip, us", target: 0.65},
	{name: "pingpong_4096_us", title: "4 KiB tagged ping-pong, us", target: 0.8},
	{name: "pingpong_65536_us", title: "64 KiB tagged ping-pong, us", target: 0.95},
	{name: "pingpong_1048576_us", title: "1 MiB tagged ping-pong, us", target: 0.95},
	{name: "pingpong_8_p999_us", title: "8 B tagged ping-pong, p99.9, us", target: 1},
	{name: "rate_8_mps", title: "8 B tagged message rate, window 64, M/s", target: 1.5, atLeast: true},
	{name: "bandwidth_65536_mbps", title: "64 KiB tagged bandwidth, MB/s", target: 1.05, atLeast: true},
	{name: "bandwidth_1048576_mbps", title: "1 MiB tagged bandwidth, MB/s", target: 1.05, atLeast: true},
	{name: "write_8_mps", title: "8 B RMA write rate, window 64, M/s", target: 1.5, atLeast: true},
	{name: "write_65536_mbps", title: "64 KiB RMA write bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "read_65536_mbps", title: "64 KiB RMA read bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "write_1048576_mbps", title: "1 MiB RMA write bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "read_1048576_mbps", title: "1 MiB RMA read bandwidth, MB/s", target: 1.5, atLeast: true},
	{name: "fetch_add_us", title: "8 B fetch-add, round trip, us", target: 0.65},
	{name: "cq_read_empty_ns", title: "empty fi_cq_read, ns", target: 10, absolute: true},
	{name: "post_1_safe_mps", title: "posting, 1 thread, FI_THREAD_SAFE, M/s", target: math.NaN()},
	{name: "post_2_safe_mps", title: "posting, 2 threads to 2 peers, FI_THREAD_SAFE, M/s", target: 1.8, atLeast: true, by: "post_1_safe_mps"},
	{name: "post_1_domain_mps", title: "posting, 1 thread, FI_THREAD_DOMAIN, M/s", target: 1, atLeast: true, by: "post_1_safe_mps"},
	{name: "posted_10_ns", title: "match, 10 receives posted, ns", target: math.NaN()},
	{name: "posted_100000_ns", title: "match, 100,000 receives posted, ns", target: 3, by: "posted_10_ns"},
	{name: "unexpected_10_ns", title: "match, 10 unexpected messages, ns", target: math.NaN()},
	{name: "unexpected_100000_ns", title: "match, 100,000 unexpected messages, ns", target: 3, by: "unexpected_10_ns"},
	{name: "one_core_manual_mps", title: "8 B rate, both processes on one core, manual progress, M/s", target: math.NaN()},
	{name: "one_core_auto_mps", title: "8 B rate, both processes and their progress threads on one core, M/s", target: 0.5, atLeast: true, by: "one_core_manual_mps"},
	{name: "apart_8_us", title: "8 B tagged ping-pong, progress threads on cores of their own, us", target: 1.1, by: "pingpong_8_us"},
	{name: "idle_auto_percent", title: "idle process with automatic progress, % of a core", target: 0.1, absolute: true},
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
	v := ratio(own, found.of(providers[1], r.name))
	return v, ratioText(v, providers[1])
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

// section writes the Markdown of one run.
func section(o options, found, mpi *figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## libfabric %s, %s\n\n", libraryVersion(o), time.Now().UTC().Format("2006-01-02"))
	fmt.Fprintf(&b, "%s. %d rounds of each provider in turn, %v per figure, cores %s; "+
		"median over the rounds (quartiles).\n\n", machine(), o.rounds, o.perFigure, o.cores)
	fmt.Fprintf(&b, "Command: `make bench%s`\n\n", fabricArgument(o))
	table(&b, o, found)
	if mpi != nil {
		netpipeTable(&b, mpi)
	}
	return b.String()
}

func fabricArgument(o options) string {
	if o.libfabric == "" {
		return ""
	}
	return " LIBFABRIC=<folder>"
}

func table(b *strings.Builder, o options, found *figures) {
	fmt.Fprintf(b, "| what | %s | ratio | to reach | reached |\n", strings.Join(o.providers, " | "))
	fmt.Fprintf(b, "| --- |%s\n", strings.Repeat(" --- |", len(o.providers)+3))
	for _, r := range rows {
		if o.quick && found.of(o.providers[0], r.name).count == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s |", r.title)
		for _, p := range o.providers {
			fmt.Fprintf(b, " %v |", found.of(p, r.name))
		}
		v, text := r.judge(found, o.providers)
		fmt.Fprintf(b, " %s | %s | %s |\n", text, r.goal(), r.reached(v))
	}
	fmt.Fprintln(b)
}

// plain writes what was measured as columns for a terminal.
func plain(w io.Writer, o options, found *figures) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\t%s\t\n", strings.Join(o.providers, "\t"), "ratio")
	for _, r := range rows {
		if found.of(o.providers[0], r.name).count == 0 || r.name == "hop_ns" {
			continue
		}
		for _, p := range o.providers {
			s := found.of(p, r.name)
			if s.count == 0 {
				fmt.Fprint(t, "–\t")
			} else {
				fmt.Fprintf(t, "%s\t", number(s.median))
			}
		}
		fmt.Fprintf(t, "%.2f\t  %s\n", ratio(found.of(o.providers[0], r.name), found.of(o.providers[1], r.name)), r.title)
	}
	return t.Flush()
}

// netpipeTable shows the providers that Open MPI took.
func netpipeTable(b *strings.Builder, mpi *figures) {
	var took []string
	for _, p := range netpipeProviders {
		if len(mpi.values[p]) > 0 {
			took = append(took, p)
		}
	}
	fmt.Fprintf(b, "Open MPI's mtl ofi, NetPIPE, half round trip in us, %d rounds; providers that Open MPI takes:\n\n", netpipeRounds)
	fmt.Fprintf(b, "| bytes | %s |\n", strings.Join(took, " | "))
	fmt.Fprintf(b, "| --- |%s\n", strings.Repeat(" --- |", len(took)))
	for _, s := range netpipeSizes {
		fmt.Fprintf(b, "| %d |", s.bytes)
		for _, p := range took {
			fmt.Fprintf(b, " %v |", mpi.of(p, fmt.Sprintf("netpipe_%d_us", s.bytes)))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
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
