package cq

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// Polled is a queue or counter in a [PollSet].
type Polled interface {
	Retain()
	Release()
	progress()
	changed() bool
}

// PollSet polls several queues and counters at once (fi_poll_open(3)). mu is not
// on the data path of its members: only calls to the set take it.
type PollSet struct {
	mu      sync.Mutex
	members []polled
	next    int // index of the member that the next poll begins with
}

type polled struct {
	object  Polled
	context uint64
}

// OpenPollSet opens a set. EINVAL: there are flags.
func OpenPollSet(attr *fi.PollAttr) (*PollSet, error) {
	if attr != nil && attr.Flags != 0 {
		return nil, fmt.Errorf("poll set flags %#x: %w", attr.Flags, fi.EINVAL)
	}
	return &PollSet{}, nil
}

// Add adds a [Queue] or [Counter], which [PollSet.Poll] names by context. Adding
// one twice changes nothing.
func (p *PollSet) Add(o Polled, context uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index(o) < 0 {
		o.Retain()
		p.members = append(p.members, polled{o, context})
	}
	return nil
}

// Remove removes a member. EINVAL: it is none.
func (p *PollSet) Remove(o Polled) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.index(o)
	if i < 0 {
		return fmt.Errorf("not in the poll set: %w", fi.EINVAL)
	}
	o.Release()
	p.members = slices.Delete(p.members, i, i+1)
	return nil
}

func (p *PollSet) index(o Polled) int {
	return slices.IndexFunc(p.members, func(m polled) bool { return m.object == o })
}

// Poll makes progress for all members, stores the contexts of those that may
// have something to read, and returns how many there are; at most len(contexts),
// each in turn.
func (p *PollSet) Poll(contexts []uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		m.object.progress()
	}
	n := 0
	for range p.members {
		if n == len(contexts) {
			break
		}
		p.next = (p.next + 1) % len(p.members)
		if m := p.members[p.next]; m.object.changed() {
			contexts[n] = m.context
			n++
		}
	}
	return n
}

// Close removes all members.
func (p *PollSet) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		m.object.Release()
	}
	p.members = nil
	return nil
}

func (q *Queue) progress() { q.wait.Progress() }

// changed reports whether a read would return something.
func (q *Queue) changed() bool {
	for i := range q.rings {
		if q.rings[i].read.Readable() {
			return true
		}
	}
	return atomic.LoadUint64(&q.hot.Overflow) != 0
}
