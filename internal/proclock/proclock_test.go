package proclock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proc"
)

// childVariable names the directory in which this test binary, started again, holds its lock.
const childVariable = "WEFT_PROCLOCK_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	h, err := proc.This()
	if err == nil {
		_, err = Hold(dir)
	}
	fmt.Println(h.Self.PID, h.Self.Start, err)
	select {}
}

// start starts a child in namespaces, and returns how it calls itself.
func start(t *testing.T, dir string, flags uintptr) (*exec.Cmd, proc.Process) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: unix.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	var p proc.Process
	var problem string
	if _, err := fmt.Sscan(line, &p.PID, &p.Start, &problem); err != nil || problem != "<nil>" {
		t.Fatalf("child says %q", line)
	}
	return cmd, p
}

func owner(dir string, p proc.Process) string {
	pid, kept := Owner(dir, uint32(os.Geteuid()), p)
	return fmt.Sprint(pid, kept)
}

// TestOwner: the lock of a process says that it lives, and its process id here.
func TestOwner(t *testing.T) {
	for name, flags := range map[string]uintptr{"this pid namespace": 0, "another": unix.CLONE_NEWPID} {
		t.Run(name, func(t *testing.T) {
			if flags != 0 && os.Getuid() != 0 {
				t.Skip("needs root")
			}
			dir := t.TempDir()
			cmd, p := start(t, dir, flags)
			if flags != 0 && p.PID == uint32(cmd.Process.Pid) {
				t.Fatal("the child is in this pid namespace")
			}
			kept, free := fmt.Sprint(cmd.Process.Pid, true), fmt.Sprint(0, false)
			path := filepath.Join(dir, fileName(p, 0))
			for _, c := range []struct {
				p    proc.Process
				want string
			}{{p, kept}, {proc.Process{PID: p.PID}, kept}, {proc.Process{PID: p.PID, Start: p.Start + 1}, free},
				{proc.Process{PID: p.PID + 1}, free}} {
				if got := owner(dir, c.p); got != c.want {
					t.Errorf("%+v: %s, want %s", c.p, got, c.want)
				}
			}
			if _, kept := Owner(dir, uint32(os.Geteuid())+1, p); kept {
				t.Error("another user's file counts")
			}
			if Remove(path) || len(Stale(dir)) != 0 {
				t.Error("the file of the living is stale")
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if got := owner(dir, p); got != free {
				t.Errorf("dead: %s", got)
			}
			if list := Stale(dir); len(list) != 1 || list[0] != path || !Remove(path) || len(Stale(dir)) != 0 {
				t.Errorf("stale: %v", list)
			}
		})
	}
}

// TestOwn: this process's own lock, which it must not lose by reading it, and that of
// another copy of weft in it.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	a, err := Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Hold(dir); b != a || err != nil {
		t.Fatalf("kept twice: %v", err)
	}
	h, err := proc.This()
	if err != nil {
		t.Fatal(err)
	}
	other, err := create(dir, h.Self)
	if err != nil || other.path == a.path {
		t.Fatalf("another copy: %+v, %v", other, err)
	}
	for _, p := range []proc.Process{h.Self, {PID: h.Self.PID}} {
		if got, want := owner(dir, p), fmt.Sprint(h.Self.PID, true); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
	if Forget(dir, h.Self); Remove(a.path) || len(Stale(dir)) != 0 {
		t.Error("this process's file is stale")
	}
	a.Release()
	if _, err := os.Lstat(a.path); err != nil {
		t.Error("released once of twice: ", err)
	}
	a.Release()
	if _, err := os.Lstat(a.path); !os.IsNotExist(err) {
		t.Error("released: ", err)
	}
	if got, want := owner(dir, h.Self), fmt.Sprint(h.Self.PID, true); got != want {
		t.Errorf("the other copy's: %s", got)
	}
}

func TestParse(t *testing.T) {
	p := proc.Process{PID: 7, Start: 0xabc}
	if got, ok := parse(fileName(p, 3)); !ok || got != p {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, bad := range []string{"", "weft-lock.", "weft-lock.7.abc", "weft-lock.7.abc.4", "weft-lock.7.abc.-1",
		"weft-lock.07.abc.0", "weft-lock.7.ABC.0", "weft.7.abc.0"} {
		if _, ok := parse(bad); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestHoldErrors(t *testing.T) {
	if _, err := Hold(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a directory that is not there")
	}
}
