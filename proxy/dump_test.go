package proxy

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
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
	for _, part := range []string{"weft-dumped: thread ", "processors ", "engine fake with 3 pieces"} {
		if n := strings.Count(stderr.String(), part); n != 2 {
			t.Errorf("%q is there %d times, want 2:\n%s", part, n, stderr.String())
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
	DumpOn(int(syscall.SIGUSR2))
	DumpOn(int(syscall.SIGUSR2)) // once is enough
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
