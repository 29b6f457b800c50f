package cq

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/interleave"
)

// A model of a queue's ring with several readers: the steps of pop and of the
// producer, in every order, under x86's store buffers.

// popRules are the mutants of pop.
type popRules struct {
	plainHead    bool // the head moves by a store instead of a compare-and-swap
	earlyRelease bool // a slot is released before it is copied
	copyFirst    bool // slots are released without being taken off the head first
	throughError bool // the scan does not stop at an error
}

const (
	popSlots = 2
	popHead  = interleave.Word(0)
	popSlot  = interleave.Word(1) // popSlots times: sequence word and body
	popSeen  = popSlot + 2*popSlots
)

func popWord(pos uint64) interleave.Word { return popSlot + 2*interleave.Word(pos%popSlots) }

func popSequence(pos, mark, state uint64) uint64 { return pos/popSlots<<8 | mark<<2 | state }

// popProgram: one producer publishes messages, of which number bad is an error
// (no such: none), and readers read until all are read, or stop at the error.
func popProgram(messages, bad uint64, readers int, rules popRules) *interleave.Program {
	names := []string{"head", "seq0", "body0", "seq1", "body1"}
	for i := range messages {
		names = append(names, fmt.Sprintf("seen%d", i))
	}
	producer := func(t *interleave.T) {
		for pos := range messages {
			t.At(pos)
			for t.Load(popWord(pos)) != popSequence(pos, 0, hot.SlotFree) {
				if bad < messages {
					return // the error may block the ring for good
				}
				t.Pause()
				t.At(pos + 100)
			}
			mark := uint64(hot.CQMarkEntry)
			if pos == bad {
				mark = hot.CQMarkError
			}
			t.Store(popWord(pos)+1, pos+1)
			t.Store(popWord(pos), popSequence(pos, mark, hot.SlotReady))
		}
	}
	reader := func(t *interleave.T) {
		for {
			t.At(1)
			head := t.Load(popHead)
			if head >= min(messages, bad) {
				return
			}
			end := head
			for end < head+2 { // a batch of two
				w := t.Load(popWord(end))
				mark := w >> 2 & 63
				if w != popSequence(end, mark, hot.SlotReady) || mark == hot.CQMarkError && !rules.throughError {
					break
				}
				end++
			}
			if end == head {
				if t.Ended(0) && t.Load(popWord(head))&3 != hot.SlotReady {
					return // the producer stopped before it
				}
				t.Pause()
				continue
			}
			take := func() bool {
				if rules.plainHead {
					t.Store(popHead, end)
					return true
				}
				return t.CAS(popHead, head, end)
			}
			if !rules.copyFirst && !take() {
				continue
			}
			for pos := head; pos != end; pos++ {
				if rules.earlyRelease {
					t.Store(popWord(pos), popSequence(pos+popSlots, 0, hot.SlotFree))
				}
				body := t.Load(popWord(pos) + 1)
				t.Check(body == pos+1, "completion %d holds %d", pos, body)
				t.Check(pos != bad, "an error was read as a completion")
				t.Add(popSeen+interleave.Word(pos), 1)
				if !rules.earlyRelease {
					t.Store(popWord(pos), popSequence(pos+popSlots, 0, hot.SlotFree))
				}
			}
			if rules.copyFirst {
				take()
			}
		}
	}
	p := &interleave.Program{Names: names, TSO: true, Threads: []interleave.Thread{{Name: "producer", Body: producer}}}
	for i := range readers {
		p.Threads = append(p.Threads, interleave.Thread{Name: fmt.Sprintf("reader%d", i), Body: reader})
	}
	p.Final = func(m interleave.Memory, _ []bool) error {
		for i := range messages {
			n := m.Load(popSeen + interleave.Word(i))
			if n > 1 || n == 0 && bad >= messages || n == 0 && i < m.Load(popHead) {
				return fmt.Errorf("completion %d was read %d times", i, n)
			}
		}
		return nil
	}
	return p
}

const noError = 99

func TestModelPop(t *testing.T) {
	for _, c := range []struct {
		messages, bad uint64
		readers       int
	}{{3, noError, 2}, {2, 1, 2}, {3, 1, 1}, {2, noError, 3}} {
		if testing.Short() && c.readers > 2 {
			continue
		}
		r, err := interleave.Explore(popProgram(c.messages, c.bad, c.readers, popRules{}))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		t.Logf("%+v: %+v", c, r)
	}
}

func TestModelPopFindsMutants(t *testing.T) {
	for name, c := range map[string]struct {
		rules popRules
		bad   uint64
	}{
		"head moved by a store":     {popRules{plainHead: true}, noError},
		"released before the copy":  {popRules{earlyRelease: true}, noError},
		"copied before it is ours":  {popRules{copyFirst: true}, noError},
		"errors are not stopped at": {popRules{throughError: true}, 1},
	} {
		if r, err := interleave.Explore(popProgram(3, c.bad, 2, c.rules)); err == nil {
			t.Errorf("%s: not found in %+v", name, r)
		}
	}
}
