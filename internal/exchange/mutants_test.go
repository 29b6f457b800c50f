package exchange

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The model of the tests is a copy of what members give, with the rules of credits and relays beside it. Mutants show
// that it finds faults: a member's engine is right, and what it says is changed as if it were not.

// found is what the model says of a mutant.
type found struct{ what string }

// finder takes what the model finds as a panic.
type finder struct{}

func (finder) Fatalf(format string, args ...any) { panic(found{fmt.Sprintf(format, args...)}) }

// tryRelays runs one operation with relays, and returns what the model finds, "" for nothing.
func tryRelays(seed uint64, change func(n *net)) (what string) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case found:
			what = f.what
		default:
			panic(f)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 7))
	n := relayNet(finder{}, r, 4+int(seed%6))
	change(n)
	n.run()
	n.passedOn()
	n.empty()
	return ""
}

// passedOn checks, after an operation in which no member has died, that relays have passed on each piece once.
func (n *net) passedOn() {
	if n.hops != n.onward {
		n.t.Fatalf("%s: %d pieces went to relays and %d on to their targets", n.what, n.hops, n.onward)
	}
}

// TestMutants: faults in the rules of credits, words and relays are found within a few operations, and without
// one nothing is.
func TestMutants(t *testing.T) {
	const operations = 200
	only := func(is func(msg *message) bool, change func(msg *message) int) func(n *net) {
		return func(n *net) {
			n.fault = func(msg *message) int {
				if is(msg) {
					return change(msg)
				}
				return 1
			}
		}
	}
	credit := func(msg *message) bool { return msg.kind == SendWord && msg.w.Invite }
	word := func(msg *message) bool { return msg.kind == SendWord }
	hop := func(msg *message) bool { return msg.kind == SendPiece && msg.piece.Hop }
	ends := func(msg *message) bool { return msg.kind == SendNote && msg.note.Kind == NoteEnd }
	passed := (*message).passed
	never := func(*message) int { return 0 }
	twice := func(*message) int { return 2 }
	for name, change := range map[string]func(n *net){
		"a credit is given twice":            only(credit, twice),
		"every word is a credit":             only(word, func(msg *message) int { msg.w.Invite = true; return 1 }),
		"a word is forgotten":                only(word, never),
		"a byte more is acknowledged":        only(word, func(msg *message) int { msg.w.Got++; return 1 }),
		"a piece more is acknowledged":       only(word, func(msg *message) int { msg.w.Low++; return 1 }),
		"a source uses a grant twice":        only(hop, twice),
		"a source forgets a piece":           only(hop, never),
		"a source forgets to end":            only(ends, never),
		"a relay forgets a piece":            only(passed, never),
		"a relay passes a piece on twice":    only(passed, twice),
		"a relay passes on other bytes":      only(passed, func(msg *message) int { msg.data[0]++; return 1 }),
		"a relay passes on another number":   only(passed, func(msg *message) int { msg.piece.Number++; return 1 }),
		"a relay does not give a place back": func(n *net) { n.leak = true },
		"":                                   func(*net) {},
	} {
		what, seed := "", uint64(0)
		for ; what == "" && seed < operations; seed++ {
			what = tryRelays(seed, change)
		}
		if (what != "") != (name != "") {
			t.Errorf("%q, after %d operations: found %q", name, seed, what)
		}
		t.Logf("%q: operation %d: %.100s", name, seed, what)
	}
}
