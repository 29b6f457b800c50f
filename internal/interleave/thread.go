package interleave

import (
	"fmt"
	"iter"
)

// Threads of a program under exploration. A thread is a coroutine: its code runs until it does a step on the memory
// (do), where the explorer chooses the thread that takes the next step. Steps are not undone: each order is a new run.

// T is a thread of a program, as its code sees it. Its methods are the steps, for the thread's own code only.
type T struct {
	name     string
	killable bool

	next      op
	result    uint64
	on        *carrier
	abandoned bool // its run is over: the next step does not return
	run       *run

	buffer  []buffered // stores that others do not see yet, oldest first
	history uint64     // hash of what steps have returned since At
	seen    uint64     // changes of the memory at its last At or Pause
	done    bool
	dead    bool
}

// stopped unwinds a thread after the end of its run.
type stopped struct{}

// carrier is a coroutine that runs threads, one after the other: a program has
// millions of runs, and the race detector remembers every coroutine there was.
type carrier struct {
	thread *T
	body   func(*T)
	resume func() (ended, running bool)
	stop   func()
	yield  func(ended bool) bool
}

func newCarrier() *carrier {
	c := &carrier{}
	c.resume, c.stop = iter.Pull(func(yield func(bool) bool) {
		for c.yield = yield; ; {
			c.thread.play(c.body)
			if !yield(true) {
				return
			}
		}
	})
	return c
}

// play runs the thread's body to its end, or to where it is abandoned.
func (t *T) play(body func(*T)) {
	defer func() {
		switch err := recover().(type) {
		case nil, stopped:
		default:
			t.run.fail(fmt.Errorf("%s: panic: %v", t.name, err))
		}
	}()
	body(t)
}

// start brings the thread to its first step.
func (t *T) start(on *carrier, body func(*T)) {
	t.on, on.thread, on.body = on, t, body
	t.advance()
}

// advance runs the thread's own code up to its next step, or its end.
func (t *T) advance() {
	if ended, _ := t.on.resume(); ended {
		t.done = true
		t.run.changes++ // Ended may be true now
	}
}

// abandon ends a thread where it is and leaves its carrier to the next.
func (t *T) abandon() {
	if !t.done {
		t.abandoned = true
		t.on.resume()
	}
}

// do offers a step to the explorer and returns what it gave.
func (t *T) do(o op) uint64 {
	t.next = o
	t.on.yield(false)
	if t.abandoned {
		panic(stopped{})
	}
	return t.result
}

// Load reads a word.
func (t *T) Load(w Word) uint64 { return t.do(op{kind: opLoad, word: w}) }

// Store writes a word, with release order at most: with TSO others see it later.
func (t *T) Store(w Word, v uint64) { t.do(op{kind: opStore, word: w, arg: v}) }

// StoreSC writes a word with sequential consistency, as sync/atomic does.
func (t *T) StoreSC(w Word, v uint64) { t.do(op{kind: opSwap, word: w, arg: v}) }

// Swap writes a word and returns what it was.
func (t *T) Swap(w Word, v uint64) uint64 { return t.do(op{kind: opSwap, word: w, arg: v}) }

// CAS writes v to a word that is old, and reports whether it was.
func (t *T) CAS(w Word, old, v uint64) bool {
	return t.do(op{kind: opCAS, word: w, old: old, arg: v}) == 1
}

// Add adds to a word and returns the sum.
func (t *T) Add(w Word, v uint64) uint64 { return t.do(op{kind: opAdd, word: w, arg: v}) }

// Fence waits until others see all stores of the thread.
func (t *T) Fence() { t.do(op{kind: opFence}) }

// Await waits until cond holds. It reads the memory behind the store buffers,
// any number of words in one step: it stands for a system call that sleeps, or
// for a loop of which other steps do not matter.
func (t *T) Await(cond func(Memory) bool) { t.do(op{kind: opAwait, cond: cond}) }

// AwaitAdd waits until cond holds, and adds to a word in the same step. It returns the sum. cond may read what the
// program's own code keeps, as far as that follows from what steps have returned.
func (t *T) AwaitAdd(cond func() bool, w Word, v uint64) uint64 {
	return t.do(op{kind: opAwaitAdd, cond: func(Memory) bool { return cond() }, word: w, arg: v})
}

// Ended reports whether threads, by their places in Program.Threads, have all
// ended or died and all that they stored can be seen: as the kernel reports of a
// process.
func (t *T) Ended(threads ...int) bool {
	set := uint64(0)
	for _, i := range threads {
		set |= 1 << i
	}
	return t.do(op{kind: opEnded, arg: set}) == 1
}

// Note writes a word that no step reads, for Final: it is no step of its own,
// but part of the one before.
func (t *T) Note(w Word, v uint64) { t.run.memory.words[w] = v }

func (t *T) ended() bool { return (t.done || t.dead) && len(t.buffer) == 0 }

// Pause waits until the memory has changed, or a thread ended, since the
// thread's last At or Pause.
// It goes to the end of loops that try again.
func (t *T) Pause() { t.do(op{kind: opPause}) }

// At says that the values are all that the thread's future depends on, together
// with the place of the call in the code, which a value must distinguish.
func (t *T) At(values ...uint64) {
	t.history = hashAt // other than what steps return
	for _, v := range values {
		t.history = mix(t.history, v)
	}
	t.seen = t.run.changes
}

// Check ends the exploration with an error if ok is false.
func (t *T) Check(ok bool, format string, args ...any) {
	if !ok {
		t.run.fail(fmt.Errorf("%s: %s", t.name, fmt.Sprintf(format, args...)))
		panic(stopped{})
	}
}

func (r *run) fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
}

// Where histories begin: of a thread, and after At.
const (
	hashStart = 0xcbf29ce484222325
	hashAt    = 0x84222325cbf29ce4
)

// mix adds a value to a hash (the finaliser of splitmix64: Steele, Lea and
// Flood, OOPSLA 2014).
func mix(h, v uint64) uint64 {
	z := h ^ (v + 0x9e3779b97f4a7c15 + h<<6 + h>>2)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
