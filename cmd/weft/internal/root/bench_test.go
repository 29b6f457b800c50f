package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
)

// measuring is a program that prints figures as weft_bench does, without
// measuring.
func measuring(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weft_bench")
	text := "#!/bin/sh\n[ \"$1\" = -v ] && { echo 9.9; exit; }\nsleep 0.3\necho rate_8_mps 5\necho pingpong_8_us 0.2\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBenchScreen: one line of progress that changes, and then the table.
func TestBenchScreen(t *testing.T) {
	program := measuring(t)
	term := tooltest.Start(t, 110, 20, nil, "bench", "--program", program, "--providers", "weft,shm", "--rounds", "4",
		"rate")
	screen := term.Wait("progress", func(s string) bool {
		return strings.Contains(s, "round ") &&
			strings.Contains(s, " left")
	})
	if n := strings.Count(screen, "weft bench: ["); n != 1 {
		t.Errorf("%d lines of progress:\n%s", n, screen)
	}
	screen = term.WaitText("status 0")
	for _, want := range []string{"5.00 (5.00–5.00)", "1.00 (1.00–1.00)", "ratio: weft by shm"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q on the screen:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "round 4") {
		t.Errorf("the progress stayed:\n%s", screen)
	}
	term = tooltest.Start(t, 80, 20, nil, "bench", "--program", program, "--providers", "weft,shm", "--rounds", "2",
		"rate")
	if screen = term.WaitText("status 0"); !strings.Contains(screen, "5.00   5.00   1.00") {
		t.Errorf("on a narrow terminal:\n%s", screen)
	}
}

// TestBenchFullDisk: what cannot be kept is said, the status is 1, and what was
// there before stays.
func TestBenchFullDisk(t *testing.T) {
	program, small := measuring(t), t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	kept := filepath.Join(small, "kept")
	if err := os.WriteFile(kept, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(small, "rest"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system is not small")
	}
	for _, args := range [][]string{{"--save", kept}, {"--out", kept}, {"--plots", small}} {
		r := run(t, nil, append([]string{"bench", "--program", program, "--rounds", "1", "rate", "latency"},
			args...)...)
		if r.Status != 1 || !strings.Contains(r.Err, "no space left on device") {
			t.Errorf("%v: status %d, %q", args, r.Status, r.Err)
		}
		if text, err := os.ReadFile(kept); string(text) != "old\n" {
			t.Errorf("%v: the old file has %q, %v", args, text, err)
		}
	}
	if left, _ := filepath.Glob(small + "/.*.*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	cmd := tooltest.Weft(nil, "bench", "--program", program, "--rounds", "1", "rate")
	cmd.Stdout = full(t)
	if r := tooltest.Run(t, cmd); r.Status != 1 || !strings.Contains(r.Err, "no space left on device") {
		t.Errorf("status %d, %q", r.Status, r.Err)
	}
}

// TestBenchNothing: a provider that gives no figures, a program that does not run, and none.
func TestBenchNothing(t *testing.T) {
	if r := run(t, nil, "bench", "--program", "/bin/true", "--rounds", "1", "rate"); r.Status != 1 ||
		!strings.Contains(r.Err, "weft gave no figure") {
		t.Errorf("%+v", r)
	}
	if r := run(t, nil, "bench", "--program", "/bin/false", "--rounds", "1", "rate"); r.Status != 1 ||
		!strings.Contains(r.Err, "/bin/false -v: exit status 1") {
		t.Errorf("%+v", r)
	}
	if r := run(t, nil, "bench", "--program", "/nowhere/weft_bench", "--rounds", "1", "rate"); r.Status != 1 ||
		!strings.Contains(r.Err, "no such file") {
		t.Errorf("%+v", r)
	}
}
