package cq

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// cqproc compiles testdata/cqproc.c against include/weft/cq.h once.
var cqproc = sync.OnceValues(func() (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", nil
	}
	for _, f := range []string{"testdata/cqproc.c", "../include/weft/cq.h", "../include/weft/hot.h", "../include/weft/ring.h", "../include/weft/segment.h"} {
		if _, err := os.ReadFile(f); err != nil { // so that go test sees when one changes
			return "", err
		}
	}
	out := filepath.Join(buildDir, "cqproc")
	cmd := exec.Command(gcc, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I../../include", "-o", out, "cqproc.c")
	cmd.Dir = "testdata"
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return out, nil
})

// process is a cqproc with its arguments.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func command(t testing.TB, args ...any) *process {
	t.Helper()
	path, err := cqproc()
	if err != nil {
		t.Fatal(err)
	}
	if path == "" {
		t.Skip("no gcc to compile the C side with")
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), path, strings.Fields(fmt.Sprintln(args...))...)}
	p.Stdout, p.Stderr = &p.out, &p.err
	return p
}

func start(t testing.TB, args ...any) *process {
	t.Helper()
	p := command(t, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// finish waits and returns what the process printed.
func (p *process) finish(t testing.TB) string {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &p.err)
	}
	return strings.TrimSpace(p.out.String())
}

// TestCProducers has two C processes and this one complete into one queue, and
// readers in Go.
func TestCProducers(t *testing.T) {
	const each = 5000
	for _, size := range []uint64{2, 64} {
		q, path := fileQueue(t, &fi.CQAttr{Size: size}, Options{Stripes: 2})
		ps := []*process{
			start(t, "push", path, ringsAt, 1, 1, each),
			start(t, "push", path, ringsAt, 2, 2, each),
		}
		var wg sync.WaitGroup
		wg.Go(func() { post(q, 3, each) }) // shares ring 1 with the first process
		a := newTally(4, each)
		for batch := 1; batch <= 4; batch += 3 {
			wg.Go(func() {
				if err := a.read(q, 3*each, batch); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, p := range ps {
			p.finish(t)
		}
		wantRead(t, q)
	}
}

// TestCReaders completes in Go and reads in Go and in a C process at once: each
// entry arrives in one of them.
func TestCReaders(t *testing.T) {
	const each, inC = 5000, 6000
	q, path := fileQueue(t, &fi.CQAttr{Size: 8}, Options{Stripes: 2})
	p := start(t, "pop", path, ringsAt, inC, 5)
	var posting sync.WaitGroup // the queue is closed after them, also when C reads the last entry
	for producer := 1; producer <= 2; producer++ {
		posting.Go(func() { post(q, producer, each) })
	}
	a := newTally(3, each)
	if err := a.read(q, 2*each-inC, 1); err != nil {
		t.Fatal(err)
	}
	var missing, sum uint64
	for producer := uint64(1); producer <= 2; producer++ {
		for n := range uint64(each) {
			if !a.seen[producer][n].Load() {
				missing++
				sum += stamp(producer, n).Context
			}
		}
	}
	got, err := strconv.ParseUint(p.finish(t), 10, 64)
	posting.Wait()
	if err != nil || missing != inC || got != sum {
		t.Errorf("C read %d (%v), Go lacks %d entries of sum %d", got, err, missing, sum)
	}
	wantRead(t, q)
}

// TestCSeesErrors shows that C stops at errors, and at slots that are not filled, as Go does.
func TestCSeesErrors(t *testing.T) {
	q, path := fileQueue(t, &fi.CQAttr{Size: 8}, Options{})
	next := func(want string) {
		t.Helper()
		if got := start(t, "next", path, ringsAt).finish(t); got != want {
			t.Errorf("C reads %q, want %q", got, want)
		}
	}
	next("end")
	q.Complete(entry(1))
	c, _ := claim(q, 0)
	q.CompleteError(entry(3), ErrorInfo{Err: fi.EIO})
	q.Complete(entry(4))
	next("1 end")
	next("end")
	c.fill(q, entry(2))
	next("2 end")
	next("error")
	if e, err := q.ReadErr(); err != nil || e.Context != 3 {
		t.Errorf("%+v %v", e, err)
	}
	next("4 end")
}

// BenchmarkInC logs what the same steps cost in C.
func BenchmarkInC(b *testing.B) {
	b.Log("\n" + start(b, "bench").finish(b))
}
