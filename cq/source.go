package cq

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// Source is where a queue's or counter's arrivals come from: an endpoint, as
// reading and sleeping threads see it. Its fields are immutable once it is added; the same
// Source may be added to several queues. The functions may be called by any
// thread, by several at once, and after RemoveSource by threads that have begun
// before.
type Source struct {
	// FD becomes readable when a peer rings; -1 if peers cannot.
	FD int
	// Arm drains FD and asks peers to ring, with a full fence behind (W0): a
	// message that HasWork does not see afterwards rings. nil if FD is -1.
	Arm func()
	// Disarm lets peers see that no thread sleeps any more. It may be nil.
	Disarm func()
	// HasWork reports whether Progress would find something now, such as a
	// message in the inbound ring.
	HasWork func() bool
	// Attention reports whether there is work that no peer rings for, such as sends
	// that wait for room at a peer. Sleepers poll again every millisecond then.
	// It may be nil.
	Attention func() bool
	// Progress handles one batch, unless another thread does.
	Progress func()
	// Timers does what only time asks for, such as finding out whether peers are alive,
	// unless another thread does. Sleepers call it about once a second. nil: another thread does.
	Timers func()

	mu    sync.Mutex // taken before sleep and after it only
	armed int        // waiters that have armed it; under mu
}

// arm asks for the doorbell; fresh says that this waiter has not done so yet.
func (s *Source) arm(fresh bool) {
	if s.FD < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fresh {
		s.armed++
	}
	s.Arm()
}

// disarm takes back what a waiter armed.
func (s *Source) disarm() {
	if s.FD < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed--; s.armed == 0 && s.Disarm != nil {
		s.Disarm()
	}
}

// Listen asks for the doorbell on behalf of a sleeper outside this package,
// which reads HasWork afterwards. Each call is taken back by one Unlisten.
func (s *Source) Listen() { s.arm(true) }

// Unlisten takes back one Listen.
func (s *Source) Unlisten() { s.disarm() }

// sources is the list of a queue's sources. Readers load the slice, which is
// replaced as a whole. mu is not on the data path: it is taken when endpoints
// come and go.
type sources struct {
	mu sync.Mutex
	// list is stored under mu, and loaded by any thread; sequentially consistent.
	list atomic.Pointer[[]*Source]
	uses map[*Source]int
}

func (s *sources) all() []*Source {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

// add reports whether the source is new.
func (s *sources) add(src *Source) (bool, error) {
	if src.HasWork == nil || src.Progress == nil || src.FD >= 0 && src.Arm == nil {
		return false, fmt.Errorf("source without its functions: %w", fi.EINVAL)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil {
		s.uses = map[*Source]int{}
	}
	if s.uses[src]++; s.uses[src] > 1 {
		return false, nil
	}
	list := append(slices.Clone(s.all()), src)
	s.list.Store(&list)
	return true, nil
}

// remove reports whether that was the last use.
func (s *sources) remove(src *Source) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[src] == 0 {
		return false, fmt.Errorf("remove a source that was not added: %w", fi.EINVAL)
	}
	if s.uses[src]--; s.uses[src] > 0 {
		return false, nil
	}
	delete(s.uses, src)
	list := slices.DeleteFunc(slices.Clone(s.all()), func(o *Source) bool { return o == src })
	s.list.Store(&list)
	return true, nil
}

// progress lets every source that has work do a batch, and reports whether any
// had.
func (s *sources) progress() (worked bool) {
	for _, src := range s.all() {
		if src.HasWork() || src.attention() {
			src.Progress()
			worked = true
		}
	}
	return worked
}

func (s *sources) hasWork() bool {
	for _, src := range s.all() {
		if src.HasWork() {
			return true
		}
	}
	return false
}

func (s *sources) attention() bool {
	for _, src := range s.all() {
		if src.attention() {
			return true
		}
	}
	return false
}

// timed reports whether a source leaves its timers to the sleeper.
func (s *sources) timed() bool {
	return slices.ContainsFunc(s.all(), func(src *Source) bool { return src.Timers != nil })
}

func (s *sources) timers() {
	for _, src := range s.all() {
		if src.Timers != nil {
			src.Timers()
		}
	}
}

func (s *Source) attention() bool { return s.Attention != nil && s.Attention() }
