package dataplane

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/matched"
)

// idleMatcher has no operations: what becomes of them the tests say.
type idleMatcher struct{ hw.Matcher }

func (idleMatcher) MatchAttr() hw.MatchAttr      { return hw.MatchAttr{} }
func (idleMatcher) OnMatch(func(*hw.MatchEvent)) {}

// step is what a function of the transport says, and leaves in the bell.
type step struct{ said, word, rest uint64 }

// steps are what the functions of the transport do next. One that has none says that there is nothing.
var steps struct {
	left  []step
	calls int
}

func takeStep(bell uintptr) uintptr {
	steps.calls++
	if len(steps.left) == 0 {
		return hot.TransportEmpty
	}
	s, b := steps.left[0], (*hot.Bell)(pointer(bell))
	steps.left = steps.left[1:]
	if s.word != 0 {
		b.Word = uintptr(s.word)
	}
	if s.rest != 0 {
		b.Rest = s.rest
	}
	return uintptr(s.said)
}

func stepPost(_, _, bell, _ uintptr) uintptr { return takeStep(bell) }

// stepNext is stepPost for events: each is the end of a write.
func stepNext(_, event, bell, _ uintptr) uintptr {
	(*hot.MatchEvent)(pointer(event)).Flags = hot.MatchShared
	return takeStep(bell)
}

// stepped has the transport do some steps.
func (w *matchWorld) stepped(s ...step) {
	steps.left, steps.calls = s, 0
	w.transport.Post, w.transport.Next = direct.Entry(stepPost), direct.Entry(stepNext)
}

// gates are the states of the gate in which a thread may post or poll.
var gates = []string{"none", "shared", "alone"}

// newSteppedWorld is newMatchWorld with operations, and a gate of that state.
func newSteppedWorld(t testing.TB, gate string) *matchWorld {
	w := newMatchWorld(t)
	e := matched.Open(matched.Options{Matcher: idleMatcher{}, Limit: 4})
	w.transport.Owner = uintptr(unsafe.Pointer(e))
	w.owner = e
	w.ep.Transport = uintptr(w.memory(int(unsafe.Sizeof(hot.Transport{}))))
	w.ep.WriteCntr = uintptr(unsafe.Pointer(w.cntr))
	switch gate {
	case "none":
		w.transport.Gate, w.ep.Flags = 0, 0
	case "shared":
		w.gate.Sharers = 1
	}
	return w
}

// TestPostMatched: what a device says of a post is what becomes of it, with the doorbell of that or of others before
// it, which has the shim ring and leave the gate. Without one the gate is left at once.
func TestPostMatched(t *testing.T) {
	for _, gate := range gates {
		w := newSteppedWorld(t, gate)
		for said, want := range map[uint64]uintptr{
			hot.PathSent: hot.PostDone, hot.PathFull: hot.PostAgain, hot.PathGo: hot.PostGo,
		} {
			for _, s := range []step{{said, 0, 0}, {said, 64, 0}, {said, 0, 1}, {said, 64, 1}} {
				rings := s.word|s.rest != 0
				inside := uint32(hot.GateOut)
				if gate == "alone" {
					if !w.gate.Enter() {
						t.Fatal("the gate is closed")
					}
					if rings {
						inside = hot.GateAlone
					}
				}
				w.stepped(s)
				p := &hot.Post{Bell: hot.Bell{Word: 8, Rest: 8}, Match: hot.MatchPost{Context: ^uint64(0)}}
				code := postMatched(p, w.transport, hot.PostMatch)
				if rings {
					if code != hot.PostRing || p.Bell.Word != uintptr(s.word) || p.Bell.Rest != s.rest {
						t.Errorf("gate %s, %v: code %d, the bell %+v", gate, s, code, p.Bell)
					}
					code = uintptr(p.Code)
				}
				if code != want || w.gate.Inside != inside || steps.calls != 1 {
					t.Errorf("gate %s, %v: code %d, not %d; the gate in state %d", gate, s, code, want, w.gate.Inside)
				}
				w.gate.Leave()
			}
		}
	}
	w := newSteppedWorld(t, "alone")
	w.stepped()
	if code := postMatched(&hot.Post{}, w.transport, hot.PostAgain); code != hot.PostAgain || steps.calls != 0 {
		t.Errorf("a post that has no place: code %d, %d calls", code, steps.calls)
	}
}

