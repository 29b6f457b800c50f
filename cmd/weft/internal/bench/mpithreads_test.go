package bench

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestMPIThreads runs an mpirun that is a script: one way fails, the others print
// a figure each time.
func TestMPIThreads(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "latency_mt", "")
	put(t, dir, "mpirun", `#!/bin/sh
echo "called $*" >> "`+dir+`/calls"
case "$*" in
*tcp\;ofi_rxm*) exit 1 ;;
*" weft "*) echo "latency_mt: 2 threads, 8 bytes, mean 2.500 us, median 2.000 us, p99 9.000 us, 77 batches" ;;
*)
	echo "a warning"
	echo "latency_mt: 2 threads, 8 bytes, mean 10.000 us, median 2.000 us, p99 90.500 us, 77 batches" ;;
esac
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var progress bytes.Buffer
	groups, err := chooseGroups([]string{mpiThreadsGroup})
	if err != nil {
		t.Fatal(err)
	}
	o := &options{program: dir + "/weft_bench", rounds: 1, contenders: []contender{{text: "weft", provider: "weft"}},
		groups: groups}
	r := &run{o, newReporter(&progress, o.steps()), newFigures(), watchNoise(t.TempDir(), [2]int{0, 1})}
	if err := r.measure(); err != nil {
		t.Fatal(err)
	}
	text := mpiThreadsSection(resultOf(r.found, o.otherNames()...), r.found)
	for _, want := range []string{
		"| mtl ofi, weft | 2.50 (2.50–2.50) | 9.00 (9.00–9.00) | 1.00 |\n",
		"| btl vader | 10.0 (10.0–10.0) | 90.5 (90.5–90.5) | 4.00 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "| mtl ofi, tcp;ofi_rxm") {
		t.Errorf("a way that failed is shown:\n%s", text)
	}
	calls, err := os.ReadFile(dir + "/calls")
	if n := strings.Count(string(calls), "ofi_rxm"); err != nil || n != 1 ||
		strings.Count(string(calls), "called") != 4*mpiThreadsRounds+1 {
		t.Errorf("%v: the way that failed was tried %d times:\n%s", err, n, calls)
	}

	if err := os.Remove(dir + "/latency_mt"); err != nil {
		t.Fatal(err)
	}
	r.found = newFigures()
	if err := r.measure(); err == nil || !strings.Contains(progress.String(), "make bench-program") {
		t.Errorf("without the program: %v\n%s", err, progress.String())
	}
}
