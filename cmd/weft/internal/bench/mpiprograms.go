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

// mpiProgram is a program whose ranks exchange all to all, and what it prints.
type mpiProgram struct {
	title string
	of    string // the only MPI that it is built for, empty: each
	env   []string
	// command is the program with its arguments, or why there is none.
	command func(o *options, k *mpiKind) ([]string, error)
	input   func(dir string, ranks int) error // writes what it reads; nil: nothing
	output  string                            // the file it writes beside what it prints
	until   string                            // what it prints when it has measured; a job that goes on is ended
	free    bool                              // it may do without all-to-alls
	both    bool                              // it runs the MPI's own in turn with what is in front
	runs    int
	limit   int // seconds of a job
	figures []mpiFigure
}

// mpiFigure is a line of what a program prints: the pattern's first group is the figure, and the second, where the
// program runs both, that of the MPI's own.
type mpiFigure struct {
	name, title string
	pattern     *regexp.Regexp
	part        bool // it is the time of all-to-alls, and nothing else's
}

// Lengths: a transform's slices have 64 KiB among eight ranks.
const (
	mpiFFTSide  = 512
	mpiFFTWSide = 64
	mpiFFTWPlan = 5 // seconds of the planner
	mpiSlice    = 256 << 10
	mpiInner    = 5 // times that a job does it
)

var mpiPrograms = []*mpiProgram{
	{title: "fft.c", command: built("fft", mpiFFTSide, mpiInner), until: "fft: all passed on ",
		runs: 3, limit: 120,
		figures: []mpiFigure{
			{name: "fft_ms", title: "FFT of 512 x 512 (fft.c), ms", pattern: line(`\d+\^2: ([\d.]+) ms`)},
			{name: "fft_alltoall_ms", title: "its two `MPI_Alltoall`, 64 KiB, ms", part: true,
				pattern: line(`\d+\^2: .* all-to-alls ([\d.]+) ms`)},
		}},
	{title: "FFTW", of: "openmpi", command: built("fftw", mpiFFTWSide, mpiInner, mpiFFTWPlan),
		until: "fftw: all passed on ", free: true, runs: 1, limit: 180, figures: []mpiFigure{
			{name: "fftw_ms", title: "FFTW's MPI library, 64 x 64 x 64, ms", pattern: line(`\d+\^3: ([\d.]+) ms`)},
			{name: "fftw_alltoalls", title: "all-to-alls in its plan",
				pattern: line(`\d+\^3: .*all-to-alls in the plan: (\d+)`)},
		}},
	{title: "mpi4py", of: "openmpi", env: mpiAlways, command: mpi4py, until: "alltoalls: all passed on ",
		both: true, runs: 1, limit: 120, figures: mpiForms("mpi4py", "mpi4py")},
	{title: "alltoalls.c", of: "mpich", env: mpiAlways, command: built("alltoalls", mpiSlice, mpiInner),
		both: true, runs: 1,
		until: "alltoalls: all passed on ", limit: 120, figures: mpiForms("alltoalls", "alltoalls.c")},
	{title: "HPC Challenge", of: "openmpi", env: []string{"FI_WEFT_MPI_MIN_SIZE=4k", "OPENBLAS_NUM_THREADS=1"},
		command: installed("hpcc"), input: hpccInput, output: "hpccoutf.txt", free: true, runs: 1, limit: 180,
		until: "End of MPIFFT section", // minutes of latencies and bandwidths come after it
		figures: []mpiFigure{
			{name: "mpifft_gflops", title: "HPC Challenge's MPIFFT, Gflop/s",
				pattern: line(`max\(\|x-x0\|\): +[\d.]+e-1\d\nGflop/s: +([\d.]+)`)},
			{name: "ptrans_gbps", title: "its PTRANS, GB/s", pattern: line(`WALL .* PASSED\s+([\d.]+)`)},
		}},
}

// mpiAlways has the first all-to-all of a communicator be weft's: programs that print the medians of some.
var mpiAlways = []string{"FI_WEFT_MPI_ALLTOALL=yes"}

func line(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?m)^` + pattern) }

// mpiForms are the figures of tests/mpi/alltoalls.py, and of the same in C.
func mpiForms(name, program string) (list []mpiFigure) {
	for _, form := range []string{"Alltoall", "Alltoallv", "Alltoallw"} {
		list = append(list, mpiFigure{name: name + "_" + strings.ToLower(form) + "_ms", part: true,
			title:   fmt.Sprintf("%s `%s`, %d KiB, ms", program, form, mpiSlice>>10),
			pattern: line(form + ` \d+: ([\d.]+) ms, the MPI's own ([\d.]+) ms`)})
	}
	return list
}

// built is a program that make bench-program makes for each MPI.
func built(name string, args ...int) func(*options, *mpiKind) ([]string, error) {
	return func(o *options, k *mpiKind) ([]string, error) {
		list := []string{o.beside(name + "." + k.name)}
		for _, a := range args {
			list = append(list, strconv.Itoa(a))
		}
		if _, err := os.Stat(list[0]); err != nil {
			return nil, fmt.Errorf("%w; make bench-program builds it where it can be", err)
		}
		return list, nil
	}
}

