package deferred

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

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
	dest      int // of a message
	refused   bool
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
	room          []int // for messages, by destination
	blocked       [][]*modelWork
	sent, failed  []uint64
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
	for d := range m.blocked {
		for len(m.blocked[d]) != 0 && m.fits(m.blocked[d][0]) {
			w := m.blocked[d][0]
			m.blocked[d] = m.blocked[d][1:]
			m.perform(w)
		}
	}
	for len(m.fifo) != 0 {
		w := m.fifo[0]
		m.fifo = m.fifo[1:]
		if w.op == mSend && (len(m.blocked[w.dest]) != 0 || !m.fits(w)) {
			m.blocked[w.dest] = append(m.blocked[w.dest], w)
			continue
		}
		m.perform(w)
	}
}

// fits reports whether a message is not to wait for room.
func (m *workModel) fits(w *modelWork) bool { return w.refused || m.room[w.dest] != 0 }

func (m *workModel) perform(w *modelWork) {
	switch {
	case w.op == mSend && w.refused:
		m.failed = append(m.failed, w.id)
	case w.op == mSend:
		m.room[w.dest]--
		m.sent = append(m.sent, w.id)
	}
	switch {
	case w.target < 0:
		return
	case w.refused:
		m.errors[w.target]++
	case w.op == mSet:
		m.value[w.target] = w.value
	case w.op == mAdd:
		m.value[w.target] += w.value
	default:
		m.value[w.target]++
	}
	m.changed(w.target)
}

// cancel takes a message or operation back that has not been posted.
func (m *workModel) cancel(w *modelWork) bool {
	for _, lists := range [][][]*modelWork{m.waiting, m.blocked} {
		for i, list := range lists {
			if at := slices.Index(list, w); at >= 0 {
				lists[i] = slices.Delete(list, at, at+1)
				return true
			}
		}
	}
	return false
}

// workRun is one random program, on a queue of its own.
type workRun struct {
	t            *testing.T
	r            *rand.Rand
	q            Queue
	backlog      Backlog
	notified     int
	model        workModel
	counters     []*cq.Counter
	room         []int // as the model's, of the functions that the operations are
	sent, failed []uint64
	last         uint64
	queued       []*modelWork
}

const destinations = 3

func newWorkRun(t *testing.T, seed uint64) *workRun {
	p := &workRun{t: t, r: rand.New(rand.NewPCG(seed, 3)), room: make([]int, destinations)}
	p.backlog.Notify = func() { p.notified++ }
	n := 2 + p.r.IntN(4)
	p.model = workModel{value: make([]uint64, n), errors: make([]uint64, n), waiting: make([][]*modelWork, n),
		room: make([]int, destinations), blocked: make([][]*modelWork, destinations)}
	for d := range destinations {
		p.allow(d, p.r.IntN(10))
	}
	for range n {
		p.counters = append(p.counters, counterOf(t, &p.q))
	}
	return p
}

