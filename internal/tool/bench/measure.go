package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Tests of the measuring program. The deep ones put 100,000 entries into a
// provider's queues; other providers get few rounds of them, because a linear
// search takes its time.
var (
	quickTests = []string{"hop", "pingpong", "rate", "bandwidth", "cq_read"}
	flatTests  = []string{"hop", "pingpong", "rate", "bandwidth", "write_rate", "one_sided", "fetch_add", "cq_read", "post_safe", "post_domain", "memory"}
	deepTests  = []string{"posted", "unexpected"}
)

// environ returns the environment of a program that is to find the providers.
func (o options) environ() []string {
	env := append(os.Environ(), "FI_PROVIDER_PATH="+o.providerPath)
	if o.libfabric != "" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(o.libfabric, "lib"))
	}
	return env
}

// measure runs all rounds. A test that a provider does not finish leaves no
// figure; that weft itself yields none is an error.
func measure(o options, found *figures) error {
	tests := flatTests
	if o.quick {
		tests = quickTests
	}
	for round := range o.rounds {
		for _, p := range o.providers {
			progress("round %d of %d: %s", round+1, o.rounds, p)
			o.measureOnce(found, p, tests)
			if !o.quick && (p == o.providers[0] || round == 0) {
				o.measureOnce(found, p, deepTests)
			}
		}
	}
	if len(found.values[o.providers[0]]) == 0 {
		return fmt.Errorf("%s gave no figure", o.providers[0])
	}
	return nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "weft bench: "+format+"\n", args...)
}

// measureOnce runs the program once. Its exit status says that some test
// failed; what the others printed counts.
func (o options) measureOnce(found *figures, provider string, tests []string) {
	args := append([]string{
		"-p", provider, "-c", o.cores,
		"-s", strconv.FormatFloat(o.perFigure.Seconds(), 'f', -1, 64),
	}, tests...)
	cmd := exec.Command(o.program, args...)
	cmd.Env = o.environ()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		progress("%s: %v", provider, err)
	}
	addLines(found, provider, out)
}

// addLines takes the lines "name value".
func addLines(found *figures, provider string, out []byte) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			found.add(provider, name, value)
		}
	}
}

// libraryVersion asks the measuring program which libfabric it runs on.
func libraryVersion(o options) string {
	cmd := exec.Command(o.program, "-v")
	cmd.Env = o.environ()
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// NetPIPE: sizes, and how often each is sent per round.
var netpipeSizes = []struct{ bytes, times int }{{8, 2000}, {4096, 2000}, {65536, 500}, {1048576, 100}}

const netpipeRounds = 5

// netpipeProviders are weft and those that Open MPI takes beside it. It takes
// no provider that reaches only its own host, as shm in libfabric 1.17.
var netpipeProviders = []string{"weft", "shm", "tcp;ofi_rxm", "tcp", "net"}

var netpipeLine = regexp.MustCompile(`bytes\s+\d+ times -->\s+[\d.]+ Mbps in\s+([\d.]+) usec`)

// measureNetPIPE runs NetPIPE over Open MPI on each provider in turn.
func measureNetPIPE(o options, found *figures) {
	unusable := map[string]bool{}
	for round := range netpipeRounds {
		for _, p := range netpipeProviders {
			if unusable[p] {
				continue
			}
			progress("NetPIPE round %d of %d: %s", round+1, netpipeRounds, p)
			unusable[p] = !o.netpipeOnce(found, p)
		}
	}
}

// netpipeOnce is false when Open MPI does not take the provider.
func (o options) netpipeOnce(found *figures, provider string) bool {
	dir, err := os.MkdirTemp("", "weft-bench")
	if err != nil {
		progress("NetPIPE: %v", err)
		return false
	}
	defer os.RemoveAll(dir)
	for _, s := range netpipeSizes {
		size := strconv.Itoa(s.bytes)
		cmd := exec.Command("timeout", "60", "scripts/mpi.sh", "2", provider, "--bind-to", "core",
			"NPopenmpi", "-l", size, "-u", size, "-p", "0", "-n", strconv.Itoa(s.times),
			"-o", filepath.Join(dir, "np.out"))
		cmd.Env = o.environ()
		out, err := cmd.CombinedOutput()
		if err != nil {
			progress("Open MPI over %s: %v", provider, err)
			return false
		}
		if m := netpipeLine.FindSubmatch(out); m != nil {
			us, _ := strconv.ParseFloat(string(m[1]), 64)
			found.add(provider, "netpipe_"+size+"_us", us)
		}
	}
	return true
}
