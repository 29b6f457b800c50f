package cq

import (
	"container/heap"
	"math"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
)

// Trigger is something to do when a counter reaches a threshold. A thread that arms it
// sets the exported fields before and leaves them alone while it is armed.
type Trigger struct {
	// Threshold is the value that the counter has to reach, or to be beyond.
	Threshold uint64
	// Total compares the sum of value and error value with the threshold, not
	// the value alone.
	Total bool
	// Fire is called once, by the thread that changed the counter, with the
	// counter's triggers locked: it must not block or touch a counter.
	Fire func()

	order uint64 // among those of the counter; under triggers.mu
	at    int    // place in its heap plus one, 0: not armed; under triggers.mu
}

// triggers are those of a counter that have not fired. Counting does not read
// them, but a bit of the flag word that it reads anyway:
//
//	arm:   heap, next, bit (T0) → read the values
//	count: change the value     → read the bit (T1), then at next
//
// T0 and T1 are sequentially consistent, so one of the two sees the other.
type triggers struct {
	mu    sync.Mutex // arming, and counting that reaches a threshold
	heaps [2]triggerHeap
	armed uint64 // how many ever were; orders equal thresholds
	// next is the lowest threshold of each heap, MaxUint64 without one. Written
	// under mu, read by threads that count; sequentially consistent.
	next [2]atomic.Uint64
}

// Arm waits for the counter to reach t's threshold; if it has, t fires before
// Arm returns. Triggers fire in the order of their thresholds, those of equal
// thresholds in the order in which they were armed.
func (c *Counter) Arm(t *Trigger) {
	c.triggers.mu.Lock()
	c.triggers.armed++
	t.order = c.triggers.armed
	heap.Push(c.triggers.of(t), t)
	c.publishTriggers()
	c.triggers.mu.Unlock()
	c.fire()
}

// Disarm takes a trigger back. It reports whether t was armed: then it has not
// fired and will not. When it returns, Fire is not running.
func (c *Counter) Disarm(t *Trigger) bool {
	c.triggers.mu.Lock()
	defer c.triggers.mu.Unlock()
	if t.at == 0 {
		return false
	}
	heap.Remove(c.triggers.of(t), t.at-1)
	c.publishTriggers()
	return true
}

// publishTriggers writes what threads that count read. The caller has triggers.mu.
func (c *Counter) publishTriggers() {
	waiting := false
	for i := range c.triggers.heaps {
		next := uint64(math.MaxUint64)
		if h := c.triggers.heaps[i]; len(h) != 0 {
			next, waiting = h[0].Threshold, true
		}
		c.triggers.next[i].Store(next)
	}
	if waiting {
		atomic.OrUint32(&c.hot.Flags, hot.CntrTriggers) // T0
	} else {
		atomic.AndUint32(&c.hot.Flags, ^uint32(hot.CntrTriggers))
	}
}

// fire fires what the counter has reached.
func (c *Counter) fire() {
	t := &c.triggers
	value, errors := c.values()
	if value < t.next[0].Load() && value+errors < t.next[1].Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		first := t.first(c.values())
		if first == nil {
			break
		}
		heap.Pop(t.of(first))
		first.Fire()
	}
	c.publishTriggers()
}

// first returns the next trigger to fire at these values, nil for none. The
// caller has t.mu.
func (t *triggers) first(value, errors uint64) (first *Trigger) {
	for i, reached := range [2]uint64{value, value + errors} {
		h := t.heaps[i]
		if len(h) != 0 && h[0].Threshold <= reached && (first == nil || h[0].before(first)) {
			first = h[0]
		}
	}
	return first
}

func (t *triggers) of(g *Trigger) *triggerHeap {
	if g.Total {
		return &t.heaps[1]
	}
	return &t.heaps[0]
}

func (t *Trigger) before(o *Trigger) bool {
	return t.Threshold < o.Threshold || t.Threshold == o.Threshold && t.order < o.order
}

// triggerHeap is a heap of container/heap.
type triggerHeap []*Trigger

func (h triggerHeap) Len() int           { return len(h) }
func (h triggerHeap) Less(i, j int) bool { return h[i].before(h[j]) }

func (h triggerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i+1, j+1
}

func (h *triggerHeap) Push(x any) {
	t := x.(*Trigger)
	*h = append(*h, t)
	t.at = len(*h)
}

func (h *triggerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.at = 0
	return t
}
