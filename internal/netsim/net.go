package netsim

import (
	"math/rand/v2"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// handler is what an event is delivered to.
type handler interface {
	handle(arg *Packet)
}

// event is something that happens at a time. Events of one time happen in the
// order in which they were made, so that a run repeats.
type event struct {
	at  congestion.Time
	seq uint64
	to  handler
	arg *Packet
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// Net is a simulation: the time, what will happen, and chance.
type Net struct {
	Rand *rand.Rand

	now    congestion.Time
	events []event // a heap of eventWidth children
	seq    uint64
	fired  uint64
	free   *Packet
}

// New returns a simulation without hosts at time 1 s, so that a time of 0
// never happens.
func New(seed uint64) *Net {
	return &Net{Rand: rand.New(rand.NewPCG(seed, 0)), now: congestion.Time(time.Second)}
}

// Now returns the simulated time.
func (n *Net) Now() congestion.Time { return n.now }

// Events returns how many events have happened.
func (n *Net) Events() uint64 { return n.fired }

// eventWidth is how many children an entry of the heap of events has: fewer levels are fewer lines of memory.
const eventWidth = 4

// at makes an event.
func (n *Net) at(t congestion.Time, to handler, arg *Packet) {
	n.seq++
	e := event{max(t, n.now), n.seq, to, arg}
	n.events = append(n.events, e)
	i := len(n.events) - 1
	for i > 0 {
		parent := (i - 1) / eventWidth
		if !e.before(&n.events[parent]) {
			break
		}
		n.events[i] = n.events[parent]
		i = parent
	}
	n.events[i] = e
}

// pop takes the earliest event.
func (n *Net) pop() event {
	top, last := n.events[0], len(n.events)-1
	e := n.events[last]
	n.events[last] = event{}
	n.events = n.events[:last]
	for i := 0; last > 0; {
		least := eventWidth*i + 1
		for c := least + 1; c < min(eventWidth*(i+1)+1, last); c++ {
			if n.events[c].before(&n.events[least]) {
				least = c
			}
		}
		if least >= last || !n.events[least].before(&e) {
			n.events[i] = e
			break
		}
		n.events[i] = n.events[least]
		i = least
	}
	return top
}

// Run lets d pass.
func (n *Net) Run(d time.Duration) {
	end := n.now.Add(d)
	for len(n.events) > 0 && n.events[0].at <= end {
		e := n.pop()
		n.now = e.at
		n.fired++
		e.to.handle(e.arg)
	}
	n.now = end
}

// funcHandler makes a function a handler.
type funcHandler func()

func (f funcHandler) handle(*Packet) { f() }

// At calls f at t, or now if t has passed.
func (n *Net) At(t congestion.Time, f func()) { n.at(t, funcHandler(f), nil) }

// Every calls f each d from now on, as long as the simulation runs.
func (n *Net) Every(d time.Duration, f func(now congestion.Time)) {
	var tick func()
	tick = func() {
		f(n.now)
		n.At(n.now.Add(d), tick)
	}
	n.At(n.now.Add(d), tick)
}
