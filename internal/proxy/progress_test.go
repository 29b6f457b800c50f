package proxy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/cpuset"
)

// fakeEngine counts work that the test gives it. Its doorbell is an event file.
type fakeEngine struct {
	fd       int
	work     atomic.Int64 // pieces left
	done     atomic.Int64
	armed    atomic.Bool
	polled   atomic.Bool
	reserved atomic.Bool
	wants    atomic.Bool // attention
	busy     atomic.Bool // another thread is at it
	checks   atomic.Int64
	calls    atomic.Int64 // of Progress
	removed  atomic.Bool
	slow     time.Duration // of one piece
	t        *testing.T
}

func newEngine(t *testing.T) *fakeEngine {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &fakeEngine{fd: fd, t: t}
}

// give adds pieces of work, and rings as a sender does: only if armed.
func (e *fakeEngine) give(n int64) {
	e.work.Add(n)
	if e.armed.Load() {
		if _, err := unix.Write(e.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil && err != unix.EAGAIN {
			e.t.Error(err)
		}
	}
}

func (e *fakeEngine) use() {
	if e.removed.Load() {
		e.t.Error("the thread uses an engine that was removed")
	}
}

func (e *fakeEngine) DoorbellFD() int { return e.fd }
func (e *fakeEngine) Arm()            { e.use(); e.armed.Store(true) }
func (e *fakeEngine) Disarm()         { e.use(); e.armed.Store(false) }
func (e *fakeEngine) HasWork() bool   { e.use(); return e.work.Load() > 0 }
func (e *fakeEngine) Attention() bool { e.use(); return e.wants.Load() }
func (e *fakeEngine) Housekeeping()   { e.use(); e.checks.Add(1) }
func (e *fakeEngine) Polled() bool    { e.use(); return e.polled.Load() }
func (e *fakeEngine) Reserved() bool  { e.use(); return e.reserved.Load() }
func (e *fakeEngine) String() string  { return fmt.Sprintf("fake with %d pieces", e.work.Load()) }

func (e *fakeEngine) Progress() bool {
	e.use()
	e.calls.Add(1)
	if e.busy.Load() || e.work.Load() == 0 {
		return false
	}
	time.Sleep(e.slow)
	e.work.Add(-1)
	e.done.Add(1)
	return true
}

var testPolicy = Policy{
	Spin: 20 * time.Microsecond, Watch: time.Millisecond, Check: 20 * time.Millisecond, AppendFreq: 4, AppendBatch: 8,
}

func startProgress(t *testing.T, o ProgressOptions) *Progress {
	t.Helper()
	if o.Name == "" {
		o.Name = "weft-test"
	}
	if o.Policy == (Policy{}) {
		o.Policy = testPolicy
	}
	if o.Place.CPUs.Count() == 0 && o.Place.Root == "" {
		o.Place.Node = -1
	}
	p, err := StartProgress(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Abort(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// eventually fails the test if cond stays false for a minute: it hangs then, on
// a machine however busy.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestProgressServesSleepingApplication(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	for i := range int64(200) {
		if i%10 == 0 {
			eventually(t, "asleep", e.armed.Load)
		}
		e.give(1)
		eventually(t, "served", func() bool { return e.done.Load() == i+1 })
	}
	// What the last piece did is counted after it was done.
	eventually(t, "idle again", func() bool { s := p.Stats(); return s.Batches >= 200 && s.Activations == s.Idlings })
	if s := p.Stats(); s.Activations == 0 || s.Sleeps < 20 || s.Batches != 200 {
		t.Errorf("statistics %+v", s)
	}
	p.Remove(e)
	e.removed.Store(true)
	if e.armed.Load() {
		t.Error("armed after it was removed")
	}
	time.Sleep(5 * time.Millisecond)
	if n := p.Engines(); n != 0 {
		t.Errorf("%d engines left", n)
	}
}

// TestProgressLeavesPollingApplicationAlone: while the application polls, the
// thread arms nothing and serves only what has waited for a whole watch; when it
// stops, the thread takes over.
func TestProgressLeavesPollingApplicationAlone(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	e.polled.Store(true)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	eventually(t, "watching", func() bool { return p.Stats().Watches > 5 })
	if e.armed.Load() {
		t.Error("armed while the application polls")
	}
	calls := e.calls.Load()
	time.Sleep(20 * time.Millisecond)
	if e.calls.Load() != calls {
		t.Error("progress without work")
	}
	e.give(1)
	eventually(t, "overdue work", func() bool { return e.done.Load() == 1 })
	e.polled.Store(false)
	eventually(t, "taken over", e.armed.Load)
	watches := p.Stats().Watches
	e.give(100)
	eventually(t, "served", func() bool { return e.done.Load() == 101 })
	eventually(t, "asleep", e.armed.Load)
	time.Sleep(20 * time.Millisecond)
	if now := p.Stats().Watches; now > watches+1 {
		t.Errorf("%d watches of an application that sleeps", now-watches)
	}
}

// TestProgressLeavesReservedEngineAlone: while the application has reserved an engine, the
// thread neither arms nor serves it; when
// it has not any longer, the thread takes over at once, whatever Watch is.
func TestProgressLeavesReservedEngineAlone(t *testing.T) {
	policy := testPolicy
	policy.Watch, policy.Check = time.Hour, time.Hour
	p := startProgress(t, ProgressOptions{Policy: policy})
	e, other := newEngine(t), newEngine(t)
	e.reserved.Store(true)
	for _, each := range []*fakeEngine{e, other} {
		if err := p.Add(each); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(20) {
		p.Refresh(true)
		eventually(t, "left alone", func() bool { return !e.armed.Load() && other.armed.Load() })
		calls := e.calls.Load()
		e.work.Add(1)
		other.give(1)
		eventually(t, "the other served", func() bool { return other.done.Load() == i+1 })
		time.Sleep(5 * time.Millisecond)
		if e.calls.Load() != calls {
			t.Fatal("a reserved engine was served")
		}
		e.reserved.Store(false)
		p.Refresh(true)
		eventually(t, "served", func() bool { return e.done.Load() == i+1 })
		eventually(t, "taken over", e.armed.Load)
		e.reserved.Store(true)
		p.Refresh(false)
		other.give(0)
	}
}

func TestProgressYieldsToTheHolder(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	e.busy.Store(true)
	e.give(1)
	eventually(t, "tried", func() bool { return e.calls.Load() > 3 })
	e.busy.Store(false)
	eventually(t, "served", func() bool { return e.done.Load() == 1 })
}

// TestProgressAttention: work that nothing rings for is read again soon.
func TestProgressAttention(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	e.wants.Store(true)
	e.give(0)
	p.Bell().Ring()
	eventually(t, "read", func() bool { return e.calls.Load() > 10 })
	e.wants.Store(false)
}

func TestProgressRunsTimers(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	eventually(t, "timers", func() bool { return e.checks.Load() >= 3 })
	e.polled.Store(true)
	eventually(t, "watching", func() bool { return p.Stats().Watches > 3 })
	before := e.checks.Load()
	time.Sleep(60 * time.Millisecond)
	if e.checks.Load() != before {
		t.Error("timers were run beside the application, which runs them")
	}
}

func TestOperationsAreCarriedOut(t *testing.T) {
	var sum, count atomic.Uint64
	p := startProgress(t, ProgressOptions{PoolSize: 64, Do: func(op *Op) {
		sum.Add(op.Args[0])
		count.Add(1)
	}})
	const posts = 5000
	for i := uint64(1); i <= posts; i++ {
		for !p.Pool().Post(Op{Args: [6]uint64{i}}) {
			time.Sleep(10 * time.Microsecond)
		}
		if i%1000 == 0 {
			time.Sleep(2 * time.Millisecond) // it sleeps by now
		}
	}
	eventually(t, "done", func() bool { return count.Load() == posts })
	if sum.Load() != posts*(posts+1)/2 || p.Stats().Operations != posts {
		t.Errorf("sum %d, operations %d", sum.Load(), p.Stats().Operations)
	}
}

func TestStopCompletesWhatIsActive(t *testing.T) {
	var ops atomic.Uint64
	p := startProgress(t, ProgressOptions{PoolSize: 256, Do: func(*Op) { ops.Add(1) }})
	e := newEngine(t)
	e.slow = 100 * time.Microsecond
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	e.give(100)
	if n := p.Pool().PostBatch(make([]Op, 100)); n != 100 {
		t.Fatalf("posted %d", n)
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if e.done.Load() != 100 || ops.Load() != 100 {
		t.Errorf("ended with %d pieces and %d operations done of 100 each", e.done.Load(), ops.Load())
	}
	if err := p.Add(e); !errors.Is(err, ErrStopped) {
		t.Errorf("add after stop: %v", err)
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

// TestStopHasALimit: an engine that never completes does not hold up the end.
func TestStopHasALimit(t *testing.T) {
	p := startProgress(t, ProgressOptions{})
	e := newEngine(t)
	e.busy.Store(true)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	e.give(1)
	began := time.Now()
	if err := p.Stop(50 * time.Millisecond); err != nil { // without a limit it would not return
		t.Fatal(err)
	}
	if d := time.Since(began); d < 50*time.Millisecond {
		t.Errorf("stopped after %v", d)
	}
}

// TestAbortIsSeen aborts a thread that sleeps, one that watches and one that is
// in the middle of long work. None would come to its end by itself: a sleep lasts
// an hour, the work for years.
func TestAbortIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*fakeEngine)
		there   func(*Progress, *fakeEngine) bool
	}{
		"asleep": {func(*fakeEngine) {}, func(p *Progress, e *fakeEngine) bool {
			return p.Stats().Sleeps > 0 &&
				e.armed.Load()
		}},
		"watching": {func(e *fakeEngine) { e.polled.Store(true) }, func(p *Progress, _ *fakeEngine) bool {
			p.Bell().Ring() // it may have gone to sleep before its first poll of the application
			return p.Stats().Watches > 0
		}},
		"busy": {
			func(e *fakeEngine) { e.slow = 500 * time.Microsecond; e.give(1 << 40) },
			func(_ *Progress, e *fakeEngine) bool { return e.done.Load() > 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := testPolicy
			policy.Check = time.Hour
			p := startProgress(t, ProgressOptions{Policy: policy})
			e := newEngine(t)
			c.prepare(e)
			if err := p.Add(e); err != nil {
				t.Fatal(err)
			}
			eventually(t, name, func() bool { return c.there(p, e) })
			if err := p.Abort(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestThreadIsVisible searches for name and processors in /proc, and at the state.
func TestThreadIsVisible(t *testing.T) {
	own, err := cpuset.OfThread()
	if err != nil {
		t.Fatal(err)
	}
	set := own.Nth(0)
	p := startProgress(t, ProgressOptions{Name: "weft-progress-with-a-long-name", Place: Placement{CPUs: set}})
	if alone := own.Count() == 1; p.alone != alone {
		t.Errorf("alone on the processor: %v, what started it has %v", p.alone, &own)
	}
	task := fmt.Sprintf("/proc/self/task/%d/", p.tid.Load())
	comm, err := os.ReadFile(task + "comm")
	if err != nil || strings.TrimSpace(string(comm)) != "weft-progress-w" {
		t.Errorf("name %q: %v", comm, err)
	}
	status, err := os.ReadFile(task + "status")
	if err != nil || !strings.Contains(string(status), "Cpus_allowed_list:\t"+set.String()+"\n") {
		t.Errorf("processors are not %v: %v\n%s", &set, err, status)
	}
	e := newEngine(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	if s := State(); !strings.Contains(s, "weft-progress-w: thread ") ||
		!strings.Contains(s, "engine fake with 0 pieces") {
		t.Errorf("state %q", s)
	}
	if err := p.Abort(); err != nil {
		t.Fatal(err)
	}
	if s := State(); strings.Contains(s, "weft-progress-w") {
		t.Errorf("state after the end %q", s)
	}
	eventually(t, "thread gone", func() bool { _, err := os.Stat(task); return err != nil })
}

func TestPlacementNearTheDevice(t *testing.T) {
	own, err := cpuset.OfThread()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(node, list string) {
		if err := os.MkdirAll(root+"/"+node, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+"/"+node+"/cpulist", []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := own.Nth(own.Count() - 1)
	write("node0", last.String()+",1000-1023")
	write("node1", "1022-1023")
	for node, want := range map[int]string{0: last.String(), 1: own.String(), -1: own.String()} {
		p := startProgress(t, ProgressOptions{Place: Placement{Node: node, Root: root}})
		if p.cpus != want {
			t.Errorf("node %d: processors %s, want %s", node, p.cpus, want)
		}
	}
	if _, err := StartProgress(ProgressOptions{Name: "x", Place: Placement{Node: 7, Root: root}}); err == nil {
		t.Error("a node that is not there was accepted")
	}
	bad, err := cpuset.Parse("1023")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := StartProgress(ProgressOptions{Name: "x", Place: Placement{CPUs: bad}}); err == nil {
		t.Error("a processor that is not there was accepted")
	}
}

// TestDeadThreadIsKnown: a panic in an engine ends the thread, not the process.
func TestDeadThreadIsKnown(t *testing.T) {
	p := startProgress(t, ProgressOptions{PoolSize: 16, Do: func(*Op) { panic("on purpose") }})
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	saved, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(stderr.Fd()), 2, 0); err != nil {
		t.Fatal(err)
	}
	p.Pool().Post(Op{})
	<-p.done
	if err := unix.Dup3(saved, 2, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("error %v", err)
	}
	if err := p.Add(newEngine(t)); !errors.Is(err, ErrStopped) {
		t.Errorf("add: %v", err)
	}
	text, err := os.ReadFile(stderr.Name())
	if err != nil || !strings.Contains(string(text), "on purpose") {
		t.Errorf("the trace is %q: %v", text, err)
	}
}
