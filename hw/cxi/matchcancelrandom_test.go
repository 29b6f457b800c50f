package cxi

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/testseed"
)

const (
	randomBytes = 1 << 15 // of the memory of a receive
	randomSlots = 64
	randomSteps = 5000
)

// randomReceive is a receive that has not ended.
type randomReceive struct {
	id         hw.MatchID
	slot, room int
}

// randomRun is a sender and a receiver that post, cancel and make progress in any order.
type randomRun struct {
	*testing.T
	r        *rand.Rand
	a, b     *matching
	messages [][2]int // offset and length in the sender's memory
	received []int    // times, of each
	open     map[uint64]randomReceive
	free     []int // slots of the receiver's memory
	context  uint64
}

func newRandomRun(t *testing.T, mode MatchMode, seed uint64) *randomRun {
	c := MatchConfig{Receives: 24, Mode: mode, Unexpected: 8}
	x := &randomRun{T: t, r: rand.New(rand.NewPCG(seed, uint64(mode))), open: map[uint64]randomReceive{}}
	x.a, x.b = newMatching(t, c, 1<<20), newMatching(t, c, randomBytes*randomSlots)
	fillBytes(x.a.b, 3)
	for k := range randomSlots {
		x.free = append(x.free, k)
	}
	x.b.m.OnMatch(x.event)
	return x
}

// event checks what becomes of a receive.
func (x *randomRun) event(e *hw.MatchEvent) {
	r, ok := x.open[e.Context]
	switch {
	case !ok:
		x.Fatalf("of no receive: %+v", *e)
	case e.Kind == hw.MatchReceived:
		m := x.messages[e.Data]
		n := min(m[1], r.room-int(e.Offset))
		if e.Err != nil || int(e.Wanted) != m[1] || int(e.Length) != n ||
			!bytes.Equal(x.a.b[m[0]:m[0]+n], x.b.b[r.slot*randomBytes+int(e.Offset):][:n]) {
			x.Fatalf("message %d of %d bytes in %d: %+v", e.Data, m[1], r.room, *e)
		}
		x.received[e.Data]++
	case e.Kind != hw.MatchCanceled:
		x.Fatalf("%+v", *e)
	}
	if e.Last {
		delete(x.open, e.Context)
		x.free = append(x.free, r.slot)
	}
}

func (x *randomRun) send() {
	n := []int{0, 8, 192, 193, 1000, 3000, 18433, 18434, 25000}[x.r.IntN(9)]
	off := x.r.IntN(len(x.a.b) - n)
	m := hw.MatchSend{To: x.b.self, Local: x.a.at(off, n), Matched: x.r.IntN(3) == 0}
	m.Data, m.HasData = uint64(len(x.messages)), true
	if x.a.m.PostMatched(&m) == nil {
		x.messages, x.received = append(x.messages, [2]int{off, n}), append(x.received, 0)
	}
}

func (x *randomRun) post(multi bool) {
	if len(x.free) == 0 {
		return
	}
	p := randomReceive{slot: x.free[0], room: randomBytes}
	if !multi {
		p.room = 1 + x.r.IntN(randomBytes)
	}
	q := hw.MatchReceive{From: hw.AnyAddress, Local: x.b.at(p.slot*randomBytes, p.room), Context: x.context}
	if q.Multi = multi; multi {
		q.MinFree = 1 + x.r.IntN(8000)
	}
	id, err := x.b.m.PostReceive(&q)
	if errors.Is(err, hw.ErrNoResource) {
		return
	}
	if err != nil {
		x.Fatal(err)
	}
	p.id, x.free = id, x.free[1:]
	x.open[x.context] = p
	x.context++
}

// pick is any receive that has not ended, of which there are some.
func (x *randomRun) pick() randomReceive {
	contexts := slices.Sorted(maps.Keys(x.open))
	return x.open[contexts[x.r.IntN(len(contexts))]]
}

// cancel cancels any receive. It may be too late for that, or too early.
func (x *randomRun) cancel() {
	if len(x.open) != 0 {
		_ = x.b.m.CancelReceive(x.pick().id)
	}
}

func (x *randomRun) progress() {
	x.a.i.Progress(1 + x.r.IntN(8))
	x.b.i.Progress(1 + x.r.IntN(8))
}

func (x *randomRun) step() {
	switch k := x.r.IntN(20); {
	case k < 6:
		x.send()
	case k < 9:
		x.post(false)
	case k < 11:
		x.post(true)
	case k < 13:
		x.cancel()
	default:
		x.progress()
	}
}

// until has steps done until all is so.
func (x *randomRun) until(what string, is func() bool, step func()) {
	x.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		step()
		for range 20 {
			x.progress()
		}
		if time.Now().After(end) {
			x.Fatalf("%s: %d messages, %d receives open, %+v", what, len(x.messages), len(x.open),
				x.b.m.(hw.MatchCounter).MatchStats())
		}
	}
}

// TestMatchCancelRandom: receives of one and of many messages that are cancelled in any state, whatever matches: each
// message comes once, as a whole, and each receive ends once.
func TestMatchCancelRandom(t *testing.T) {
	seed := testseed.New(t)
	modes := map[string]MatchMode{"hardware": MatchHardware, "software": MatchSoftware, "hybrid": MatchHybrid}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			x := newRandomRun(t, mode, seed)
			for range randomSteps {
				x.step()
			}
			x.until("messages", func() bool {
				for _, n := range x.received {
					if n != 1 {
						return false
					}
				}
				return len(x.a.events) == len(x.messages)
			}, func() { x.post(x.r.IntN(2) == 0) })
			x.until("receives", func() bool { return len(x.open) == 0 }, x.cancel)
		})
	}
}

// TestRandomPicks: runs with one seed cancel the same receives.
func TestRandomPicks(t *testing.T) {
	var picks [2][32]int
	for k := range picks {
		x := newRandomRun(t, MatchHardware, 1)
		for slot := range randomSlots {
			x.open[uint64(slot)] = randomReceive{slot: slot}
		}
		for n := range picks[k] {
			picks[k][n] = x.pick().slot
		}
		clear(x.open)
	}
	if picks[0] != picks[1] {
		t.Errorf("%v and then %v", picks[0], picks[1])
	}
}
