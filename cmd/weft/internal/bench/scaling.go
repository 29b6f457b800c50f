package bench

import (
	"fmt"
	"strings"
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

// scalingSection writes the rates over threads; plot is a file, empty for none.
func scalingSection(res *result, found *figures, plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Threads, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "Messages of 8 bytes per second, in millions, from threads of one process to as many of another, "+
		"which any\n"+
		"core may run; `FI_THREAD_SAFE`, windows of 64. %s. Median of %d rounds, each provider in turn.%s\n\n",
		res.Machine, res.Rounds, res.noiseText())
	fmt.Fprintf(&b, "Command: `make bench-scaling`\n\n")
	if plot != "" {
		fmt.Fprintf(&b, "![rate over threads](%s)\n\n", plot)
	}
	b.WriteString("| what | provider |")
	for _, n := range scalingThreads {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(scalingThreads)) + "\n")
	for _, t := range scalingTests {
		for _, p := range res.Providers {
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
