package proxy

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStopped is returned for a thread that has ended, or is about to.
var ErrStopped = errors.New("proxy: the thread has stopped")

// ProgressOptions are what a progress thread needs.
type ProgressOptions struct {
	Name   string // of the thread, at most 15 bytes
	Place  Placement
	Policy Policy
	// PoolSize is the number of operations that may wait.
	PoolSize int
	// Do carries out an operation that was posted, on the thread; nil if no thread
	// posts.
	Do func(op *Op)
	// Drive does the work of engines as far as it can, until there is some that
	// it leaves to them, nothing has come for the time idle, or the time most has
	// passed. It reports whether it did any. Called on the thread; nil: engines do
	// all by themselves.
	Drive func(engines []Engine, idle, most time.Duration) (worked bool)
	// Note is called with the thread's transitions, on the thread; nil: they are not reported.
	Note func(t Transition)
}

// Transition is a change of what a progress thread is at.
type Transition int

// Transitions.
const (
	Activated Transition = iota // from idle to active: it found work
	Idled                       // from active to idle: it found none for Policy.Spin
	Slept                       // an idle thread has armed the doorbells and sleeps
)

// Progress is a progress thread: it drives engines while the application does
// something else, and carries out posted operations. Its methods may be called
// by any thread but its own.
type Progress struct {
	thread
	o       ProgressOptions
	bell    *Bell
	pool    *Pool
	mu      sync.Mutex // taken when engines come and go; never by the loop
	engines []Engine   // under mu
	// next is the list of engines that the loop is to work with. Stored under mu, loaded by any thread; sequentially
	// consistent.
	next atomic.Pointer[[]Engine]
	// seen is the list of engines that the loop works with. Written by the
	// thread, read by threads that wait for that.
	seen atomic.Pointer[[]Engine]

	// stale has the loop read at once which engines are reserved. Written by Refresh,
	// swapped by the thread; sequentially consistent.
	stale    atomic.Bool
	stopping atomic.Bool
	aborted  atomic.Bool
	failed   atomic.Pointer[string] // why it died, nil: it did not
	count    counters
	changes  transitions

	// The loop's.
	list      []driven
	own       []Engine // those of the list that the application does not drive
	ops       []Op
	round     int       // since the last poll of the pool
	active    bool      // found work less than Spin ago
	since     time.Time // when it last found work
	lastTick  time.Time // when it last found out whether the application polls
	lastCheck time.Time
	checkCost time.Duration
	quiet     int // runs of the timers since the last work
	kept      int // ticks since it last changed which engines the application drives
}

// StartProgress starts a progress thread.
func StartProgress(o ProgressOptions) (*Progress, error) {
	p := &Progress{o: o}
	if p.o.Note == nil {
		p.o.Note = func(Transition) {}
	}
	p.changes.start()
	var err error
	if p.bell, err = NewBell(); err != nil {
		return nil, err
	}
	if p.pool, err = NewPool(o.PoolSize, p.bell); err != nil {
		return nil, errors.Join(err, p.bell.Close())
	}
	p.ops = make([]Op, max(1, o.Policy.AppendBatch))
	p.next.Store(&[]Engine{})
	p.seen.Store(p.next.Load())
	if err := p.start(o.Name, o.Place, p.run); err != nil {
		return nil, errors.Join(err, p.free())
	}
	register(p)
	return p, nil
}

func (p *Progress) free() error { return errors.Join(p.pool.Close(), p.bell.Close()) }

// Pool is where operations for the thread are posted.
func (p *Progress) Pool() *Pool { return p.pool }

// Bell is what the thread sleeps on.
func (p *Progress) Bell() *Bell { return p.bell }

// Add makes the thread drive an engine. The error is [ErrStopped], or says why
// the doorbell cannot be listened to.
func (p *Progress) Add(e Engine) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended() {
		return ErrStopped
	}
	if err := p.bell.Add(e.DoorbellFD()); err != nil {
		return err
	}
	return p.change(append(slices.Clone(p.engines), e))
}

// Remove takes an engine away. When it returns, the thread calls none of its
// methods any more.
func (p *Progress) Remove(e Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.engines, e) {
		return
	}
	fd := e.DoorbellFD()
	// it has ended: no thread calls e
	_ = p.change(slices.DeleteFunc(slices.Clone(p.engines), func(o Engine) bool { return o == e }))
	p.bell.Remove(fd)
}

// change gives the loop another list, and waits until it works with it.
func (p *Progress) change(list []Engine) error {
	p.engines = list
	p.next.Store(&list)
	for p.seen.Load() != &list {
		if p.ended() {
			return ErrStopped
		}
		p.bell.Ring()
		time.Sleep(10 * time.Microsecond)
	}
	return nil
}

func (p *Progress) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Refresh has the thread find out which engines the application has reserved
// ([Engine.Reserved]). With wake it wakes for that.
func (p *Progress) Refresh(wake bool) {
	p.stale.Store(true)
	if wake {
		p.bell.Ring()
	}
}

// Engines is the number of engines.
func (p *Progress) Engines() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.engines)
}

// Stop ends the thread when the operations that were posted are carried out and
// no engine has work, or after the time limit.
func (p *Progress) Stop(limit time.Duration) error {
	p.stopping.Store(true)
	p.bell.Ring()
	select {
	case <-p.done:
	case <-time.After(limit):
	}
	return p.Abort()
}

// Abort ends the thread at once: after the batch that it is at. Operations that
// wait are dropped.
func (p *Progress) Abort() error {
	p.aborted.Store(true)
	p.bell.Ring()
	<-p.done
	if !unregister(p) {
		return nil // another thread was first
	}
	return p.free()
}

