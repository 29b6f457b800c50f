package interleave

import (
	"fmt"
	"strings"
)

// Program is what is explored.
type Program struct {
	// Names are the words' names, for traces; there are as many words, all 0
	// in the beginning.
	Names []string
	// Init sets words before the threads start. It may be nil.
	Init    func(words []uint64)
	Threads []Thread
	// TSO gives the threads store buffers.
	TSO bool
	// Deaths is how many killable threads may die.
	Deaths int
	// Final checks the memory when all threads have ended. It may be nil.
	Final func(m Memory, died []bool) error
	// MaxStates bounds the search; 0 is 10 million. More is an error.
	MaxStates int
}

// Thread is the code of a thread.
type Thread struct {
	Name     string
	Killable bool
	Body     func(t *T)
}

// Result says what a search went through.
type Result struct {
	States int // different ones
	Runs   int
	Ends   int // runs that came to an end of all threads
}

// Error is what a search found, with the steps that lead there.
type Error struct {
	Err   error
	Trace []string
}

// Error shows what is wrong and the steps that lead there.
func (e *Error) Error() string {
	return e.Err.Error() + "\n  " + strings.Join(e.Trace, "\n  ")
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

func (p *Program) nameOf(w Word) string { return p.Names[w] }

// A choice is what one step of a run was: thread × choices per thread.
const (
	chooseStep  = iota // the thread takes its step
	chooseFlush        // its oldest store becomes visible
	chooseDeath        // it dies
	choicesPer
)

// level is a state on the path of the current run.
type level struct {
	choices []int
	at      int // of the one that the run takes
}

type explorer struct {
	program  *Program
	carriers []*carrier // one for each thread
	seen     map[[2]uint64]struct{}
	path     []level
	result   Result
}

// Explore runs the program in every order. The error is an *[Error] for a
// failed check, a panic, a deadlock, a final state that is wrong, or too many
// states.
func Explore(p *Program) (Result, error) {
	if p.MaxStates == 0 {
		p.MaxStates = 10_000_000
	}
	x := &explorer{program: p, seen: map[[2]uint64]struct{}{}}
	for range p.Threads {
		c := newCarrier()
		defer c.stop()
		x.carriers = append(x.carriers, c)
	}
	for {
		if err := x.runOnce(); err != nil {
			x.result.States = len(x.seen)
			return x.result, &Error{err, x.retrace()}
		}
		for len(x.path) > 0 {
			last := &x.path[len(x.path)-1]
			if last.at++; last.at < len(last.choices) {
				break
			}
			x.path = x.path[:len(x.path)-1]
		}
		if len(x.path) == 0 {
			x.result.States = len(x.seen)
			return x.result, nil
		}
	}
}

// begin starts a run.
func (x *explorer) begin(traced bool) *run {
	p := x.program
	r := &run{program: p, traced: traced}
	r.memory = Memory{make([]uint64, len(p.Names)), r}
	if p.Init != nil {
		p.Init(r.memory.words)
	}
	for i := range p.Threads {
		t := &T{name: p.Threads[i].Name, killable: p.Threads[i].Killable, run: r, history: hashStart}
		r.threads = append(r.threads, t)
		t.start(x.carriers[i], p.Threads[i].Body)
	}
	return r
}

func (r *run) end() {
	for _, t := range r.threads {
		t.abandon()
	}
}

// runOnce repeats the path and goes on from there until the end, or a state
// that was seen.
func (x *explorer) runOnce() error {
	r := x.begin(false)
	defer r.end()
	x.result.Runs++
	for depth := 0; ; depth++ {
		if r.failure != nil {
			return r.failure
		}
		if depth == len(x.path) {
			key := r.key()
			if _, ok := x.seen[key]; ok {
				return nil
			}
			x.seen[key] = struct{}{}
			if len(x.seen) > x.program.MaxStates {
				return fmt.Errorf("interleave: more than %d states", x.program.MaxStates)
			}
			choices := r.choices()
			if len(choices) == 0 {
				x.result.Ends++
				return r.final()
			}
			x.path = append(x.path, level{choices: choices})
		}
		l := &x.path[depth]
		r.take(l.choices[l.at])
	}
}

// retrace runs the path once more and returns its steps.
func (x *explorer) retrace() []string {
	r := x.begin(true)
	defer r.end()
	for _, l := range x.path {
		r.take(l.choices[l.at])
	}
	return r.trace
}

// choices lists what can happen next.
func (r *run) choices() (list []int) {
	for i, t := range r.threads {
		if len(t.buffer) > 0 {
			list = append(list, i*choicesPer+chooseFlush)
		}
		if t.done || t.dead {
			continue
		}
		if r.enabled(t) {
			list = append(list, i*choicesPer+chooseStep)
		}
		if t.killable && r.deaths < r.program.Deaths {
			list = append(list, i*choicesPer+chooseDeath)
		}
	}
	return list
}

func (r *run) take(choice int) {
	t := r.threads[choice/choicesPer]
	switch choice % choicesPer {
	case chooseFlush:
		r.flush(t)
	case chooseDeath:
		t.dead = true
		r.deaths++
		r.changes++
		if r.traced {
			r.trace = append(r.trace, t.name+" dies")
		}
	default:
		t.result = r.step(t)
		t.history = mix(t.history, t.result+1)
		t.advance()
	}
}

// final checks a state in which nothing can happen any more.
func (r *run) final() error {
	died := make([]bool, len(r.threads))
	var waiting []string
	for i, t := range r.threads {
		died[i] = t.dead
		if !t.done && !t.dead {
			waiting = append(waiting, fmt.Sprintf("%s waits in %s", t.name, opNames[t.next.kind]))
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("no thread can go on: %s", strings.Join(waiting, ", "))
	}
	if r.program.Final != nil {
		return r.program.Final(r.memory, died)
	}
	return nil
}

// key identifies the state, by two hashes.
func (r *run) key() [2]uint64 {
	h := uint64(hashStart)
	for _, w := range r.memory.words {
		h = mix(h, w)
	}
	for _, t := range r.threads {
		h = mix(h, t.history)
		h = mix(h, uint64(len(t.buffer))<<8|flag(t.done)|flag(t.dead)<<1|flag(r.changes != t.seen)<<2)
		for _, b := range t.buffer {
			h = mix(mix(h, uint64(b.word)), b.value)
		}
	}
	return [2]uint64{h, r.check()}
}

// check is a second hash of what key hashes, made another way.
func (r *run) check() uint64 {
	h := uint64(0x9ae16a3b2f90404f)
	add := func(v uint64) { h = (h ^ v) * 0x100000001b3; h ^= h >> 29 }
	for i, w := range r.memory.words {
		add(w + uint64(i)<<48)
	}
	for _, t := range r.threads {
		add(t.history)
		add(flag(t.done) | flag(t.dead)<<1 | flag(r.changes != t.seen)<<2)
		for _, b := range t.buffer {
			add(uint64(b.word)<<32 ^ b.value)
		}
		add(0xff)
	}
	return h
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
