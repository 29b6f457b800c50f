package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// environ returns the environment of a program that is to find the providers.
// Others than weft are measured in processes that do not load weft: its memory
// would count as theirs.
func (o *options) environ(provider string) []string {
	env := os.Environ()
	if o.providerPath != "" && provider == "weft" {
		env = append(env, "FI_PROVIDER_PATH="+o.providerPath)
	}
	if o.libfabric != "" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(o.libfabric, "lib"))
	}
	return env
}

// run is the measuring of chosen groups.
type run struct {
	*options
	*reporter
	found *figures
	noise *noise
}

// measure runs all rounds. A test that a provider does not finish leaves no
// figure; that the first provider yields none is an error.
func (r *run) measure() error {
	for round := range r.rounds {
		for i, p := range r.providers {
			tests := r.tests(i == 0 || round == 0)
			if len(tests) == 0 {
				continue
			}
			r.step("round %d of %d: %s", round+1, r.rounds, p)
			r.once(p, tests)
			r.noise.look()
		}
	}
	if r.has(netpipeGroup) {
		r.netpipe()
	}
	r.end()
	for _, p := range append(r.providers[:1:1], netpipeProviders...) {
		if len(r.found.values[p]) != 0 {
			return nil
		}
	}
	return fmt.Errorf("%s gave no figure", r.providers[0])
}

// tests are those of the measuring program; without rare ones if not all.
func (r *run) tests(all bool) []string {
	var tests []string
	for _, g := range r.groups {
		if all || !g.rare {
			tests = append(tests, g.tests...)
		}
	}
	return tests
}

// steps is how often measure says what it does.
func (o *options) steps() int {
	n := 0
	for _, g := range o.groups {
		if len(g.tests) != 0 {
			n = o.rounds * len(o.providers)
		}
	}
	if o.has(netpipeGroup) {
		n += netpipeRounds * len(netpipeProviders)
	}
	return n
}

// has tells whether a group is to be measured.
func (o *options) has(name string) bool {
	for _, g := range o.groups {
		if g.name == name {
			return true
		}
	}
	return false
}

// once runs the program once. Its exit status says that some test failed; what
// the others printed counts.
func (r *run) once(provider string, tests []string) {
	args := append([]string{
		"-p", provider, "-c", fmt.Sprintf("%d,%d", r.cpus[0], r.cpus[1]),
		"-s", strconv.FormatFloat(r.perFigure.Seconds(), 'f', -1, 64),
	}, tests...)
	cmd := exec.Command(r.program, args...)
	cmd.Env = r.environ(provider)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		r.note("%s: %v", provider, err)
	}
	for line := range strings.Lines(problems.String()) {
		r.note("%s: %s", provider, strings.TrimRight(line, "\n"))
	}
	addLines(r.found, provider, out)
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
func (o *options) libraryVersion() string {
	cmd := exec.Command(o.program, "-v")
	cmd.Env = o.environ("")
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
