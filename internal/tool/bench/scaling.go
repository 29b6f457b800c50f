package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The scaling tests of the measuring program, and what they vary.
var scalingTests = []struct{ name, title string }{
	{"scale_own", "an endpoint and a queue for each thread"},
	{"scale_shared", "one endpoint and one queue for all threads"},
	{"scale_readers", "one sender, one queue with many readers"},
}

// scalingThreads are the numbers of threads in each process.
var scalingThreads = []int{1, 2, 4, 8, 16}

func scalingFigure(test string, threads int) string { return fmt.Sprintf("%s_%d_mps", test, threads) }

// measureScaling measures rates over the number of threads, the first two
// providers in turn, draws them and writes the section.
func measureScaling(w io.Writer, o options) error {
	var tests []string
	for _, t := range scalingTests {
		tests = append(tests, t.name)
	}
	found := newFigures()
	providers := o.providers[:2]
	for round := range o.rounds {
		for _, p := range providers {
			progress("scaling, round %d of %d: %s", round+1, o.rounds, p)
			o.measureOnce(found, p, tests)
		}
	}
	if len(found.values[providers[0]]) == 0 {
		return fmt.Errorf("%s gave no figure", providers[0])
	}
	if err := os.WriteFile(o.scaling, scalingPlot(found, providers), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	text := scalingSection(o, found, providers)
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if o.out == "" {
		return nil
	}
	return replaceSection(o.out, "scaling, "+libraryVersion(o), text)
}

func scalingSection(o options, found *figures, providers []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Threads, libfabric %s, %s\n\n", libraryVersion(o), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "Messages of 8 bytes per second, in millions, from threads of one process to as many of another, which any\n"+
		"core may run; `FI_THREAD_SAFE`, windows of 64. %s. Median of %d rounds, each provider in turn; load average of the machine at the end, the\n"+
		"measuring threads included: %s.\n\n", machine(), o.rounds, loadAverage())
	fmt.Fprintf(&b, "![rate over threads](%s)\n\n", relative(o.out, o.scaling))
	b.WriteString("| what | provider |")
	for _, n := range scalingThreads {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(scalingThreads)) + "\n")
	for _, t := range scalingTests {
		for _, p := range providers {
			fmt.Fprintf(&b, "| %s | %s |", t.title, p)
			for _, n := range scalingThreads {
				s := found.of(p, scalingFigure(t.name, n))
				if s.count == 0 {
					b.WriteString(" – |")
				} else {
					fmt.Fprintf(&b, " %s |", number(s.median))
				}
			}
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// loadAverage is that of the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// relative is the path of a file as a document names it.
func relative(document, file string) string {
	if rel, err := filepath.Rel(filepath.Dir(document), file); err == nil {
		return rel
	}
	return file
}
