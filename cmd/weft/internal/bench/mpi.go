package bench

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mpiWay is an MPI library and what it carries messages by.
type mpiWay struct {
	library  string // "Open MPI", "MPICH"
	by       string // as in the table
	provider string // whose environment the ranks get, empty: none
	launch   []string
	yield    []string // further options where ranks or threads share processors
	env      []string // NAME=VALUE
	program  string
	missing  string // why it cannot be measured, empty: it may
}

// name is what the way is called in results.
func (w *mpiWay) name() string { return w.library + " " + w.by }

// mpiTests are runs of the program: how many ranks, whether they or their threads share
// processors, and what is measured.
var mpiTests = []struct {
	ranks  int
	shared bool
	names  []string
}{
	{2, false, []string{"hop", "latency", "stream", "orders"}},
	{2, true, []string{"threads"}},
	{4, true, []string{"pairs"}},
}

const mpiHopName = "mpi_hop_ns"

// mpiRows are the figures. What they are to reach depends on the library (mpiGoals).
var mpiRows = func() []row {
	list := []row{{name: mpiHopName, title: "cache line from core to core, ns (no MPI)"}}
	add := func(name, title string) { list = append(list, row{name: name, title: title}) }
	sizes := []struct {
		bytes int
		text  string
	}{{8, "8 B"}, {4096, "4 KiB"}, {65536, "64 KiB"}, {1 << 20, "1 MiB"}, {4 << 20, "4 MiB"}}
	for _, s := range sizes {
		add(fmt.Sprintf("mpi_latency_%d_us", s.bytes), s.text+" ping-pong, half round trip, us")
	}
	for _, s := range sizes {
		add(fmt.Sprintf("mpi_stream_%d_mbps", s.bytes), s.text+" in windows of 64, MB/s")
	}
	for _, o := range [][2]string{
		{"before", "receives posted before"}, {"after", "receives posted after (unexpected)"},
		{"reversed", "receives posted in the opposite order"}, {"any", "receives of any source and tag"},
	} {
		for _, s := range sizes[:2] {
			add(fmt.Sprintf("mpi_%s_%d_mps", o[0], s.bytes), s.text+", "+o[1]+", M/s")
		}
	}
	add("mpi_threads_1_8_mps", "8 B, MPI_THREAD_MULTIPLE, 1 thread, M/s")
	add("mpi_threads_2_8_mps", "8 B, MPI_THREAD_MULTIPLE, 2 threads of 2 ranks, M/s")
	add("mpi_pairs_8_mps", "8 B, 2 pairs of ranks, M/s")
	for i := range list {
		list[i].target = math.NaN()
	}
	return list
}()

// mpiGoals is mpiRows with what an MPI library over weft is to reach beside its second way: Open MPI over vader, MPICH
// over shm.
func mpiGoals(library string) []row {
	latency, rate, unexpected := 1.0, 1.0, math.NaN()
	if library == "MPICH" {
		latency, rate, unexpected = 0.9, 1.3, 1.3
	}
	goals := map[string]float64{
		"mpi_latency_8_us": latency, "mpi_stream_8_mbps": rate,
		"mpi_after_8_mps": unexpected, "mpi_after_4096_mps": unexpected,
	}
	for _, size := range []int{4096, 65536, 1 << 20} { // level
		goals[fmt.Sprintf("mpi_latency_%d_us", size)], goals[fmt.Sprintf("mpi_stream_%d_mbps", size)] = 1, 1
	}
	list := slices.Clone(mpiRows)
	for i, r := range list {
		if goal, is := goals[r.name]; is {
			list[i].target, list[i].atLeast = goal, higherIsBetter(r.name)
		}
	}
	return list
}

// mpiWays are those that are to be measured: Open MPI's, and MPICH's if a folder is given. Each is over weft as often
// as weft is among the providers, with the variables there.
func (o *options) mpiWays() []*mpiWay {
	wefts := slices.DeleteFunc(slices.Clone(o.contenders), func(c contender) bool { return c.provider != "weft" })
	var list []*mpiWay
	for _, c := range wefts {
		list = append(list, o.openMPI("over "+c.text, "weft", overMTL("weft"), c.env...))
	}
	list = append(list, o.openMPI("over vader", "", overBTL("vader")), o.openMPI("over UCX", "", overUCX))
	if o.mpich != "" {
		for _, c := range append(wefts, contender{text: "shm", provider: "shm"}) {
			env := append([]string{"MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=" + c.provider}, c.env...)
			list = append(list, o.mpichWay(o.mpich, "mpi_bench.mpich", "over "+c.text, c.provider, env...))
		}
		list = append(list, o.mpichWay(o.mpich, "mpi_bench.mpich", "over its own shared memory", ""))
	}
	if o.mpichUCX != "" {
		list = append(list, o.mpichWay(o.mpichUCX, "mpi_bench.mpich-ucx", "over UCX", "", "MPIR_CVAR_NOLOCAL=1"))
	}
	return list
}

func (o *options) openMPI(by, provider string, path mpiPath, env ...string) *mpiWay {
	return &mpiWay{
		library: "Open MPI", by: by, provider: provider, env: env, program: o.beside("mpi_bench"),
		launch: append([]string{"mpirun", "--bind-to", "none", "--oversubscribe", "--mca",
			"btl_base_warn_component_unused", "0"}, path.args...),
		yield: []string{"--mca", "mpi_yield_when_idle", "1"},
	}
}

