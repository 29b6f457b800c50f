package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// environ returns the environment of a program that is to find a provider, with
// more variables. Others than weft are measured in processes that do not load
// weft: its memory would count as theirs.
func (o *options) environ(provider string, more ...string) []string {
	env := os.Environ()
	if o.providerPath != "" && provider == "weft" {
		env = append(env, "FI_PROVIDER_PATH="+o.providerPath)
	}
	if o.libfabric != "" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(o.libfabric, "lib"))
	}
	return append(env, more...) // of two, the last counts
}

// run is the measuring of chosen groups.
type run struct {
	*options
	*reporter
	found *figures
	noise *noise
}

// measure runs all rounds. A test that a provider does not complete leaves no
// figure; that the first provider yields none is an error.
func (r *run) measure() error {
	withUCX := r.has(ucxGroup)
	for round := range r.rounds {
		order := slices.Clone(r.contenders)
		if round%2 == 1 { // the first may have it better, or worse
			slices.Reverse(order)
		}
		for _, c := range order {
			tests := r.tests(c.provider == r.contenders[0].provider || round == 0)
			if len(tests) == 0 {
				continue
			}
			r.step("round %d of %d: %s", round+1, r.rounds, c.text)
			r.once(c, tests)
			r.noise.sample()
		}
		if withUCX {
			r.step("round %d of %d: %s", round+1, r.rounds, ucxProgram)
			withUCX = r.ucx()
		}
	}
	if r.has(mpiGroup) {
		r.mpi()
	}
	if r.has(netpipeGroup) {
		r.netpipe()
	}
	if r.has(mpiThreadsGroup) {
		r.mpiThreads()
	}
	if r.has(tokenGroup) {
		r.tokensByMessages()
		if err := r.tokensBetween(); err != nil {
			r.end()
			return err
		}
	}
	for _, g := range []struct {
		name    string
		measure func() error
	}{{allToAllGroup, r.allToAll}, {mpiJobsGroup, r.mpiJobs}} {
		if !r.has(g.name) {
			continue
		}
		if err := g.measure(); err != nil {
			r.end()
			return err
		}
	}
	if r.has(netGroup) {
		if err := r.net(); err != nil {
			r.end()
			return err
		}
		countWrong(r.found)
	}
	r.end()
	first := r.contenders[0].text
	for _, p := range slices.Concat([]string{first}, r.otherNames(), r.plan.providers) {
		if len(r.found.values[p]) != 0 {
			return nil
		}
	}
	return fmt.Errorf("%s gave no figure", first)
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
			n = o.rounds * len(o.contenders)
		}
	}
	if o.has(ucxGroup) {
		n += o.rounds
	}
	if o.has(mpiGroup) {
		n += o.rounds * len(o.mpiWays())
	}
	if o.has(netpipeGroup) {
		n += netpipeRounds * len(netpipeProviders)
	}
	if o.has(mpiThreadsGroup) {
		n += mpiThreadsRounds * len(mpiPaths)
	}
	if o.has(tokenGroup) {
		n += o.tokenNetSteps()
	}
	if o.has(allToAllGroup) {
		n += o.exchanges.steps(len(o.exchangers()))
	}
	if o.has(mpiJobsGroup) {
		n += o.jobs.steps()
	}
	if o.has(netGroup) {
		n += o.plan.steps()
	}
	return n
}

// has reports whether a group is to be measured.
func (o *options) has(name string) bool {
	for _, g := range o.groups {
		if g.name == name {
			return true
		}
	}
	return false
}

// once measures tests of one contender.
func (r *run) once(c contender, tests []string) {
	addLines(r.found, c.text, r.figuresOf(context.Background(), c, r.perFigure, append(r.listArgs(), tests...)))
}

// figuresOf runs the measuring program once and returns its figures.
func (r *run) figuresOf(ctx context.Context, c contender, each time.Duration, more []string) []byte {
	return r.output(ctx, c.text, r.environ(c.provider, c.env...), each, append([]string{"-p", c.provider}, more...))
}

// output runs the measuring program, of which notes speak as text, and returns what it
// printed. Its exit status says that some test failed; what the others printed counts.
func (r *run) output(ctx context.Context, text string, env []string, each time.Duration, more []string) []byte {
	args := append([]string{
		"-c", fmt.Sprintf("%d,%d", r.cpus[0], r.cpus[1]),
		"-s", strconv.FormatFloat(each.Seconds(), 'f', -1, 64),
	}, more...)
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Env = env
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil
	}
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		r.note("%s: %v", text, err)
	}
	for line := range strings.Lines(problems.String()) {
		r.note("%s: %s", text, strings.TrimRight(line, "\n"))
	}
	return out
}

// addLines takes the lines "name value" of a provider, and "PROVIDER name value" or
// "PROVIDER@FOLDER name value", which the program prints if it was given several.
func addLines(found *figures, provider string, out []byte) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		words, of := strings.Fields(lines.Text()), provider
		if len(words) == 3 {
			of, _, _ = strings.Cut(words[0], "@")
			words = words[1:]
		}
		if len(words) != 2 {
			continue
		}
		if value, err := strconv.ParseFloat(words[1], 64); err == nil {
			found.add(of, words[0], value)
		}
	}
}

// libraryVersion asks the measuring program which libfabric it runs on. The error
// says what keeps it from running at all, such as a libfabric that is older than the
// one it was built for.
func (o *options) libraryVersion() (string, error) {
	cmd := exec.Command(o.program, "-v")
	cmd.Env = o.environ("")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s -v: %w: %s (make bench-program builds it for a libfabric)", o.program, err,
			bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
