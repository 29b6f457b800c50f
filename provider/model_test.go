package provider

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// Models of the handshakes around the progress lease, run in every order of
// their steps under x86's store buffers.

// urgentRules are mutants of dataplane.PushEntry and publish.
type urgentRules struct {
	noSecond bool // publish does not poll again after it has taken the word back
}

// urgentProgram is one requester of an urgent entry (a cancel or a search) beside
// a lease holder that ends its work: publish, with U1 and U2. Whatever the order,
// the entry is handled, or want_posts says that there is work.
func urgentProgram(rules urgentRules) *interleave.Program {
	const lease, urgent, entry, want, handled = interleave.Word(0), interleave.Word(1), interleave.Word(2),
		interleave.Word(3), interleave.Word(4)
	drain := func(t *interleave.T) {
		if t.Load(entry) == 1 {
			t.Store(entry, 0)
			t.Add(urgent, ^uint64(0))
			t.Store(handled, 1)
		}
	}
	publish := func(t *interleave.T) {
		wanted := uint64(0)
		if t.Load(urgent) != 0 {
			wanted = 1
		}
		if t.Load(want) == wanted {
			return
		}
		t.StoreSC(want, wanted)
		if !rules.noSecond && wanted == 0 && t.Load(urgent) != 0 {
			t.StoreSC(want, 1)
		}
	}
	requester := func(t *interleave.T) {
		t.Add(urgent, 1) // U1
		t.Store(entry, 1)
		t.StoreSC(want, 1) // U2
		if t.CAS(lease, 0, 1) {
			drain(t)
			publish(t)
			t.Store(lease, 0)
		}
	}
	holder := func(t *interleave.T) {
		drain(t)
		publish(t)
		t.Store(lease, 0)
	}
	return &interleave.Program{
		Names: []string{"lease", "urgent", "entry", "want", "handled"}, TSO: true,
		Init:    func(w []uint64) { w[lease], w[want] = 1, 1 },
		Threads: []interleave.Thread{{Name: "requester", Body: requester}, {Name: "holder", Body: holder}},
		Final: func(m interleave.Memory, _ []bool) error {
			if m.Load(handled) == 0 && m.Load(want) == 0 {
				return errors.New("the entry waits, and nothing is notified")
			}
			return nil
		},
	}
}

// readerRules are mutants of closing an endpoint under late readers.
type readerRules struct {
	noCheck  bool // the reader does not poll again whose lease it took
	noLease  bool // closing does not take the lease
	hideLast bool // closing takes the context away after it gave the lease back
}

// readerProgram is a thread that polls a queue, and one that closes the endpoint
// that it finds there and gives its memory to another one, with another receive
// context. The reader must never make progress on a closed context.
func readerProgram(rules readerRules) *interleave.Program {
	const rx, lease, closed, other = interleave.Word(0), interleave.Word(1), interleave.Word(2), interleave.Word(3)
	reader := func(t *interleave.T) {
		for range 2 {
			seen := t.Load(rx)
			if seen == 0 || !t.CAS(lease, 0, 1) { // the lease of what it has seen: one in this model
				continue
			}
			if rules.noCheck || t.Load(rx) == seen {
				t.Check(seen != 1 || t.Load(closed) == 0, "progress on a closed context")
				t.Check(seen != 1 || t.Load(closed) == 0, "closed during progress")
			}
			t.Store(lease, 0)
		}
	}
	closer := func(t *interleave.T) {
		for !rules.noLease && !t.CAS(lease, 0, 1) {
			t.Pause()
			t.At(1)
		}
		if !rules.hideLast {
			t.StoreSC(rx, 0) // hide
		}
		if !rules.noLease {
			t.Store(lease, 0)
		}
		if rules.hideLast {
			t.StoreSC(rx, 0)
		}
		t.Store(closed, 1)
		t.StoreSC(rx, 2) // the memory's next user
		t.Store(other, 1)
	}
	return &interleave.Program{
		Names: []string{"rx", "lease", "closed", "other"}, TSO: true,
		Init: func(w []uint64) { w[rx] = 1 },
		Threads: []interleave.Thread{{Name: "reader", Body: reader}, {Name: "closer", Body: closer},
			{Name: "reader2", Body: reader}},
	}
}

// claimProgram is the word of a rendezvous that both sides copy: no chunk is taken
// twice or by nothing.
func claimProgram(plain bool) *interleave.Program {
	const chunks = 3
	const word, taken = interleave.Word(0), interleave.Word(1)
	side := func(front bool) func(*interleave.T) {
		return func(t *interleave.T) {
			for {
				t.At(1)
				w := t.Load(word)
				f, b := w>>8, w&255
				if f >= b {
					return
				}
				next, chunk := (f+1)<<8|b, f
				if !front {
					next, chunk = f<<8|(b-1), b-1
				}
				if plain {
					t.Store(word, next)
				} else if !t.CAS(word, w, next) {
					continue
				}
				t.Add(taken+interleave.Word(chunk), 1)
			}
		}
	}
	return &interleave.Program{
		Names: []string{"word", "chunk0", "chunk1", "chunk2"}, TSO: true,
		Init:    func(w []uint64) { w[word] = chunks },
		Threads: []interleave.Thread{{Name: "receiver", Body: side(true)}, {Name: "sender", Body: side(false)}},
		Final: func(m interleave.Memory, _ []bool) error {
			for i := range interleave.Word(chunks) {
				if m.Load(taken+i) != 1 {
					return errors.New("a chunk was not copied exactly once")
				}
			}
			return nil
		},
	}
}

func TestModels(t *testing.T) {
	for name, p := range map[string]*interleave.Program{
		"urgent entry": urgentProgram(urgentRules{}),
		"late reader":  readerProgram(readerRules{}),
		"shared copy":  claimProgram(false),
	} {
		r, err := interleave.Explore(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %+v", name, r)
	}
}

func TestModelsFindMutants(t *testing.T) {
	for name, p := range map[string]*interleave.Program{
		"publish does not poll again":    urgentProgram(urgentRules{noSecond: true}),
		"reader does not poll again":     readerProgram(readerRules{noCheck: true}),
		"closed without the lease":       readerProgram(readerRules{noLease: true}),
		"hidden after the lease":         readerProgram(readerRules{hideLast: true}),
		"chunks taken by load and store": claimProgram(true),
	} {
		if r, err := interleave.Explore(p); err == nil {
			t.Errorf("%s: not found in %+v", name, r)
		}
	}
}