// counterOf opens a counter as a domain with this queue does.
func counterOf(t *testing.T, q *Queue) *cq.Counter {
	t.Helper()
	c, err := cq.OpenCounter(&fi.CntrAttr{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.OnChange(q.PostReady)
	return c
}

func (p *workRun) allow(dest, n int) {
	p.room[dest] += n
	p.model.room[dest] += n
}

func (p *workRun) step() {
	r, c := p.r, p.r.IntN(len(p.counters))
	n := uint64(r.IntN(4))
	switch k := r.IntN(23); {
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
	case k < 20 && len(p.queued) != 0:
		w := p.queued[r.IntN(len(p.queued))]
		found := p.q.Cancel(func(o *Op) bool { return o.User == w.id })
		if (len(found) != 0) != p.model.cancel(w) {
			p.t.Fatalf("cancel %d: %d found, and the model differs", w.id, len(found))
		}
		p.q.PostReady()
	case k < 22:
		p.allow(r.IntN(destinations), 1+r.IntN(4))
		p.q.PostReady()
	case r.IntN(4) == 0:
		on := p.counters[c]
		p.q.Cancel(func(o *Op) bool { return o.Deferred && o.On == on && o.state == waiting })
		m := &p.model
		m.waiting[c] = slices.DeleteFunc(m.waiting[c], func(w *modelWork) bool { return w.total })
		p.q.PostReady()
	}
	p.model.changed(c)
	p.model.run()
}

// queue queues deferred work or a triggered message.
func (p *workRun) queue() {
	r := p.r
	p.last++
	w := &modelWork{id: p.last, on: r.IntN(len(p.counters)), threshold: uint64(r.IntN(12)), total: true,
		op: r.IntN(3), value: uint64(r.IntN(3)), target: r.IntN(len(p.counters))}
	o := &Op{Number: p.q.Number(), User: w.id, On: p.counters[w.on], At: w.threshold, Deferred: true}
	if w.op == mSend {
		w.dest, w.refused = r.IntN(destinations), r.IntN(8) == 0
		o.Backlog, o.Sequence = &p.backlog, Sequence{p, fi.Addr(w.dest)}
		switch r.IntN(4) {
		case 0:
			w.total, o.Deferred, w.target = false, false, -1
		case 1:
			w.target = -1
		default:
			o.Done = p.counters[w.target]
		}
		o.Post = func() error { return p.post(w, o) }
		o.Fail = func(err fi.Errno) {
			if err != fi.EINVAL {
				p.t.Errorf("operation %d fails with %v", w.id, err)
			}
			p.failed = append(p.failed, w.id)
			p.q.End(o.Completes(), true, 0)
		}
	} else {
		p.q.Changes(o, p.counters[w.target], w.value, w.op == mAdd)
	}
	p.q.Add(o)
	p.queued = append(p.queued, w)
	p.model.waiting[w.on] = append(p.model.waiting[w.on], w)
	p.model.changed(w.on)
}

// post is what a message does: it completes at once.
func (p *workRun) post(w *modelWork, o *Op) error {
	switch {
	case w.refused:
		return fi.EINVAL
	case p.room[w.dest] == 0:
		return fi.EAGAIN
	}
	p.room[w.dest]--
	p.sent = append(p.sent, w.id)
	if o.Deferred {
		p.q.End(o.Number, false, 0)
	}
	return nil
}

func (p *workRun) compare(what string) {
	for i, c := range p.counters {
		value, errors := valueOf(c), atomic.LoadUint64(&c.Hot().Errors)
		if value != p.model.value[i] || errors != p.model.errors[i] {
			p.t.Fatalf("%s: counter %d is %d with %d errors, want %d and %d", what, i, value, errors,
				p.model.value[i], p.model.errors[i])
		}
	}
	blocked := 0
	for _, list := range p.model.blocked {
		blocked += len(list)
	}
	if p.backlog.Empty() != (blocked == 0) || p.q.Ready() != (blocked != 0) {
		p.t.Fatalf("%s: %d are blocked; backlog empty %v, ready %v", what, blocked, p.backlog.Empty(),
			p.q.Ready())
	}
}

func valueOf(c *cq.Counter) uint64 { return atomic.LoadUint64(&c.Hot().Value) }

// TestAgainstModel runs random programs of deferred work, triggered messages, room for them and changes of counters,
// and compares every counter after every step, and the order of the messages to each destination at the end, with a
// model.
func TestAgainstModel(t *testing.T) {
	seeds := uint64(6000)
	if testing.Short() {
		seeds = 600
	}
	notified := 0
	for seed := range seeds {
		p := newWorkRun(t, seed)
		for i := range 60 {
			p.step()
			p.compare(fmt.Sprintf("seed %d step %d", seed, i))
		}
		p.drain(seed)
		notified += p.notified
	}
	if notified == 0 {
		t.Error("progress was never asked for")
	}
}

// drain ends a program: what waits still is taken back, and nothing of it is left.
func (p *workRun) drain(seed uint64) {
	p.q.Cancel(func(*Op) bool { return true })
	p.q.PostReady()
	if !p.backlog.Empty() || p.q.Ready() || p.q.Len() != 0 {
		p.t.Fatalf("seed %d: %d are left; backlog empty %v, ready %v", seed, p.q.Len(), p.backlog.Empty(),
			p.q.Ready())
	}
	for _, c := range p.counters {
		if err := c.Close(); err != nil {
			p.t.Fatalf("seed %d: close a counter: %v", seed, err)
		}
	}
	for d := range destinations {
		toDest := func(ids []uint64) (list []uint64) {
			for _, id := range ids {
				if p.queued[id-1].dest == d && p.queued[id-1].op == mSend {
					list = append(list, id)
				}
			}
			return list
		}
		if got, want := toDest(p.sent), toDest(p.model.sent); !slices.Equal(got, want) {
			p.t.Fatalf("seed %d: messages %v to %d, want %v", seed, got, d, want)
		}
		if got, want := toDest(p.failed), toDest(p.model.failed); !slices.Equal(got, want) {
			p.t.Fatalf("seed %d: failures %v to %d, want %v", seed, got, d, want)
		}
	}
}
