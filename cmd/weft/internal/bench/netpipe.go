package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// NetPIPE: sizes, and how often each is sent per round.
var netpipeSizes = []struct{ bytes, times int }{{8, 2000}, {4096, 2000}, {65536, 500}, {1048576, 100}}

const netpipeRounds = 5

// netpipeProviders are weft and those that Open MPI takes beside it. It takes
// no provider that reaches only its own host, as shm in libfabric 1.17.
var netpipeProviders = []string{"weft", "shm", "tcp;ofi_rxm", "tcp", "net"}

var netpipeLine = regexp.MustCompile(`bytes\s+\d+ times -->\s+[\d.]+ Mbps in\s+([\d.]+) usec`)

func netpipeFigure(bytes int) string { return fmt.Sprintf("netpipe_%d_us", bytes) }

// netpipe runs NetPIPE over Open MPI on each provider in turn.
func (r *run) netpipe() {
	for _, program := range []string{"mpirun", "NPopenmpi"} {
		if _, err := exec.LookPath(program); err != nil {
			r.note("no NetPIPE: %v", err)
			return
		}
	}
	unusable := map[string]bool{}
	for round := range netpipeRounds {
		for _, p := range netpipeProviders {
			r.step("NetPIPE round %d of %d: %s", round+1, netpipeRounds, p)
			if !unusable[p] {
				unusable[p] = !r.netpipeOnce(p)
			}
			r.noise.sample()
		}
	}
}

// netpipeOnce is false when Open MPI does not take the provider. No other path
// between the ranks is allowed.
func (r *run) netpipeOnce(provider string) bool {
	dir, err := os.MkdirTemp("", "weft-bench")
	if err != nil {
		r.note("NetPIPE: %v", err)
		return false
	}
	defer os.RemoveAll(dir)
	for _, s := range netpipeSizes {
		size := strconv.Itoa(s.bytes)
		args := append([]string{"--bind-to", "core"}, overMTL(provider).args...)
		out, err := r.mpirun(provider, append(args, "NPopenmpi", "-l", size, "-u", size, "-p", "0",
			"-n", strconv.Itoa(s.times), "-o", filepath.Join(dir, "np.out"))...)
		if err != nil {
			r.note("Open MPI over %s: %v", provider, err)
			return false
		}
		if m := netpipeLine.FindSubmatch(out); m != nil {
			us, _ := strconv.ParseFloat(string(m[1]), 64) // the pattern is a number's
			r.found.add(provider, netpipeFigure(s.bytes), us)
		}
	}
	return true
}

// netpipeSection shows the providers that Open MPI took.
func netpipeSection(res *result, found *figures) string {
	var took []string
	for _, p := range netpipeProviders {
		if found.of(p, netpipeFigure(netpipeSizes[0].bytes)).count > 0 {
			took = append(took, p)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## NetPIPE, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "Debian's NetPIPE (`NPopenmpi`) over Open MPI's mtl ofi: half round trip in us, median of %d "+
		"rounds (quartiles), each provider\n"+
		"in turn, of those that Open MPI takes. %s.%s\n\n", netpipeRounds, res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench netpipe`\n\n")
	fmt.Fprintf(&b, "| bytes | %s |\n", strings.Join(took, " | "))
	fmt.Fprintf(&b, "| --- |%s\n", strings.Repeat(" --- |", len(took)))
	for _, s := range netpipeSizes {
		fmt.Fprintf(&b, "| %d |", s.bytes)
		for _, p := range took {
			fmt.Fprintf(&b, " %v |", found.of(p, netpipeFigure(s.bytes)))
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b)
	return b.String()
}
