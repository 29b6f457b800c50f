package transport

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// A model of a full completion queue, run in every order of its steps: a thread that posts one operation,
// the device, which ends the one that fills the queue, and the lease holder, which sleeps while it finds
// nothing to do. All words are sequentially consistent, as those of the transport are.

// postRules are mutants of SendQueue.leave.
type postRules struct {
	noCheck bool // room is not read behind CallPost
	noCall  bool // CallPost is not set
	early   bool // room is read before CallPost is set
}

// Words of the model. Room is what is left of the queue, ended what the device has written and the holder
// has not taken.
const (
	wordRun interleave.Word = iota
	wordRoom
	wordCalls
	wordEnded
	wordArmed
	wordRang
	wordPosted
)

// modelPost is SendQueue.Post: it takes Run, unless another thread has it, and posts the operation if none
// has.
func modelPost(t *interleave.T, rules postRules) {
	for {
		t.At(1)
		if !t.CAS(wordRun, 0, 1) {
			return
		}
		if t.Load(wordPosted) != 0 {
			t.StoreSC(wordRun, 0)
			return
		}
		if room := t.Load(wordRoom); room != 0 && t.CAS(wordRoom, room, room-1) {
			t.StoreSC(wordPosted, 1)
			t.StoreSC(wordRun, 0)
			return
		}
		t.StoreSC(wordRun, 0)
		again := rules.early && t.Load(wordRoom) != 0
		if !rules.noCall {
			t.StoreSC(wordCalls, 1)
		}
		if !rules.noCheck && !rules.early {
			again = t.Load(wordRoom) != 0
		}
		if !again {
			return
		}
	}
}

// modelHolder is the lease holder: Progress, which posts what waits for room if it is asked to, Arm,
// Pending, and sleep.
func modelHolder(t *interleave.T, rules postRules) {
	for {
		t.At(2)
		due := t.Swap(wordCalls, 0) != 0
		if t.Swap(wordEnded, 0) != 0 {
			t.Add(wordRoom, 1)
		}
		if due {
			modelPost(t, rules)
		}
		t.At(3)
		if t.Load(wordPosted) != 0 {
			return
		}
		t.StoreSC(wordArmed, 1)
		if t.Load(wordEnded) != 0 || t.Load(wordCalls) != 0 {
			continue
		}
		t.Await(func(m interleave.Memory) bool { return m.Load(wordRang) != 0 || m.Load(wordPosted) != 0 })
		t.StoreSC(wordRang, 0)
	}
}

func postProgram(rules postRules) *interleave.Program {
	return &interleave.Program{
		Names: []string{"run", "room", "calls", "ended", "armed", "rang", "posted"},
		Threads: []interleave.Thread{
			{Name: "requester", Body: func(t *interleave.T) { modelPost(t, rules) }},
			{Name: "holder", Body: func(t *interleave.T) { modelHolder(t, rules) }},
			{Name: "device", Body: func(t *interleave.T) {
				t.StoreSC(wordEnded, 1)
				if t.Load(wordArmed) != 0 {
					t.StoreSC(wordRang, 1)
				}
			}},
		},
		Final: func(m interleave.Memory, _ []bool) error {
			if m.Load(wordPosted) == 0 {
				return errors.New("nothing posts what is ready")
			}
			return nil
		},
	}
}

// TestModelPost: whatever the order, the operation is posted, and none sleeps for ever before.
func TestModelPost(t *testing.T) {
	interleave.Check(t, postProgram, map[string]postRules{
		"room is not read again":                {noCheck: true},
		"Progress is not asked":                 {noCall: true},
		"room is read before Progress is asked": {early: true},
	})
}