// Err is nil while the thread runs or after it was stopped, else why it died.
func (p *Progress) Err() error {
	if why := p.failed.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Stats returns the statistics.
func (p *Progress) Stats() ProgressStats {
	c := &p.count
	return ProgressStats{
		Rounds: c.rounds.Load(), Batches: c.batches.Load(), Operations: p.pool.Taken(),
		Activations: c.activations.Load(), Idlings: c.idlings.Load(), Sleeps: c.sleeps.Load(),
		Watches: c.watches.Load(), Checks: c.checks.Load(), Rings: p.bell.rung.Load(),
	}
}

// State describes the thread, its operations and its engines, a line each.
func (p *Progress) State() string {
	var b strings.Builder
	s := p.Stats()
	fmt.Fprintf(&b, "%s: thread %d, processors %s, rounds %d, batches %d, operations %d, active %d, idle %d, sleeps "+
		"%d, watches %d, checks %d, rings %d\n",
		p.name, p.tid.Load(), p.cpus, s.Rounds, s.Batches, s.Operations, s.Activations, s.Idlings, s.Sleeps, s.Watches,
		s.Checks, s.Rings)
	p.changes.describe(&b, p.name)
	for _, e := range *p.seen.Load() {
		fmt.Fprintf(&b, "%s: engine %v\n", p.name, e)
	}
	return b.String()
}

// run is the thread.
func (p *Progress) run() {
	defer func() {
		if err := recover(); err != nil {
			why := fmt.Sprintf("%s: %v", p.name, err)
			p.failed.Store(&why)
			writeAll(2, why+"\n"+string(stack()))
		}
	}()
	now := time.Now()
	p.since, p.lastTick, p.lastCheck = now, now, now
	for !p.aborted.Load() {
		p.append()
		if p.stale.Load() {
			p.tick(time.Now()) // what woke it may be work of an engine that is reserved since
		}
		drove := p.drive()
		worked, blocked := p.serve()
		worked = worked || drove
		if worked {
			p.since, p.quiet = time.Now(), 0
			p.become(true, p.since)
			p.tick(p.since)
			if p.alone {
				yield() // what it works for may wait for the processor
			}
			continue
		}
		if blocked {
			yield() // to the thread that is at it, which may wait for this processor
			continue
		}
		if p.stopping.Load() && !p.pool.Ready() && !p.enginesActive() {
			return
		}
		p.idle()
	}
}

// append takes operations off the pool, when it is time to.
func (p *Progress) append() {
	if p.round++; p.active && p.round < p.o.Policy.AppendFreq {
		return
	}
	p.round = 0
	if p.next.Load() != p.seen.Load() {
		p.reload()
	}
	for i := range p.ops[:p.pool.Take(p.ops)] {
		p.o.Do(&p.ops[i])
	}
}

// reload takes over a new list of engines.
func (p *Progress) reload() {
	next := p.next.Load()
	old := p.list
	p.list = make([]driven, 0, len(*next))
	for _, e := range *next {
		p.list = append(p.list, driven{Engine: e})
	}
	for i := range old {
		if !slices.Contains(*next, old[i].Engine) {
			old[i].disarm()
		}
	}
	p.choose()
	p.seen.Store(next)
}

// choose notes which engines are the thread's, after a change.
func (p *Progress) choose() {
	clear(p.own)
	p.own = p.own[:0]
	for i := range p.list {
		if d := &p.list[i]; !d.app {
			p.own = append(p.own, d.Engine)
		}
	}
}

// drive lets engines' work be done without them, and polls for more of it for as
// long as the thread would keep the processor.
func (p *Progress) drive() (worked bool) {
	if p.o.Drive == nil || len(p.own) == 0 {
		return false
	}
	idle := time.Duration(0)
	if p.active && !p.alone && !p.stopping.Load() {
		idle = max(0, p.o.Policy.Spin/2-time.Since(p.since))
	}
	if !p.o.Drive(p.own, idle, driveMost) {
		return false
	}
	add(&p.count.batches)
	return true
}

// serve lets every engine that is the thread's do a batch. It reports whether any
// did something, and whether any could not because another thread is at it.
func (p *Progress) serve() (worked, blocked bool) {
	add(&p.count.rounds)
	for i := range p.list {
		d := &p.list[i]
		if d.app {
			continue
		}
		has := d.HasWork()
		if !has && !d.Attention() {
			continue
		}
		if d.Progress() {
			add(&p.count.batches)
			worked = true
		} else if has {
			blocked = true
		}
	}
	return worked, blocked
}

// wanted reports whether an engine has work that the thread would do.
func (p *Progress) wanted() bool {
	for i := range p.list {
		if d := &p.list[i]; !d.app && d.HasWork() {
			return true
		}
	}
	return false
}

// enginesActive reports whether an engine is at something.
func (p *Progress) enginesActive() bool {
	return slices.ContainsFunc(p.list, func(d driven) bool { return d.HasWork() || d.Attention() })
}

// idle waits for work: by polling again, then by sleeping.
func (p *Progress) idle() {
	now := time.Now()
	if p.active && !p.alone {
		left := p.o.Policy.Spin - now.Sub(p.since)
		if left > 0 {
			if left < p.o.Policy.Spin/2 {
				yield()
			}
			return
		}
	}
	p.become(false, now)
	p.sleep()
}

// become notes whether the thread is active.
func (p *Progress) become(active bool, now time.Time) {
	if p.active == active {
		return
	}
	p.active = active
	p.changes.add(now, active)
	if active {
		add(&p.count.activations)
		p.o.Note(Activated)
	} else {
		add(&p.count.idlings)
		p.o.Note(Idled)
	}
}

// yield lets another thread have the processor, and the Go runtime its own.
func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

func stack() []byte {
	b := make([]byte, 16<<10)
	return b[:runtime.Stack(b, false)]
}
