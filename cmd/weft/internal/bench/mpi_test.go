package bench

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMPI runs launchers that are scripts: Open MPI's way over vader fails, its pairs over weft do, MPICH is there and
// that for UCX is not.
func TestMPI(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "mpi_bench", "")
	put(t, dir, "mpi_bench.mpich", "")
	put(t, dir, "mpirun", `#!/bin/sh
echo "$FI_PROVIDER_PATH $*" >> "`+dir+`/calls"
case "$*" in
*vader*) echo "a broken library"; exit 1 ;;
*pairs) exit 3 ;;
*"-c 2,3 hop latency stream orders")
	echo "a warning"; echo "mpi_hop_ns $(wc -l < "`+dir+`/calls")00"
	echo "mpi_latency_8_us 0.2"; echo "mpi_before_8_mps 8" ;;
*ucx*threads) echo "mpi_threads_2_8_mps 4" ;;
*threads) echo "mpi_threads_2_8_mps 2" ;;
esac
`)
	put(t, dir, "mpich/bin/mpiexec.hydra", `#!/bin/sh
[ "$MPIR_CVAR_NOLOCAL $FI_PROVIDER" = "1 weft" ] || [ "$1 $2" = "-n 2" ] || exit 1
echo "mpi_latency_8_us 0.${#FI_PROVIDER}"
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FI_PROVIDER", "")
	groups, err := chooseGroups([]string{mpiGroup})
	if err != nil {
		t.Fatal(err)
	}
	o := &options{program: dir + "/weft_bench", providerPath: "/weft", rounds: 2, perFigure: 1e6, cpus: [2]int{2, 3},
		groups: groups,
		contenders: []contender{{text: "weft", provider: "weft"}, {text: "shm", provider: "shm"},
			{text: "FI_PROVIDER_PATH=/old weft", provider: "weft", env: []string{"FI_PROVIDER_PATH=/old"}}},
		mpich: dir + "/mpich", mpichUCX: dir + "/none"}
	var progress bytes.Buffer
	r := &run{o, newReporter(&progress, o.steps()), newFigures(), watchNoise(t.TempDir(), [2]int{0, 1})}
	if err := r.measure(); err != nil {
		t.Fatal(err)
	}
	text := mpiSection(resultOf(r.found, r.providersFound()...), r.found)
	for _, want := range []string{
		"| Open MPI | over weft | over FI_PROVIDER_PATH=/old weft | over UCX | weft / FI_PROVIDER_PATH=/old weft | " +
			"weft / UCX |", "| 8 B ping-pong, half round trip, us | 0.200 (0.200–0.200) | 0.200 (0.200–0.200) | " +
			"0.200 (0.200–0.200) | 1.00 | 1.00 |",
		"| 8 B, MPI_THREAD_MULTIPLE, 2 threads of 2 ranks, M/s | 2.00 (2.00–2.00) | 2.00 (2.00–2.00) | 4.00 " +
			"(4.00–4.00) | 1.00 | 0.500 |",
		"| MPICH | over weft | over FI_PROVIDER_PATH=/old weft | over shm | over its own shared memory | weft / " +
			"FI_PROVIDER_PATH=/old weft | weft / shm | weft / its own shared memory |",
		"| 8 B ping-pong, half round trip, us | 0.400 (", "| 8 B, receives posted before, M/s | 8.00 (8.00–8.00) |",
		" ns apart |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	said := progress.String()
	for _, want := range []string{"Open MPI over vader, hop latency stream orders: exit status 1: a broken library",
		"Open MPI over weft, pairs: exit status 3", "no MPICH over UCX: no mpiexec in"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	calls, err := os.ReadFile(dir + "/calls")
	if err != nil || strings.Count(string(calls), "vader") != 1 || strings.Count(string(calls), "/weft ") != 6 ||
		strings.Count(string(calls), "/old ") != 6 || strings.Count(string(calls), "when_idle") != 12 {
		t.Errorf("%v: the way that failed is tried once, weft's folder is for weft, the other for the other, and "+
			"those that share processors yield:\n%s", err, calls)
	}
	doc := leadWith(placeSection("", "2", "SECOND\n"), "MPI", "FIRST\n")
	if doc = leadWith(doc, "MPI", "NEW\n"); strings.Index(doc, "NEW") > strings.Index(doc, "SECOND") ||
		strings.Contains(doc, "FIRST") || !strings.HasPrefix(doc, "# Benchmarks") {
		t.Errorf("MPI does not lead:\n%s", doc)
	}
}

// TestUCXServers: no server is left behind of clients that fail.
func TestUCXServers(t *testing.T) {
	if testing.Short() {
		t.Skip("all clients of a test, one after the other")
	}
	dir := t.TempDir()
	put(t, dir, "ucx_perftest", `#!/bin/sh
[ "$1" != localhost ] || exit 1
echo $$ >>"`+dir+`/servers"
exec sleep 30
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	r := &run{options: new(options)}
	if v, err := r.ucxOnce(ucxTests[0]); err == nil {
		t.Errorf("a figure of clients that fail: %v", v)
	}
	servers, err := os.ReadFile(dir + "/servers")
	if n := strings.Count(string(servers), "\n"); err != nil || n != ucxTries {
		t.Fatalf("%d servers, %v", n, err)
	}
	for _, text := range strings.Fields(string(servers)) {
		pid, err := strconv.Atoi(text)
		if err != nil || unix.Kill(pid, unix.SIGKILL) != unix.ESRCH {
			t.Errorf("server %s runs, %v", text, err)
		}
	}
}

// TestUCX runs a ucx_perftest that is a script: its first client finds no server.
func TestUCX(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "ucx_perftest", `#!/bin/sh
[ "$1" = localhost ] || exit 0
[ -f "`+dir+`/second" ] || { touch "`+dir+`/second"; echo "connection refused" >&2; exit 1; }
echo iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
echo 1000,0.5,0.6,0.7,90,100,5000000,6000000
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	groups, err := chooseGroups([]string{ucxGroup})
	if err != nil {
		t.Fatal(err)
	}
	o := &options{rounds: 2, groups: groups, contenders: []contender{{text: "weft", provider: "weft"}}}
	r := &run{o, newReporter(new(bytes.Buffer), o.steps()), newFigures(), watchNoise(t.TempDir(), [2]int{0, 1})}
	if err := r.measure(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"pingpong_8_us": 0.5, "rate_8_mps": 6,
		"bandwidth_65536_mbps": 104.8576} {
		if got := r.found.of(ucxName, name); got.count != 2 || got.median < want*0.999 || got.median > want*1.001 {
			t.Errorf("%s: %v, not %v", name, got, want)
		}
	}
	if _, err := ucxTests[0].value("no table"); err == nil {
		t.Error("a figure without a table")
	}
	if got := r.providersFound(); !slices.Equal(got, []string{ucxName}) {
		t.Errorf("measured %q", got)
	}
	path := dir + "/doc.md"
	if err := writeSections(path, resultOf(r.found, ucxName), nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "## libfabric") {
		t.Errorf("%v: UCX alone replaces the table of providers:\n%s", err, b)
	}
	t.Setenv("PATH", t.TempDir())
	if r.ucx() {
		t.Error("no ucx_perftest, and it was measured")
	}
}
