package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	mpiThreadsRounds = 5
	mpiThreadsFigure = "mpi_threads_us"
	mpiThreadsTail   = "mpi_threads_p99_us"
)

// mpiPaths are weft, what Debian's Open MPI has over libfabric, and what it has
// of its own; btl vader is shared memory without libfabric.
var mpiPaths = []mpiPath{overMTL("weft"), overMTL("tcp;ofi_rxm"), overMTL("tcp"), overBTL("tcp"), overBTL("vader")}

var latencyLine = regexp.MustCompile(`^latency_mt: .* mean ([\d.]+) us, .* p99 ([\d.]+) us`)

// otherNames are those that other programs than the measuring program may have measured.
func (o *options) otherNames() []string {
	var list []string
	if o.has(mpiGroup) {
		list = append(list, o.mpiNames()...)
	}
	if o.has(mpiJobsGroup) {
		list = append(list, o.mpiJobNames()...)
	}
	if o.has(ucxGroup) {
		list = append(list, ucxName)
	}
	if o.has(netpipeGroup) {
		list = append(list, netpipeProviders...)
	}
	if o.has(mpiThreadsGroup) {
		for _, p := range mpiPaths {
			list = append(list, p.name)
		}
	}
	return list
}

// mpiThreads runs latency_mt, which is built beside the measuring program, over
// each way in turn.
func (r *run) mpiThreads() {
	program := filepath.Join(filepath.Dir(r.program), "latency_mt")
	if _, err := exec.LookPath("mpirun"); err != nil {
		r.note("no threads of MPI: %v", err)
		return
	}
	if _, err := os.Stat(program); err != nil {
		r.note("no threads of MPI: %v; make bench-program builds it where there is an mpicc", err)
		return
	}
	unusable := map[string]bool{}
	for round := range mpiThreadsRounds {
		for _, p := range mpiPaths {
			r.step("threads of MPI, round %d of %d: %s", round+1, mpiThreadsRounds, p.name)
			if unusable[p.name] {
				continue
			}
			if err := r.mpiThreadsOnce(program, p); err != nil {
				r.note("Open MPI over %s: %v", p.name, err)
				unusable[p.name] = true
			}
			r.noise.sample()
		}
	}
}

// mpiThreadsOnce measures 2 ranks of 2 threads. No other path between the ranks
// is allowed. They are more threads than some machines have processors, so
// Open MPI gets the setting to yield; without it its own ways take many milliseconds.
func (r *run) mpiThreadsOnce(program string, p mpiPath) error {
	args := append([]string{"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}, p.args...)
	out, err := r.mpirun(p.name, append(args, program, "2", "8", "2")...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if m := latencyLine.FindStringSubmatch(line); m != nil {
			mean, _ := strconv.ParseFloat(m[1], 64) // the pattern is a number's
			tail, _ := strconv.ParseFloat(m[2], 64)
			r.found.add(p.name, mpiThreadsFigure, mean)
			r.found.add(p.name, mpiThreadsTail, tail)
			return nil
		}
	}
	return errors.New("latency_mt printed no figure")
}

// mpiThreadsSection shows the ways that worked.
func mpiThreadsSection(res *result, found *figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Threads of MPI, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "Two ranks of two threads under `MPI_THREAD_MULTIPLE`, each thread in a ping-pong of 8 bytes "+
		"with its own of the other rank\n"+
		"(tests/bench/mpi/latency_mt.c, after osu_latency_mt): half round trip in us, the mean of a run of 2 s and "+
		"the p99 of batches\n"+
		"of 20; medians of %d runs (quartiles), each way in turn. Open MPI's `mpi_yield_when_idle` is on for all. "+
		"%s.%s\n\n",
		mpiThreadsRounds, res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench mpi-threads`\n\n")
	fmt.Fprintf(&b, "| Open MPI over | mean | p99 | ratio of means to weft |\n| --- | --- | --- | --- |\n")
	weft := found.of("weft", mpiThreadsFigure)
	for _, p := range mpiPaths {
		s := found.of(p.name, mpiThreadsFigure)
		if s.count == 0 {
			continue
		}
		by := "–"
		if weft.count != 0 {
			by = number(ratio(s, weft))
		}
		fmt.Fprintf(&b, "| %s | %v | %v | %s |\n", p.describe(), s, found.of(p.name, mpiThreadsTail), by)
	}
	fmt.Fprintln(&b)
	return b.String()
}

func (p mpiPath) describe() string {
	if strings.HasPrefix(p.name, "btl") {
		return p.name
	}
	return "mtl ofi, " + p.name
}
