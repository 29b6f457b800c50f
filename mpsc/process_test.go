package mpsc

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// ringproc compiles testdata/ringproc.c against include/weft/ring.h once.
var ringproc = sync.OnceValues(func() (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", nil
	}
	for _, f := range []string{"testdata/ringproc.c", "testdata/ringsteps.h", "../include/weft/ring.h"} {
		if _, err := os.ReadFile(f); err != nil { // so that go test sees when one changes
			return "", err
		}
	}
	out := filepath.Join(buildDir, "ringproc")
	cmd := exec.Command(gcc, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I../../include", "-o", out,
		"ringproc.c")
	cmd.Dir = "testdata"
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return out, nil
})

// command returns ringproc with its arguments, ready to start.
func command(t *testing.T, args ...any) *exec.Cmd {
	t.Helper()
	path, err := ringproc()
	if err != nil {
		t.Fatal(err)
	}
	if path == "" {
		t.Skip("no gcc to compile the C side with")
	}
	text := strings.Fields(fmt.Sprintln(args...))
	return exec.CommandContext(t.Context(), path, text...)
}

func TestLayoutInC(t *testing.T) {
	out, err := command(t, "layout").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r Ring
	want := fmt.Sprintln(hot.SlotFree, hot.SlotTaken, hot.SlotReady, hot.SeqOwnerShift, hot.SeqOwnerMask,
		hot.SeqLapShift, unsafe.Sizeof(r), unsafe.Offsetof(r.tail), unsafe.Offsetof(r.log2),
		unsafe.Offsetof(r.slotBytes))
	if string(out) != want {
		t.Errorf("C has %s, Go %s", out, want)
	}
}

// TestCProducersGoConsumer pushes from two C processes and from Go at once.
func TestCProducersGoConsumer(t *testing.T) {
	const each = 5000
	for _, log2 := range []uint32{0, 1, 3, 6} {
		r, path := fileRing(t, log2, 128)
		var cmds []*exec.Cmd
		for owner := 1; owner <= 2; owner++ {
			cmd := command(t, "produce", path, log2, 128, owner, each)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		var wg sync.WaitGroup
		wg.Go(func() { produce(r, 3, each, false) })
		consume(t, r, 0, 3*each)
		wg.Wait()
		for _, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCAlone has C and Go push in turn, each as the only producer: C goes by what it knows to be
// free, and Go uses that up in between. The messages of each turn have an owner of their own.
func TestCAlone(t *testing.T) {
	const turns, each = 6, 3000
	for _, log2 := range []uint32{0, 1, 2, 3, 6, 10} {
		r, path := fileRing(t, log2, 128)
		var wg sync.WaitGroup
		wg.Go(func() {
			for owner := uint32(1); owner <= turns; owner += 2 {
				if text, err := command(t, "alone", path, log2, 128, owner, each).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, text)
				}
				produce(r, owner+1, each, true)
			}
		})
		consume(t, r, 0, turns*each)
		wg.Wait()
	}
}

// TestCAloneFull has the only producer find a full ring, of which slots become free one by one: it
// takes each of them and nothing else.
func TestCAloneFull(t *testing.T) {
	for _, log2 := range []uint32{0, 2, 4} {
		r, path := fileRing(t, log2, 128)
		next := func() string {
			out, err := command(t, "next", path, log2, 128, 1).Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(out))
		}
		if err := command(t, "alone", path, log2, 128, 1, r.Slots()).Run(); err != nil {
			t.Fatal(err)
		}
		for pos := range min(r.Slots(), 3) {
			if got := next(); got != "full" {
				t.Fatalf("a full ring of %d gave %s", r.Slots(), got)
			}
			r.Release(pos)
			if got := next(); got != fmt.Sprint(r.Slots()+pos) {
				t.Fatalf("position %d was freed, and %s claimed", pos, got)
			}
		}
	}
}

// TestGoProducersCConsumer is the reverse.
func TestGoProducersCConsumer(t *testing.T) {
	const each = 5000
	for _, log2 := range []uint32{0, 1, 3, 6} {
		r, path := fileRing(t, log2, 128)
		cmd := command(t, "consume", path, log2, 128, 3*each)
		var text strings.Builder
		cmd.Stderr = &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for owner := uint32(1); owner <= 3; owner++ {
			wg.Go(func() { produce(r, owner, each, false) })
		}
		wg.Wait()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("consumer: %v: %s", err, text.String())
		}
	}
}

