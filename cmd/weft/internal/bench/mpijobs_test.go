package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMPIFigures reads what programs print, and refuses what is not right or not by weft.
func TestMPIFigures(t *testing.T) {
	const marked = "first rank: all-to-all is weft's\n"
	const transform = "max(|x-x0|): 1.034e-15\nGflop/s:     0.172\n"
	outputs := map[string]string{
		"fft.c": "512^2: 182.5 ms, of which all-to-alls 177.1 ms, slices of 65536 bytes\n" +
			"fft: all passed on 8 ranks\n",
		"FFTW": "64^3: 289.0 ms, slices of 65536 bytes, all-to-alls in the plan: 2\n" +
			"fftw: all passed on 8 ranks\n",
		"mpi4py":      forms() + "alltoalls: all passed on 8 ranks\n",
		"alltoalls.c": forms() + "alltoalls: all passed on 8 ranks\n",
		"HPC Challenge": "WALL   800   800   80   80   2   4      0.01  PASSED      0.031  0.00\n" + transform +
			"End of MPIFFT section.\n",
	}
	w := networkOf(t, "paths")
	f := newFigures()
	for _, p := range mpiPrograms {
		text := outputs[p.title]
		if err := p.found(f, w, "Open MPI with weft", "Open MPI alone", marked+text, true); err != nil {
			t.Errorf("%s: %v", p.title, err)
		}
		if err := p.found(newFigures(), w, "x", "y", text, true); (err == nil) != p.free {
			t.Errorf("%s: all-to-alls of the MPI's were taken for weft's", p.title)
		}
		if err := p.found(newFigures(), w, "x", "x", marked+text, false); err == nil {
			t.Errorf("%s: all-to-alls of weft's were taken for the MPI's", p.title)
		}
		for _, wrong := range []string{"", strings.Replace(text, "passed on", "failed on", 1)} {
			wrong = strings.NewReplacer("PASSED", "FAILED", "e-15", "e-05").Replace(wrong)
			if err := p.found(newFigures(), w, "x", "y", marked+wrong, true); err == nil {
				t.Errorf("%s: %q is right", p.title, wrong)
			}
		}
		for _, figure := range p.figures {
			if got := f.of("Open MPI with weft", mpiJobFigure(w, figure.name)); got.count == 0 || got.median <= 0 {
				t.Errorf("%s: %v", figure.name, got)
			}
			if title := titleOf(mpiJobFigure(w, figure.name)); !strings.Contains(title, figure.title) {
				t.Errorf("%s is called %q", figure.name, title)
			}
		}
	}
	f.add("Open MPI alone", mpiJobFigure(w, "mpifft_gflops"), 0.344)
	got := mpiJobsSection(&result{Providers: []string{"Open MPI with weft", "Open MPI alone"}}, f)
	for _, part := range []string{
		" out of each host | Open MPI | mpi4py `Alltoallv`, 256 KiB, ms | 100 | 400 | 0.25 | <= 0.50 |\n",
		"MPIFFT, Gflop/s | 0.172 | 0.344 | 2.00 | – |\n", "all-to-alls in its plan | 2.00 | – | – | – |\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

// forms is what alltoalls.py prints.
func forms() string {
	var b strings.Builder
	for _, form := range []string{"Alltoall", "Alltoallv", "Alltoallw"} {
		b.WriteString(form + " 262144: 100.0 ms, the MPI's own 400.0 ms\n")
	}
	return b.String()
}

// TestMPIJobs is a short run of the real thing, on a small network.
func TestMPIJobs(t *testing.T) {
	o := inLab(t, mpiJobsGroup)
	o.perFigure = time.Millisecond
	all := labNetworks
	defer func() { labNetworks = all }()
	labNetworks = []labNetwork{{
		name: "small", title: "small", hosts: 2, ranks: 2, in: alike(2, labMbit), slices: shortSlices,
	}}
	o.jobs = mpiJobsPlan{networks: []string{"small"}, programs: []*mpiProgram{{
		title: "fft.c", command: built("fft", 64, 1), until: mpiPrograms[0].until, runs: 1, limit: 60,
		env: []string{"FI_WEFT_MPI_MIN_SIZE=1k"}, figures: mpiPrograms[0].figures,
	}}}
	there := 0
	for _, k := range mpiKinds {
		if _, err := o.jobs.programs[0].command(&o, k); err != nil {
			t.Log(err)
			continue
		}
		if _, err := k.launcher(); err != nil {
			t.Log(err)
			continue
		}
		if _, err := os.Stat(filepath.Join(o.providerPath, "libweft-mpi-"+k.name+".so")); err != nil {
			t.Log(err)
			continue
		}
		there++
	}
	if there == 0 {
		t.Skip("no MPI")
	}
	document, log := measured(t, &o)
	if n := strings.Count(document, "| small |"); n != 2*there || strings.Contains(document, "–") {
		t.Errorf("%d rows, want %d\n%s\n%s", n, 2*there, log, document)
	}
	if left := mine(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// TestKillAll: a process that stays on a host after its job, in a session of its own, is killed.
func TestKillAll(t *testing.T) {
	needLab(t)
	l := &mpiLab{lab: newLab(t.Context())}
	defer l.close()
	host, err := l.host()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", host, "setsid", "--wait", "sh", "-c", "echo here; sleep 40")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l.killAll()
	if err := cmd.Wait(); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}
