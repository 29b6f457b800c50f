package flushes

import (
	"errors"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// op is a flush that passes when the test says so.
type op struct {
	passed bool
	err    error
}

func (o *op) Passed() bool { return o.passed }
func (o *op) Err() error   { return o.err }

// result is a completion and what it was given, in the order of the calls.
type result struct {
	hw.Completion
	errs []error
}

func newResult() *result {
	r := &result{}
	r.Func = func(c *hw.Completion) { r.errs = append(r.errs, c.Err()) }
	r.Expect(1)
	return r
}

// A flush ends once, with its own error, when it has passed, whatever was added before it.
func TestComplete(t *testing.T) {
	var l List
	gone := errors.New("the peer is gone")
	ops := []*op{{}, {passed: true}, {}, {passed: true, err: gone}}
	results := make([]*result, len(ops))
	for n, o := range ops {
		results[n] = newResult()
		l.Add(o, &results[n].Completion)
	}
	l.Add(&op{passed: true}, nil)
	if got := l.Complete(); got != 3 {
		t.Errorf("Complete() = %d, 3 had passed", got)
	}
	if len(results[0].errs)+len(results[2].errs) != 0 {
		t.Error("a flush ended before what it waits for")
	}
	if len(results[1].errs) != 1 || results[1].errs[0] != nil {
		t.Errorf("the second flush ended with %v", results[1].errs)
	}
	if len(results[3].errs) != 1 || !errors.Is(results[3].errs[0], gone) {
		t.Errorf("the last flush ended with %v, its peer is gone", results[3].errs)
	}
	if !l.Any() {
		t.Error("Any() = false with two flushes under way")
	}
	ops[0].passed, ops[2].passed = true, true
	if got := l.Complete(); got != 2 || l.Any() {
		t.Errorf("Complete() = %d, Any() = %v; the other two had passed", got, l.Any())
	}
}

// Cancel ends all with its error, and none of them a second time.
func TestCancel(t *testing.T) {
	var l List
	closed := errors.New("closed")
	r := newResult()
	l.Add(&op{passed: true}, &r.Completion)
	l.Add(&op{}, nil)
	l.Cancel(closed)
	if n := l.Complete(); n != 0 || l.Any() {
		t.Errorf("Complete() = %d after Cancel, Any() = %v", n, l.Any())
	}
	if len(r.errs) != 1 || !errors.Is(r.errs[0], closed) {
		t.Errorf("the flush ended with %v", r.errs)
	}
}

// Flushes are added by any thread while another ends them: each ends once.
func TestAddBesideComplete(t *testing.T) {
	const threads, each = 4, 500
	var l List
	var ended int
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			for range each {
				l.Add(&op{passed: true}, nil)
			}
		})
	}
	for ended < threads*each {
		ended += l.Complete()
	}
	wg.Wait()
	if l.Complete() != 0 || l.Any() {
		t.Error("more flushes ended than were added")
	}
}
