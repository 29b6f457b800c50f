package interleave

import (
	"fmt"
	"slices"
)

// Word names a word of a program's memory.
type Word int

// Memory is what conditions and final checks read: the memory behind the
// store buffers.
type Memory struct {
	words []uint64
	run   *run
}

// Load returns a word.
func (m Memory) Load(w Word) uint64 { return m.words[w] }

// Ended reports whether a thread, by its place in Program.Threads, has ended or
// died, and all that it stored can be seen.
func (m Memory) Ended(thread int) bool { return m.run.threads[thread].ended() }

// buffered is a store that others do not see yet.
type buffered struct {
	word  Word
	value uint64
}

// opKind says what a step does.
type opKind uint8

const (
	opLoad opKind = iota
	opStore
	opCAS
	opSwap
	opAdd
	opFence
	opAwait
	opAwaitAdd
	opPause
	opEnded
)

var opNames = [...]string{"load", "store", "cas", "swap", "add", "fence", "await", "await and add", "pause", "ended"}

// op is a step that a thread is about to take.
type op struct {
	kind     opKind
	word     Word
	old, arg uint64
	cond     func(Memory) bool
}

// run is one execution: the memory and the threads.
type run struct {
	program *Program
	memory  Memory
	changes uint64 // stores that have reached the memory
	threads []*T
	deaths  int
	trace   []string
	traced  bool
	failure error
}

// load returns a word as a thread sees it: its own latest store, or the memory.
func (r *run) load(t *T, w Word) uint64 {
	for _, b := range slices.Backward(t.buffer) {
		if b.word == w {
			return b.value
		}
	}
	return r.memory.words[w]
}

func (r *run) write(w Word, v uint64) {
	if r.memory.words[w] != v {
		r.memory.words[w] = v
		r.changes++
	}
}

// enabled reports whether a thread's next step can be taken now.
func (r *run) enabled(t *T) bool {
	switch t.next.kind {
	case opCAS, opSwap, opAdd, opFence:
		return len(t.buffer) == 0
	case opAwait:
		return t.next.cond(r.memory)
	case opAwaitAdd:
		return len(t.buffer) == 0 && t.next.cond(r.memory)
	case opPause:
		return r.changes != t.seen
	}
	return true
}

// step takes a thread's next step and returns what it gives.
func (r *run) step(t *T) (result uint64) {
	o := &t.next
	switch o.kind {
	case opLoad:
		result = r.load(t, o.word)
	case opStore:
		if r.program.TSO {
			t.buffer = append(t.buffer, buffered{o.word, o.arg})
		} else {
			r.write(o.word, o.arg)
		}
	case opCAS:
		if r.memory.words[o.word] == o.old {
			r.write(o.word, o.arg)
			result = 1
		}
	case opSwap:
		result = r.memory.words[o.word]
		r.write(o.word, o.arg)
	case opAdd, opAwaitAdd:
		r.write(o.word, r.memory.words[o.word]+o.arg)
		result = r.memory.words[o.word]
	case opPause:
		t.seen = r.changes
	case opEnded:
		result = flag(r.allEnded(o.arg))
	}
	if r.traced {
		r.note(t, o, result)
	}
	return result
}

// allEnded reports whether the threads of a set have.
func (r *run) allEnded(set uint64) bool {
	for i, t := range r.threads {
		if set>>i&1 == 1 && !t.ended() {
			return false
		}
	}
	return true
}

// flush makes a thread's oldest buffered store visible.
func (r *run) flush(t *T) {
	b := t.buffer[0]
	t.buffer = append(t.buffer[:0:0], t.buffer[1:]...)
	r.write(b.word, b.value)
	if r.traced {
		r.trace = append(r.trace, fmt.Sprintf("%s's store of %d to %s is seen", t.name, b.value,
			r.program.nameOf(b.word)))
	}
}

func (r *run) note(t *T, o *op, result uint64) {
	s := fmt.Sprintf("%s: %s", t.name, opNames[o.kind])
	switch o.kind {
	case opEnded:
		s += fmt.Sprintf(" %#b: %v", o.arg, result == 1)
	case opLoad:
		s += fmt.Sprintf(" %s = %d", r.program.nameOf(o.word), result)
	case opStore, opSwap, opAdd, opAwaitAdd:
		s += fmt.Sprintf(" %s, %d", r.program.nameOf(o.word), o.arg)
	case opCAS:
		s += fmt.Sprintf(" %s from %d to %d: %v", r.program.nameOf(o.word), o.old, o.arg, result == 1)
	}
	r.trace = append(r.trace, s)
}