func installed(name string) func(*options, *mpiKind) ([]string, error) {
	return func(*options, *mpiKind) ([]string, error) {
		c := exec.Command(name)
		return []string{c.Path}, c.Err
	}
}

// mpi4py runs what make bench-program lays beside the measuring program, if this MPI is the one of mpi4py.
func mpi4py(o *options, k *mpiKind) ([]string, error) {
	const python = "/usr/bin/python3"
	out, err := exec.Command(python, "-c", "from mpi4py import MPI; print(MPI.get_vendor()[0])").Output()
	if err != nil {
		return nil, fmt.Errorf("mpi4py: %w", err)
	}
	if vendor := strings.TrimSpace(string(out)); !strings.EqualFold(vendor, k.title) {
		return nil, fmt.Errorf("mpi4py is of %s", vendor)
	}
	return []string{python, o.beside("alltoalls.py"), strconv.Itoa(mpiSlice), strconv.Itoa(mpiInner)}, nil
}

// hpccInput writes a small problem. HPC Challenge appends to what it wrote before.
func hpccInput(dir string, ranks int) error {
	err := os.Remove(filepath.Join(dir, "hpccoutf.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("former output: %w", err)
	}
	text := fmt.Sprintf("\n\nHPL.out\n8\n1\n800\n1\n40\n0\n1\n%d\n%d\n16.0\n1\n2\n1\n4\n1\n2\n1\n1\n1\n1\n"+
		"1\n1\n2\n64\n0\n0\n1\n8\n\n0\n1200\n0\n40\n", 2, ranks/2)
	if err := os.WriteFile(filepath.Join(dir, "hpccinf.txt"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

// mpiJobFigure names a figure of a network.
func mpiJobFigure(w *labNetwork, name string) string { return "job_" + w.name + "_" + name }

// mpiJobTitle is what a figure is called.
func mpiJobTitle(name string) (string, bool) {
	for i := range labNetworks {
		for _, p := range mpiPrograms {
			for _, f := range p.figures {
				if name == mpiJobFigure(&labNetworks[i], f.name) {
					return labNetworks[i].title + ", " + f.title, true
				}
			}
		}
	}
	return "", false
}

// found takes the figures of a job, which has to be right and to have had a part of weft's exactly if it should.
func (p *mpiProgram) found(found *figures, w *labNetwork, provider, own, text string, weft bool) error {
	if !strings.Contains(text, p.until) {
		return errors.New("data was wrong: " + lastLine([]byte(text)))
	}
	if by := strings.Contains(text, "all-to-all is weft's"); by != weft && (by || !p.free) {
		return fmt.Errorf("whether all-to-alls were weft's: want %t", weft)
	}
	for _, f := range p.figures {
		m := f.pattern.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("it printed no figure of %s", f.title)
		}
		for k, of := range []string{provider, own}[:len(m)-1] {
			value, err := strconv.ParseFloat(m[1+k], 64)
			if err != nil {
				return fmt.Errorf("figure of %s: %w", f.title, err)
			}
			found.add(of, mpiJobFigure(w, f.name), value)
		}
	}
	return nil
}

const mpiJobsIntroduction = `Programs with ` + "`libweft-mpi`" + ` in front of the MPI and without, one rank on each of
%d hosts of the networks of ` + "`weft bench alltoall`" + ` (%d Mbit/s, %d KiB in each port). The MPI's own
messages go over the kernel's TCP (MPICH's by UCX), weft's over UDP. Medians (quartiles) of jobs in turn; mpi4py and
alltoalls.c run the MPI's own in turn within a job and print medians of five. Ratios are of times, of rates the inverse.
Measured on %s: %s.%s

`

// mpiJobsSection has a table of all networks and MPIs.
func mpiJobsSection(res *result, found *figures) string {
	var b strings.Builder
	b.WriteString("## All-to-alls of MPI programs between hosts\n\n")
	fmt.Fprintf(&b, mpiJobsIntroduction, labHosts, labMbit, labQueue>>10, res.date(), res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench mpi-alltoall`, as root\n\n")
	b.WriteString("| network | MPI | what | with weft | without | ratio | to reach |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range labNetworks {
		for _, k := range mpiKinds {
			for _, p := range mpiPrograms {
				for _, f := range p.figures {
					mpiJobRow(&b, res, found, &labNetworks[i], k, &f)
				}
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// mpiJobRow writes a row for each weft that was measured.
func mpiJobRow(b *strings.Builder, res *result, found *figures, w *labNetwork, k *mpiKind, f *mpiFigure) {
	name, own := mpiJobFigure(w, f.name), mpiWithout(k)
	for _, with := range res.Providers {
		c, is := strings.CutPrefix(with, k.title+" with ")
		if !is || found.of(with, name).count == 0 {
			continue
		}
		title := k.title
		if c != "weft" {
			title += ", " + c
		}
		ratio, goal := found.versus(with, own, name), "<= 1.00"
		if higherIsBetter(name) {
			ratio = found.versus(own, with, name)
		}
		switch {
		case f.name == "fftw_alltoalls":
			ratio, goal = spread{}, "–"
		case w.path != nil && f.part:
			goal = "<= 0.50"
		case w.path != nil:
			goal = "–"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %v | %v | %s | %s |\n", w.title, title, f.title, found.of(with, name),
			found.of(own, name), times(ratio), goal)
	}
}
