package root

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
)

func TestMain(m *testing.M) {
	tooltest.Main(m, func() int {
		err := Command().Execute()
		if err != nil && err.Error() != "" {
			fmt.Fprintln(os.Stderr, "weft:", err)
		}
		return tool.Status(err)
	})
}

// shm returns a directory for segments on a memory file system, and the
// variable that names it.
func shm(t *testing.T) (string, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "weft-tool-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		os.RemoveAll(dir)
	})
	return dir, "FI_WEFT_SHM_DIR=" + dir
}

func run(t *testing.T, env []string, args ...string) tooltest.Result {
	t.Helper()
	return tooltest.Run(t, tooltest.Weft(env, args...))
}

// asNobody has a command run by a user without rights, from a copy of the test
// program that it can execute.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot become another user")
	}
	dir, err := os.MkdirTemp("/dev/shm", "weft-tool-bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "weft")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args[0], cmd.Dir = copied, copied, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// full is a file system without room.
func full(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestFullDisk: every command says that it could not write, and fails.
func TestFullDisk(t *testing.T) {
	dir, env := shm(t)
	tooltest.Load(t, dir)
	for _, args := range [][]string{
		{"info"}, {"info", "--json"}, {"doctor", "--only", "directory"}, {"doctor", "--json", "--only", "memlock"},
		{"version"},
		{"top", "--once", "-i", "100ms"}, {"top", "--json", "-i", "100ms"}, {"export", "--once"},
	} {
		cmd := tooltest.Weft([]string{env}, args...)
		cmd.Stdout = full(t)
		if r := tooltest.Run(t, cmd); r.Status != 1 || !strings.Contains(r.Err, "no space left on device") {
			t.Errorf("%v: status %d, %q", args, r.Status, r.Err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"tpo"}, "did you mean top?"},
		{[]string{"info", "x"}, "unknown command"},
		{[]string{"top", "--sort", "nothing"}, "no column"},
		{[]string{"top", "--interval", "1ms"}, "50ms to 1h"},
		{[]string{"top", "--nothing"}, "unknown flag"},
		{[]string{"doctor", "--only", "x"}, "there are settings, directory"},
		{[]string{"export"}, "needs --listen"},
		{[]string{"export", "--listen", "0.0.0.0:9464"}, "not a local address"},
		{[]string{"export", "--listen", "192.0.2.7:9464"}, "not a local address"},
		{[]string{"export", "--listen", "9464"}, "missing port"},
	} {
		if r := run(t, nil, c.args...); r.Status != 2 || !strings.Contains(r.Err, c.want) || r.Out != "" {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if r := run(t, nil); r.Status != 0 || !strings.Contains(r.Out, "Available Commands") {
		t.Errorf("%+v", r)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := run(t, nil, "completion", shell); r.Status != 0 || !strings.Contains(r.Out, "weft") {
			t.Errorf("completion %s: %+v", shell, r)
		}
	}
	if r := run(t, nil, "__complete", "top", "--sort", ""); !strings.Contains(r.Out, "rxbytes\n") {
		t.Errorf("%+v", r)
	}
	if r := run(t, nil, "version"); r.Status != 0 || !strings.HasPrefix(r.Out, "weft ") {
		t.Errorf("%+v", r)
	}
}

func TestInfo(t *testing.T) {
	_, env := shm(t)
	r := run(t, []string{env, "FI_WEFT_TX_STRIPES=3"}, "info")
	for _, want := range []string{"lo ", "127.0.0.1", "shm    usable", "FI_WEFT_TX_STRIPES", "environment",
		"1099511627776  bytes"} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("info does not say %q:\n%s", want, r.Out)
		}
	}
	if r.Status != 0 || strings.Contains(r.Out, "\x1b") {
		t.Errorf("status %d, colours in a pipe: %v", r.Status, strings.Contains(r.Out, "\x1b"))
	}
	r = run(t, []string{env, "FI_WEFT_NOTHING=1"}, "info", "--json")
	var report struct {
		Backends  []struct{ Usable bool }
		Variables []struct{ Name, Value, Source string }
		Unknown   []string `json:"unknown_variables"`
	}
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatal(err, r.Out)
	}
	if len(report.Backends) != 4 || !report.Backends[0].Usable || report.Backends[1].Usable ||
		report.Backends[2].Usable || !report.Backends[3].Usable || len(report.Unknown) != 1 ||
		report.Unknown[0] != "FI_WEFT_NOTHING" {
		t.Errorf("%+v", report)
	}
	for _, v := range report.Variables {
		if v.Name == "FI_WEFT_SHM_DIR" && (v.Source != "environment" || "FI_WEFT_SHM_DIR="+v.Value != env) {
			t.Errorf("%+v", v)
		}
	}
}

// TestInfoFile: libfabric reads variables from a file, whose path is in the library.
func TestInfoFile(t *testing.T) {
	_, env := shm(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "libfabric.conf")
	source := filepath.Join(dir, "conf.c")
	for path, text := range map[string]string{
		file:   "FI_WEFT_RING_SLOTS=512\nFI_WEFT_SHM_DIR=/nowhere\n",
		source: fmt.Sprintf("const char conf[] = %q;\n", file),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", filepath.Join(dir, "libfabric.so.1"),
		source).CombinedOutput(); err != nil {
		t.Skipf("no library to try with: %v, %s", err, out)
	}
	path := "LD_LIBRARY_PATH=" + dir
	if r := run(t, []string{env, path}, "info"); r.Status != 0 ||
		!strings.Contains(r.Out, " file "+file+", default 256") || strings.Contains(r.Out, "/nowhere") {
		t.Errorf("%+v", r)
	}
	if r := run(t, []string{env, path, "FI_PREFER_SYSCONFIG=1"}, "info", "--json"); r.Status != 1 ||
		!strings.Contains(r.Out, `"value": "/nowhere",`) {
		t.Errorf("the file is preferred: %+v", r)
	}
	if r := run(t, []string{env, path, "FI_WEFT_RING_SLOTS=64"}, "info", "--json"); !strings.Contains(r.Out,
		`"value": "64",`) {
		t.Errorf("the environment is preferred: %+v", r)
	}
	if err := os.WriteFile(file, []byte("FI_WEFT_RING_SLOTS=7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, []string{env, path}, "doctor", "--only", "settings"); r.Status != 1 ||
		!strings.Contains(r.Out, "FI_WEFT_RING_SLOTS") {
		t.Errorf("doctor: %+v", r)
	}
}

func TestInfoProblems(t *testing.T) {
	_, env := shm(t)
	if r := run(t, []string{env, "FI_WEFT_RING_SLOTS=5"}, "info"); r.Status != 1 ||
		!strings.Contains(r.Err, "FI_WEFT_RING_SLOTS") || !strings.Contains(r.Out, "bad value") {
		t.Errorf("a bad value: %+v", r)
	}
	if r := run(t, []string{"FI_WEFT_SHM_DIR=/nowhere"}, "info"); r.Status != 1 ||
		!strings.Contains(r.Out, "shm    not usable  loopback: lock file in /nowhere: no such file") {
		t.Errorf("no directory: %+v", r)
	}
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	if r := run(t, []string{"FI_WEFT_SHM_DIR=" + small}, "info"); r.Status != 1 ||
		!strings.Contains(r.Out, "no space left on device") {
		t.Errorf("a full directory: %+v", r)
	}
}
