package root

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/doctor"
	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
	"github.com/weft-fabric/weft/internal/addrs"
)

// findings runs the doctor and returns what it found, by check.
func findings(t *testing.T, r tooltest.Result) map[string][]doctor.Finding {
	t.Helper()
	var list []doctor.Finding
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	by := map[string][]doctor.Finding{}
	for _, f := range list {
		by[f.Check] = append(by[f.Check], f)
	}
	return by
}

func TestDoctor(t *testing.T) {
	dir, env := shm(t)
	load := tooltest.Load(t, dir)
	by := findings(t, run(t, []string{env}, "doctor", "--json"))
	for _, check := range []string{"settings", "shared memory", "leftovers", "memory attach"} {
		if len(by[check]) != 1 || by[check][0].Verdict == doctor.Fail {
			t.Errorf("%s: %+v", check, by[check])
		}
	}
	if f := by["leftovers"][0]; f.Verdict != doctor.Good || !strings.Contains(f.What, "2 in use") {
		t.Errorf("%+v", f)
	}
	if err := load.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = load.Process.Wait()
	f := findings(t, run(t, []string{env}, "doctor", "--json", "--only", "leftovers"))["leftovers"][0]
	if f.Verdict != doctor.Warn || !strings.Contains(f.What, "4 files") || !strings.Contains(f.Remedy, "--fix") {
		t.Errorf("%+v", f)
	}
	if r := run(t, []string{env}, "doctor", "--strict", "--only", "leftovers"); r.Status != 1 ||
		!strings.Contains(r.Out, "warn  leftovers") {
		t.Errorf("%+v", r)
	}
	f = findings(t, run(t, []string{env}, "doctor", "--fix", "--json", "--only", "leftovers"))["leftovers"][0]
	if f.Verdict != doctor.Good || !strings.Contains(f.What, "removed 4 files") {
		t.Errorf("%+v", f)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestDoctorVectors: files of named address vectors whose processes have ended are left over, those of others are not.
func TestDoctorVectors(t *testing.T) {
	dir, env := shm(t)
	open := func(name string) (*addrs.Vector, string) {
		v, err := addrs.Open(addrs.Options{Capacity: 8, Limit: 8, Name: name, Dir: dir, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		list, _ := filepath.Glob(filepath.Join(dir, addrs.FilePrefix+"*"))
		if len(list) != 1 {
			t.Fatalf("files %v", list)
		}
		return v, list[0]
	}
	v, dead := open("dead")
	file, err := os.ReadFile(dead)
	if err == nil {
		err = v.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	v, live := open("live")
	if err := os.WriteFile(dead, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f := findings(t, run(t, []string{env}, "doctor", "--json", "--only", "leftovers"))["leftovers"][0]
	if f.Verdict != doctor.Warn || !strings.Contains(f.What, "1 files") || !strings.Contains(f.What, dead) {
		t.Errorf("%+v", f)
	}
	f = findings(t, run(t, []string{env}, "doctor", "--fix", "--json", "--only", "leftovers"))["leftovers"][0]
	if f.Verdict != doctor.Good || !strings.Contains(f.What, "removed 1 files") {
		t.Errorf("%+v", f)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 || left[0] != live {
		t.Errorf("left: %v", left)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestDoctorFilter: FI_PROVIDER hides the provider where it names others, or it after "^", in any case, and by the
// name that programs know it by.
func TestDoctorFilter(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libweft-fi.so", "libweft-core.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := []string{"FI_PROVIDER_PATH=" + dir, "FI_WEFT_RING_SLOTS=7"}
	for _, f := range findings(t, run(t, bad, "doctor", "--json", "--only", "provider"))["provider"] {
		if f.Verdict == doctor.Fail {
			t.Errorf("a bad setting is blamed on the provider: %+v", f)
		}
	}
	for _, c := range []struct {
		value, name string
		hidden      bool
	}{
		{"tcp", "", true}, {"^weft", "", true}, {"^tcp,Weft", "", true}, {"weft;ofi_rxm", "", true},
		{"weft", "cxi", true},
		{"", "", false}, {"tcp,WEFT", "", false}, {"^tcp", "", false}, {"cxi", "cxi", false}, {"^weft", "cxi", false},
	} {
		env := []string{"FI_PROVIDER_PATH=@" + dir, "FI_PROVIDER=" + c.value}
		if c.name != "" {
			env = append(env, "FI_WEFT_NAME="+c.name)
		}
		r := run(t, env, "doctor", "--json", "--only", "provider")
		hidden := false
		for _, f := range findings(t, r)["provider"] {
			if strings.HasPrefix(f.What, "FI_PROVIDER="+c.value+" hides ") {
				hidden = f.Verdict == doctor.Fail && f.Remedy != "" && r.Status == 1
			}
		}
		if hidden != c.hidden {
			t.Errorf("FI_PROVIDER=%s, name %q: hidden %v: %+v", c.value, c.name, hidden, r)
		}
	}
}

func TestDoctorProblems(t *testing.T) {
	fails := func(what string, r tooltest.Result, check, text string) {
		t.Helper()
		list := findings(t, r)[check]
		if r.Status != 1 || len(list) == 0 || list[0].Verdict != doctor.Fail || list[0].Remedy == "" ||
			!strings.Contains(list[0].What, text) {
			t.Errorf("%s: status %d, %+v", what, r.Status, list)
		}
	}
	fails("no directory", run(t, []string{"FI_WEFT_SHM_DIR=/nowhere"}, "doctor", "--json", "--only", "directory"),
		"shared memory", "no such file")
	fails("bad variable", run(t, []string{"FI_WEFT_RING_SLOTS=7"}, "doctor", "--json", "--only", "settings"),
		"settings", "FI_WEFT_RING_SLOTS")
	fails("no provider", run(t, []string{"FI_PROVIDER_PATH=" + t.TempDir()}, "doctor", "--json", "--only", "provider"),
		"provider", "has no libweft-fi.so")
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "libweft-fi.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("half a provider", run(t, []string{"FI_PROVIDER_PATH=" + half}, "doctor", "--json", "--only", "provider"),
		"provider", "has no libweft-core.so")
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	fails("a small directory", run(t, []string{"FI_WEFT_SHM_DIR=" + small}, "doctor", "--json", "--only", "directory"),
		"shared memory", "room for 0 endpoints")
}

// TestDoctorNoRights: a directory that its user may not write to.
func TestDoctorNoRights(t *testing.T) {
	dir, env := shm(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := tooltest.Weft([]string{env}, "doctor", "--json", "--only", "directory,trace")
	asNobody(t, cmd)
	r := tooltest.Run(t, cmd)
	by := findings(t, r)
	if f := by["shared memory"][0]; r.Status != 1 || f.Verdict != doctor.Fail ||
		!strings.Contains(f.What, "permission denied") {
		t.Errorf("%+v", f)
	}
	if f := by["trace"][0]; f.Verdict != doctor.Note || !strings.Contains(f.What, "CAP_BPF") &&
		!strings.Contains(f.What, "no uprobes") {
		t.Errorf("%+v", f)
	}
}

// TestDoctorMPI shows the line for each MPI, with start programs that only say
// which they are.
func TestDoctorMPI(t *testing.T) {
	_, env := shm(t)
	lib := t.TempDir()
	if err := os.WriteFile(filepath.Join(lib, "libweft-fi.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	install := func(scripts map[string]string) string {
		dir := t.TempDir()
		for name, text := range scripts {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, c := range []struct {
		scripts map[string]string
		verdict doctor.Verdict
		what    string
		remedy  string
	}{
		{map[string]string{"mpirun": "echo 'mpirun (Open MPI) 5.0.3'", "ompi_info": "echo mca:mtl:ofi:version:5"},
			doctor.Good, "Open MPI 5.0.3", "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft PROGRAM"},
		{map[string]string{"mpirun": "echo 'mpirun (Open MPI) 4.1.4'", "ompi_info": "echo mca:mtl:psm2:version:5"},
			doctor.Warn, "was built without libfabric", "--with-ofi"},
		{map[string]string{"mpirun": "echo 'mpirun (Open MPI) 4.1.4'"}, doctor.Note, "was not found out", "mtl ofi"},
		{map[string]string{"mpirun.mpich": "printf 'HYDRA build details:\\n    Version:     4.0.2\\n  " +
			"--with-device=ch4:ofi\\n'"},
			doctor.Good, "MPICH 4.0.2", "FI_PROVIDER=weft"},
		{map[string]string{"mpiexec.hydra": "printf 'HYDRA build details:\\n    Version:     3.3\\n'"}, doctor.Note,
			"does not say", "FI_PROVIDER=weft"},
		{map[string]string{"mpirun": "echo other"}, doctor.Note, "no MPI that weft doctor knows", ""},
		{map[string]string{"mpirun": "exit 3"}, doctor.Note, "exit status 3", ""},
	} {
		dir := install(c.scripts)
		r := run(t, []string{env, "PATH=" + dir + ":/bin:/usr/bin", "FI_PROVIDER_PATH=" + lib}, "doctor", "--json",
			"--only", "mpi")
		found := false
		for _, f := range findings(t, r)["mpi"] {
			if !strings.Contains(f.What, dir) {
				continue
			}
			found = true
			if f.Verdict != c.verdict || !strings.Contains(f.What, c.what) || !strings.Contains(f.Remedy, c.remedy) ||
				f.Verdict == doctor.Good && !strings.Contains(f.Remedy, "FI_PROVIDER_PATH="+lib) {
				t.Errorf("%v: %+v", c.scripts, f)
			}
		}
		if !found {
			t.Errorf("%v was not found", c.scripts)
		}
	}
}

// TestDoctorAllToAll shows the line for libweft-mpi where the library of the MPI lies beside the
// provider, or above its folder, and none elsewhere.
func TestDoctorAllToAll(t *testing.T) {
	_, env := shm(t)
	path, lib := t.TempDir(), t.TempDir()
	provider := filepath.Join(lib, "libfabric")
	if err := os.Mkdir(provider, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(path, "mpirun"):                "echo 'mpirun (Open MPI) 4.1.4'",
		filepath.Join(path, "mpiexec.hydra"):         "printf 'HYDRA build details:\n    Version:     4.0.2\n'",
		filepath.Join(provider, "libweft-fi.so"):     "",
		filepath.Join(lib, "libweft-mpi-openmpi.so"): "",
	} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shown := func() (lines []string) {
		vars := []string{env, "PATH=" + path + ":/bin:/usr/bin", "FI_PROVIDER_PATH=" + provider}
		for _, f := range findings(t, run(t, vars, "doctor", "--json", "--only", "mpi"))["mpi"] {
			if strings.Contains(f.What, path) && strings.Contains(f.Remedy, "LD_PRELOAD") &&
				strings.Contains(f.Remedy, lib) {
				lines = append(lines, f.Remedy)
			}
		}
		return lines
	}
	openmpi := "-x LD_PRELOAD=" + lib + "/libweft-mpi-openmpi.so"
	mpich := "-genv LD_PRELOAD " + provider + "/libweft-mpi-mpich.so"
	if got := shown(); len(got) != 1 || !strings.Contains(got[0], openmpi) {
		t.Errorf("%q, want %q alone", got, openmpi)
	}
	if err := os.WriteFile(filepath.Join(provider, "libweft-mpi-mpich.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(); len(got) != 2 || !strings.Contains(got[0]+got[1], mpich) {
		t.Errorf("%q, want %q too", got, mpich)
	}
}

// TestLibrariesBeside runs the command out of a prefix that has weft's libraries, in which nothing
// else points to them.
func TestLibrariesBeside(t *testing.T) {
	_, env := shm(t)
	prefix, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(prefix, "lib/libfabric/libweft-fi.so")
	for _, dir := range []string{filepath.Join(prefix, "bin"), filepath.Dir(want)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(prefix, "bin/weft"), program, 0o755)
	}
	for _, name := range []string{"libweft-fi.so", "libweft-core.so"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(want), name), nil, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	weft := func(args ...string) tooltest.Result {
		cmd := tooltest.Weft([]string{env, "FI_PROVIDER_PATH="}, args...)
		cmd.Path = filepath.Join(prefix, "bin/weft")
		return tooltest.Run(t, cmd)
	}
	if r := weft("info"); r.Status != 0 || !strings.Contains(r.Out, "libweft-fi.so  "+want) {
		t.Errorf("%+v", r)
	}
	f := findings(t, weft("doctor", "--json", "--only", "provider"))["provider"]
	if len(f) == 0 || f[0].Verdict != doctor.Good || f[0].What != want {
		t.Errorf("%+v", f)
	}
}
