package proxy

import (
	"slices"
	"sync"
	"time"
)

// tick is something that the service does from time to time.
type tick struct {
	mu   sync.Mutex // taken while f runs; its stop waits for it. Not on a data path.
	f    func() time.Duration
	over bool
	at   time.Time // the loop's, after it was added
}

// Tick has the service call f on its thread, soon and then after what f
// returns, at least a millisecond. f must not hold the thread up. After stop has
// returned f is not called any more; f must not call it. The service may end
// before.
func (s *Service) Tick(f func() time.Duration) (stop func()) {
	t := &tick{f: f, at: time.Now()}
	s.mu.Lock()
	s.ticks = append(s.ticks, t)
	if !s.ended {
		s.raise()
	}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.ticks = slices.DeleteFunc(s.ticks, func(o *tick) bool { return o == t })
		s.mu.Unlock()
		t.mu.Lock()
		t.over = true
		t.mu.Unlock()
	}
}

// tick does what is due and returns the milliseconds until the next, -1 for
// never.
func (s *Service) tick() int {
	s.mu.Lock()
	list := slices.Clone(s.ticks)
	s.mu.Unlock()
	if len(list) == 0 {
		return -1
	}
	next := time.Hour
	for _, t := range list {
		if d := time.Until(t.at); d > 0 {
			next = min(next, d)
			continue
		}
		t.mu.Lock()
		if !t.over {
			d := max(t.f(), time.Millisecond)
			t.at = time.Now().Add(d)
			next = min(next, d)
		}
		t.mu.Unlock()
	}
	return int((next + time.Millisecond - 1) / time.Millisecond)
}