// TestCStaleTail asks the C claim what TestStaleTail asks the one in Go.
func TestCStaleTail(t *testing.T) {
	const log2 = 2
	r, path := fileRing(t, log2, 64)
	for want := range uint64(3) << log2 {
		slot, pos, ok := r.Claim(1, false)
		if !ok || pos != want {
			t.Fatalf("%d %v", pos, ok)
		}
		r.Publish(slot, 1, pos)
		r.Release(pos)
	}
	for stale := range uint64(3)<<log2 + 1 {
		setTail(r, stale)
		out, err := command(t, "stale", path, log2, 64, 1).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); got != "12" {
			t.Errorf("tail %d: claim in C gave %s, want 12", stale, got)
		}
		setWord(r, 12, r.seq(12))
	}
}

// TestKillBetweenClaimAndPublish kills a producer that holds a slot and takes
// the slot back.
func TestKillBetweenClaimAndPublish(t *testing.T) {
	const log2 = 2
	r, path := fileRing(t, log2, 64)
	for round := range uint64(10) {
		cmd := command(t, "claim", path, log2, 64, 9)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		dead := 2 * round
		if line != fmt.Sprintln(dead) {
			t.Fatalf("claimed %q, want %d", line, dead)
		}
		slot, pos, ok := r.Claim(1, false) // a live producer behind it
		if !ok || pos != dead+1 {
			t.Fatalf("%d %v", pos, ok)
		}
		r.Publish(slot, 1, pos)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if owner, state, lapOK := r.Load(dead); owner != 9 || state != hot.SlotTaken || !lapOK {
			t.Fatalf("after kill: owner %d state %d %v", owner, state, lapOK)
		}
		if !r.Reclaim(dead, 9) || !r.Ready(pos) {
			t.Fatal("the slot was not taken back")
		}
		r.Release(pos)
	}
}

// TestKillAtAnyInstant kills a C producer in full flight, many times. The one
// in Go must get all its messages through, and of the dead only whole ones in
// order may arrive.
func TestKillAtAnyInstant(t *testing.T) {
	const log2, rounds = 2, 40
	r, path := fileRing(t, log2, 128)
	var head uint64
	for round := range uint32(rounds) {
		victim := round + 2
		cmd := command(t, "produce", path, log2, 128, victim, 1<<40)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dead := make(chan struct{})
		go func() {
			time.Sleep(time.Millisecond + rand.N(2*time.Millisecond))
			cmd.Process.Kill()
			cmd.Wait()
			close(dead)
		}()
		const each = 2000
		var wg sync.WaitGroup
		wg.Go(func() { produce(r, 1, each, false) })
		head = drain(t, r, head, victim, dead, each)
		wg.Wait()
	}
}

// drain pops until the victim is dead, count messages of owner 1 have come and
// the ring is empty.
func drain(t *testing.T, r *Ring, head uint64, victim uint32, dead <-chan struct{}, count uint64) uint64 {
	next := map[uint32]uint64{1: 0, victim: 0}
	stop := time.Now().Add(time.Minute)
	for {
		gone := false
		select {
		case <-dead:
			gone = true
		default:
		}
		owner, state, lapOK := r.Load(head)
		want, known := next[owner]
		switch {
		case lapOK && state == hot.SlotReady:
			n, whole := check(body(r, r.Slot(head)), owner)
			if !known || !whole || n != want {
				t.Fatalf("position %d: owner %d message %d, want %d, whole %v", head, owner, n, want, whole)
			}
			next[owner]++
			r.Release(head)
			head++
		case lapOK && state == hot.SlotTaken && gone && owner == victim:
			if r.Reclaim(head, victim) {
				head++
			}
		case gone && next[1] == count:
			return head
		case time.Now().After(stop):
			t.Fatalf("stuck at %d: owner %d state %d lap %v, tail %d, got %v", head, owner, state, lapOK, r.Tail(),
				next)
		default:
			runtime.Gosched()
		}
	}
}