func (o *options) mpichWay(dir, program, by, provider string, env ...string) *mpiWay {
	w := &mpiWay{library: "MPICH", by: by, provider: provider, env: env, program: o.beside(program)}
	launcher, err := findLauncher(dir)
	if err != nil {
		w.missing = err.Error()
	}
	w.launch = []string{launcher}
	return w
}

// beside is a program that is built beside the measuring program.
func (o *options) beside(name string) string {
	path := filepath.Join(filepath.Dir(o.program), name)
	if abs, err := filepath.Abs(path); err == nil {
		return abs // jobs run elsewhere
	}
	return path
}

// findLauncher returns the program that starts the ranks of an MPICH in a folder. Debian's has a name of its own.
func findLauncher(dir string) (string, error) {
	for _, name := range []string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"} {
		path := filepath.Join(dir, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no mpiexec in %s", filepath.Join(dir, "bin"))
}

// mpiNames are the ways by name, in the order of the table.
func (o *options) mpiNames() (names []string) {
	for _, w := range o.mpiWays() {
		names = append(names, w.name())
	}
	return names
}

// mpi runs mpi_bench over each way in turn. A way that cannot be measured is noted once.
func (r *run) mpi() {
	ways := r.mpiWays()
	for round := range r.rounds {
		order := slices.Clone(ways)
		if round%2 == 1 { // as in measure
			slices.Reverse(order)
		}
		for _, w := range order {
			r.step("MPI round %d of %d: %s", round+1, r.rounds, w.name())
			if w.missing != "" {
				if round == 0 {
					r.note("no %s: %s", w.name(), w.missing)
				}
				continue
			}
			r.mpiOnce(w)
			r.noise.sample()
		}
	}
}

// mpiOnce does the runs of one way in one round. If the first fails, the way is measured no more.
func (r *run) mpiOnce(w *mpiWay) {
	for i, t := range mpiTests {
		out, err := r.mpiRun(w, t.ranks, t.shared, t.names)
		if err == nil {
			addLines(r.found, w.name(), out)
			continue
		}
		r.note("%s, %s: %v: %s", w.name(), strings.Join(t.names, " "), err, lastLine(out))
		if i == 0 {
			w.missing = err.Error()
			return
		}
	}
}

// mpiRun runs the program for a minute and a half at most and returns what it prints.
func (r *run) mpiRun(w *mpiWay, ranks int, shared bool, tests []string) ([]byte, error) {
	if _, err := os.Stat(w.program); err != nil {
		return nil, fmt.Errorf("%w; make bench-program builds it with the MPI's compiler", err)
	}
	args := append([]string{"-k", "5", "90"}, w.launch...)
	args = append(args, "-n", strconv.Itoa(ranks))
	if w.library == "Open MPI" && os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if shared {
		args = append(args, w.yield...)
	}
	args = append(args, w.program, "-s", strconv.FormatFloat(r.perFigure.Seconds(), 'f', -1, 64))
	if !shared {
		args = append(args, "-c", fmt.Sprintf("%d,%d", r.cpus[0], r.cpus[1]))
	}
	cmd := exec.Command("timeout", append(args, tests...)...)
	cmd.Env = r.environ(w.provider, w.env...)
	return cmd.CombinedOutput()
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// mpiSection has a table for each MPI library: weft first, and its ratio to each of the others.
func mpiSection(res *result, found *figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## MPI programs, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "What MPI programs get (tests/bench/mpi/mpi_bench.c): %d rounds of each way in turn, %v per "+
		"figure, 2 ranks on cores %d,%d; medians over\n"+
		"the rounds (quartiles), ratios of weft to the others, of each round. Where threads and pairs share "+
		"processors, Open MPI yields. %s.%s\n\n",
		res.Rounds, res.perFigure(), res.Cores[0], res.Cores[1], res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench mpi`, with `--mpich` and `--mpich-ucx` for MPICH built for libfabric and "+
		"for UCX\n\n")
	for _, library := range []string{"Open MPI", "MPICH"} {
		var ways []string
		for _, p := range res.Providers {
			if strings.HasPrefix(p, library+" ") && found.has(p, "mpi_latency_") {
				ways = append(ways, p)
			}
		}
		if len(ways) == 0 {
			continue
		}
		mpiTable(&b, library, ways, found)
		b.WriteString(distances(found, ways, mpiHopName, mpiGoals(library)))
	}
	return b.String()
}

// mpiTable writes the table of one library's ways.
func mpiTable(b *strings.Builder, library string, ways []string, found *figures) {
	var others []string // none where weft did not run: there is nothing to compare
	if strings.HasSuffix(ways[0], " over weft") {
		others = ways[1:]
	} else {
		ways = slices.Clone(ways)
	}
	fmt.Fprintf(b, "| %s |", library)
	for _, w := range ways {
		fmt.Fprintf(b, " %s |", strings.TrimPrefix(w, library+" "))
	}
	for _, w := range others {
		fmt.Fprintf(b, " weft / %s |", strings.TrimPrefix(w, library+" over "))
	}
	fmt.Fprintf(b, "\n| --- |%s\n", strings.Repeat(" --- |", len(ways)+len(others)))
	for _, r := range mpiRows {
		if !slices.ContainsFunc(ways, func(w string) bool { return found.of(w, r.name).count != 0 }) {
			continue
		}
		fmt.Fprintf(b, "| %s |", r.title)
		for _, w := range ways {
			fmt.Fprintf(b, " %v |", found.of(w, r.name))
		}
		for _, w := range others {
			fmt.Fprintf(b, " %s |", found.versus(ways[0], w, r.name).short())
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
}
