// Package flushes keeps the flushes of an interface that are under way, until progress finds that they have ended.
package flushes

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
)

// Flush is one of them.
type Flush interface {
	// Passed reports whether everything before it has ended.
	Passed() bool
	// Err is what its completion gets then: nil, or why the peer that it was for has gone.
	Err() error
}

// List is those of one interface. The zero value is empty.
type List struct {
	// count is the length of list. Stored under mu, read by every progress.
	count atomic.Uint32
	mu    sync.Mutex // flushes only
	list  []waiting
}

type waiting struct {
	Flush
	c *hw.Completion // nil: none
}

// Add has [List.Complete] update c when f has passed. Any thread.
func (l *List) Add(f Flush, c *hw.Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, waiting{f, c})
	l.count.Store(uint32(len(l.list)))
}

// Any reports whether there are any. Any thread.
func (l *List) Any() bool { return l.count.Load() != 0 }

// Count is the number of flushes under way, for threads that poll often: to be read only.
func (l *List) Count() *atomic.Uint32 { return &l.count }

// Complete updates the completions of the flushes that have passed and returns how many these are. It costs a load if
// there are none under way. The caller holds the progress lease.
func (l *List) Complete() int {
	if !l.Any() {
		return 0
	}
	var done []waiting
	l.mu.Lock()
	kept := l.list[:0]
	for _, f := range l.list {
		if f.Passed() {
			done = append(done, f)
		} else {
			kept = append(kept, f)
		}
	}
	clear(l.list[len(kept):])
	l.list = kept
	l.count.Store(uint32(len(kept)))
	l.mu.Unlock()
	for _, f := range done {
		if f.c != nil {
			f.c.Update(1, f.Err())
		}
	}
	return len(done)
}

// Cancel ends all of them with an error.
func (l *List) Cancel(err error) {
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.count.Store(0)
	l.mu.Unlock()
	for _, f := range list {
		if f.c != nil {
			f.c.Update(1, err)
		}
	}
}
