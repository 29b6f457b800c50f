package provider

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// modelWork is an operation of the model: it changes a counter, or it is a
// message, which completes when it is posted.
type modelWork struct {
	id        uint64
	on        int
	threshold uint64
	total     bool
	op        int // mAdd, mSet, mSend
	target    int // counter of the operation, or the one that counts its end, -1: none
	value     uint64
}

const (
	mAdd = iota
	mSet
	mSend
)

// workModel performs work one step after the other.
type workModel struct {
	value, errors []uint64
	waiting       [][]*modelWork // by counter, in the order in which they were queued
	fifo          []*modelWork
	sent          []uint64
}

// changed fires what a counter has reached.
func (m *workModel) changed(c int) {
	for {
		best := -1
		for i, w := range m.waiting[c] {
			reached := m.value[c]
			if w.total {
				reached += m.errors[c]
			}
			if w.threshold <= reached && (best < 0 || w.threshold < m.waiting[c][best].threshold) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		m.fifo = append(m.fifo, m.waiting[c][best])
		m.waiting[c] = slices.Delete(m.waiting[c], best, best+1)
	}
}

func (m *workModel) run() {
	for len(m.fifo) != 0 {
		w := m.fifo[0]
		m.fifo = m.fifo[1:]
		if w.op == mSend {
			m.sent = append(m.sent, w.id)
		}
		switch {
		case w.target < 0:
			continue
		case w.op == mSet:
			m.value[w.target] = w.value
		case w.op == mAdd:
			m.value[w.target] += w.value
		default:
			m.value[w.target]++
		}
		m.changed(w.target)
	}
}

// workRun is one random program, on counters of its own.
type workRun struct {
	t        *testing.T
	x, y     *side
	r        *rand.Rand
	model    workModel
	counters []*cq.Counter
	last     uint64
	queued   []*modelWork
}

func (p *workRun) step() {
	r, c := p.r, p.r.IntN(len(p.counters))
	n := uint64(r.IntN(4))
	switch k := r.IntN(20); {
	case k < 12:
		p.queue()
	case k < 15:
		p.counters[c].Add(n)
		p.model.value[c] += n
	case k < 16:
		n *= 3
		p.counters[c].Set(n)
		p.model.value[c] = n
	case k < 18:
		p.counters[c].AddErr(n)
		p.model.errors[c] += n
	case k < 19 && len(p.queued) != 0:
		w := p.queued[r.IntN(len(p.queued))]
		at := slices.Index(p.model.waiting[w.on], w)
		if err := p.x.domain.CancelWork(w.id); w.total && (err == nil) != (at >= 0) {
			p.t.Fatalf("cancel %d: %v, waits in the model at %d", w.id, err, at)
		}
		if at >= 0 && w.total {
			p.model.waiting[w.on] = slices.Delete(p.model.waiting[w.on], at, at+1)
		}
	case r.IntN(4) == 0:
		if err := p.x.domain.FlushWork(p.counters[c]); err != nil {
			p.t.Fatal(err)
		}
		p.model.waiting[c] = slices.DeleteFunc(p.model.waiting[c], func(w *modelWork) bool { return w.total })
	}
	p.model.changed(c)
	p.model.run()
}

// queue queues deferred work or a triggered message.
func (p *workRun) queue() {
	r := p.r
	p.last++
	w := &modelWork{id: p.last, on: r.IntN(len(p.counters)), threshold: uint64(r.IntN(12)), total: true, op: r.IntN(3), value: uint64(r.IntN(3))}
	w.target = r.IntN(len(p.counters))
	send := &SendArgs{Dest: p.x.addr[p.y], Tagged: true, Tag: w.id, Context: w.id}
	q := Work{On: Threshold{p.counters[w.on], w.threshold}, User: w.id}
	var err error
	switch {
	case w.op == mSend && r.IntN(3) == 0:
		w.total, w.target = false, -1
		send.Flags, send.On = fi.Trigger, q.On
		err = p.x.ep.Send(send)
	case w.op == mSend:
		if r.IntN(4) == 0 {
			w.target = -1
		} else {
			q.Done = p.counters[w.target]
		}
		q.EP, q.Send = p.x.ep, send
		err = p.x.domain.QueueWork(&q)
	default:
		q.Counter, q.Value, q.Add = p.counters[w.target], w.value, w.op == mAdd
		err = p.x.domain.QueueWork(&q)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.queued = append(p.queued, w)
	p.model.waiting[w.on] = append(p.model.waiting[w.on], w)
	p.model.changed(w.on)
}

func (p *workRun) compare(what string) {
	for i, c := range p.counters {
		value, errors := atomic.LoadUint64(&c.Hot().Value), atomic.LoadUint64(&c.Hot().Errors)
		if value != p.model.value[i] || errors != p.model.errors[i] {
			p.t.Fatalf("%s: counter %d is %d with %d errors, want %d and %d", what, i, value, errors, p.model.value[i], p.model.errors[i])
		}
	}
}

// TestWorkAgainstModel runs random programs of deferred work, triggered messages
// and changes of counters, and compares every counter after every step, and the
// order of the messages at the end, with a model.
func TestWorkAgainstModel(t *testing.T) {
	b := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Trigger})
	x, y := b.side(t), b.side(t)
	x.know(y)
	seeds := uint64(4000)
	if testing.Short() {
		seeds = 400
	}
	for seed := range seeds {
		p := &workRun{t: t, x: x, y: y, r: rand.New(rand.NewPCG(seed, 3))}
		n := 2 + p.r.IntN(4)
		p.model = workModel{value: make([]uint64, n), errors: make([]uint64, n), waiting: make([][]*modelWork, n)}
		for range n {
			c, err := b.domain.OpenCounter(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			p.counters = append(p.counters, c)
		}
		for i := range 40 {
			p.step()
			p.compare(fmt.Sprintf("seed %d step %d", seed, i))
		}
		p.drain(seed)
	}
}

// drain ends a program: what waits still is taken back, what was sent received.
func (p *workRun) drain(seed uint64) {
	if err := p.x.domain.FlushWork(nil); err != nil {
		p.t.Fatal(err)
	}
	for _, w := range p.queued {
		if !w.total {
			p.x.domain.work.cancel(func(o *queuedOp) bool { return o.user == w.id })
		}
	}
	for _, c := range p.counters {
		if err := c.Close(); err != nil {
			p.t.Fatalf("seed %d: close a counter: %v", seed, err)
		}
	}
	var got []uint64
	buf := make([]cq.Entry, 64)
	for range p.model.sent {
		p.y.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Ignore: ^uint64(0)}, p.x)
	}
	for end := time.Now().Add(20 * time.Second); len(got) < len(p.model.sent); {
		p.y.ep.Progress()
		n, err := p.y.cq.Read(buf)
		for _, e := range buf[:max(n, 0)] {
			got = append(got, e.Tag)
		}
		if n <= 0 && (err != fi.EAGAIN || time.Now().After(end)) {
			p.t.Fatalf("seed %d: %d messages of %d: %v", seed, len(got), len(p.model.sent), err)
		}
	}
	if !slices.Equal(got, p.model.sent) {
		p.t.Fatalf("seed %d: messages %v, want %v", seed, got, p.model.sent)
	}
	for n := 1; n > 0; { // completions of triggered messages
		n, _ = p.x.cq.Read(buf)
	}
}