// TestServeMatched: a poll takes in what the device finds until that is nothing, and rings between that and the next.
// It goes on with what was found before the doorbell, without asking once more.
func TestServeMatched(t *testing.T) {
	const empty, found, again, leave = hot.TransportEmpty, hot.TransportMatched, hot.TransportAgain, hot.TransportGo
	const ring, runtime = hot.PollRing, hot.PollProgress
	for _, gate := range gates {
		for _, c := range []struct {
			what  string
			steps []step
			codes []uintptr
			ended uint64
		}{
			{"nothing", []step{{said: empty}}, nil, 0},
			{"nothing, and a doorbell", []step{{empty, 64, 0}}, []uintptr{ring}, 0},
			{"ends", []step{{said: found}, {said: found}, {said: empty}}, nil, 2},
			{"nothing yet", []step{{said: again}, {said: found}, {said: empty}}, nil, 1},
			{"doorbells", []step{{again, 64, 0}, {found, 64, 0}, {said: found}, {empty, 64, 0}},
				[]uintptr{ring, ring, ring}, 2},
			{"work of the runtime", []step{{said: found}, {said: leave}}, []uintptr{runtime}, 1},
			{"that behind a doorbell", []step{{leave, 64, 0}}, []uintptr{ring, runtime}, 0},
		} {
			w := newSteppedWorld(t, gate)
			w.stepped(c.steps...)
			call := w.poll(8)
			w.run(readAll, call, func(code uintptr) {
				alone := uint32(hot.GateOut)
				if gate == "alone" {
					alone = hot.GateAlone
				}
				if w.gate.Inside != alone || code == ring && call.Bell.Word != 64 {
					t.Errorf("gate %s, %s: code %d, the gate in state %d, the bell %+v", gate, c.what, code,
						w.gate.Inside, call.Bell)
				}
				if code == runtime {
					LeaveGate(call)
					call.Answer = 0
				}
			})
			if !slices.Equal(w.codes, c.codes) || w.cntr.Value != c.ended || steps.calls != len(c.steps) ||
				w.gate.Inside != hot.GateOut {
				t.Errorf("gate %s, %s: codes %d, %d have ended, %d calls, the gate in state %d", gate, c.what, w.codes,
					w.cntr.Value, steps.calls, w.gate.Inside)
			}
		}
	}
}

// TestReadsAhead: a poll whose reader is full goes on with events that are known to be there, up to a number of them
// and as long as the queue has room; one whose reader is not, and one without, goes on until there are many.
func TestReadsAhead(t *testing.T) {
	for _, c := range []struct {
		what           string
		left           uint64
		reads, expects bool
		full           bool
		messages       uint32
		sated          bool
	}{
		{"the reader has room", 1, true, false, false, batch - 1, false},
		{"the reader has room, after many", 1, true, true, false, batch, true},
		{"no reader", 0, false, false, false, batch - 1, false},
		{"no reader, after many", 0, false, true, false, batch, true},
		{"the reader is full", 0, true, false, false, 1, true},
		{"the reader is full, and another event is there", 0, true, true, false, 1, false},
		{"the same, and no room in the queue", 0, true, true, true, 1, true},
		{"the last of those", 0, true, true, false, eventsAhead - 1, false},
		{"the reader is full, after some", 0, true, true, false, eventsAhead, true},
	} {
		w := newMatchWorld(t)
		call := w.poll(c.left)
		call.Messages = c.messages
		if c.reads {
			call.Delivery.TxReader = uintptr(unsafe.Pointer(&call.Reader))
		}
		if c.expects {
			w.watch.Expect()
		}
		for c.full && completeTo(w.cq, &hot.CQE{}) {
		}
		if got := sated(call, w.transport); got != c.sated {
			t.Errorf("%s: sated is %v", c.what, got)
		}
	}
	w := newMatchWorld(t)
	w.transport.Watch = 0
	call := w.poll(0)
	call.Delivery.Reader = 1
	if !sated(call, w.transport) {
		t.Error("a transport that says nothing of its events is asked for more")
	}
}
