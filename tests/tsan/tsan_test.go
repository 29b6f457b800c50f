// Package tsan runs C of cabi that several threads share under ThreadSanitizer: each program includes one file of it.
//
// These files need no program:
//   - direct_abi.c: what threads share is one atomic word, relaxed, which orders nothing else.
//   - wait.c: it only loads: atomic words that Go writes, and what opening an object has set.
//   - poll.c, token.c: their state is a thread's own, in thread-local storage and on the stack. What they share they
//     only load: atomic words that Go writes, and what opening and enabling an object have set.
package tsan

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sanitized compiles a program with the sanitizer and runs it.
func sanitized(t *testing.T, source string, flags ...string) (output string, err error) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{
		"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread", "-O1", "-g", "-fsanitize=thread",
	}, flags...)
	if text, err := exec.Command(cc, append(args, "-o", program, source)...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, text)
	}
	run := exec.Command("setarch", "-R", program) // the sanitizer's memory has fixed places
	run.Env = append(os.Environ(), "TSAN_OPTIONS=halt_on_error=1 exitcode=66")
	text, err := run.CombinedOutput()
	return string(text), err
}

// both runs a program, and its mutant in which the sanitizer is to find a race.
func both(t *testing.T, source string) {
	t.Helper()
	if out, err := sanitized(t, source); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := sanitized(t, source, "-DMUTANT"); err == nil || !strings.Contains(out, "data race") {
		t.Errorf("of the mutant the sanitizer finds nothing: %v\n%s", err, out)
	}
}

// TestThreadNumbers has threads come and go, which hand on their numbers and lines.
func TestThreadNumbers(t *testing.T) { both(t, "programs/threadnum.c") }

// TestHosts has libfabrics come and go while a thread logs.
func TestHosts(t *testing.T) { both(t, "programs/prov.c") }

// TestSpares has threads that wait, and new ones, do the jobs of several makers.
func TestSpares(t *testing.T) { both(t, "programs/spares.c") }

// TestObjects has threads open and close objects while the process forks.
func TestObjects(t *testing.T) { both(t, "programs/fork.c") }

// TestImports has several threads hand over what an imported queue and an imported counter have.
func TestImports(t *testing.T) { both(t, "programs/peer.c") }

// TestEntered counts threads that call into Go while they come and go.
func TestEntered(t *testing.T) { both(t, "programs/thread.c") }
