package proxy

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDumpOnSignal runs in a process of its own, whose standard error is read.
func TestDumpOnSignal(t *testing.T) {
	if os.Getenv("WEFT_DUMP_CHILD") != "" {
		dumpChild(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestDumpOnSignal$")
	cmd.Env = append(os.Environ(), "WEFT_DUMP_CHILD=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for part, want := range map[string]int{"weft-dumped: thread ": 3, "processors ": 3, "engine fake with 3 pieces": 2,
		"engine fake with 4 pieces": 1} {
		if n := strings.Count(stderr.String(), part); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", part, n, want, stderr.String())
		}
	}
}

func dumpChild(t *testing.T) {
	p := startProgress(t, ProgressOptions{Name: "weft-dumped"})
	e := newEngine(t)
	e.busy.Store(true)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	e.give(3)
	for range 2 { // once is enough
		if err := DumpOn(int(syscall.SIGUSR2)); err != nil {
			t.Fatal(err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(w.Fd()), 2, 0); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r)
	for n := range 3 { // the next signal when the dump is there: of two at once, one may be all
		e.work.Store(3 + int64(n/2)) // behind the last, one that was written for a signal twice would show
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		for line := ""; !strings.Contains(line, e.String()); {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			writeAll(stderr, line)
		}
	}
	if err := unix.Dup3(stderr, 2, 0); err != nil {
		t.Fatal(err)
	}
}
