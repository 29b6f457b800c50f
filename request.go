package weft

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// States of a request in blocking form. The call changes waiting to parked before it sleeps and to abandoned when it
// returns without the completion; dispatch of the completion changes any of them to done.
const (
	waiting uint32 = iota
	parked
	abandoned
	done
)

// request is an operation from its post to its completion. The completion carries its number. Between post and
// completion its fields belong to the goroutine that posted it, then to the one that dispatches the completion, then to
// the one that waits for it or reads it.
type request struct {
	number  uint32 // its place in the table; immutable
	op      Op
	started bool        // in completion form
	iov     [1]fi.IOVec // describes buf
	remote  [1]fi.RMAIOVec
	buf     []byte // keeps the memory reachable
	context any    // of the completion form
	peer    Peer   // as named by the caller

	state atomic.Uint32 // blocking form; writers: see the constants; seq_cst
	wake  chan struct{} // one token when a parked request is done

	// The result.
	from Peer
	tag  uint64
	n    int
	err  error
}

// table holds the requests. Those in use are found by number without a lock.
type table struct {
	all  atomic.Pointer[[]*request] // replaced under mu when it grows
	most int                        // requests at most; immutable

	mu   sync.Mutex
	free []*request // under mu
}

// get takes a request; nil when all are in use.
func (t *table) get(op Op, peer Peer, b []byte) *request {
	t.mu.Lock()
	if len(t.free) == 0 && !t.grow() {
		t.mu.Unlock()
		return nil
	}
	last := len(t.free) - 1
	r := t.free[last]
	t.free = t.free[:last]
	t.mu.Unlock()
	r.op, r.peer, r.buf, r.started = op, peer, b, false
	r.iov[0] = vector(b)
	r.state.Store(waiting)
	return r
}

// put gives a request back.
func (t *table) put(r *request) {
	r.buf, r.context, r.err = nil, nil, nil
	t.mu.Lock()
	t.free = append(t.free, r)
	t.mu.Unlock()
}

// grow makes more requests, as many as there are, and reports whether there are any. The caller has mu.
func (t *table) grow() bool {
	var old []*request
	if p := t.all.Load(); p != nil {
		old = *p
	}
	more := min(max(16, len(old)), t.most-len(old))
	if more <= 0 {
		return false
	}
	all := make([]*request, 0, len(old)+more)
	all = append(all, old...)
	for range more {
		r := &request{number: uint32(len(all)), wake: make(chan struct{}, 1)}
		all = append(all, r)
		t.free = append(t.free, r)
	}
	t.all.Store(&all)
	return true
}

// at returns the request that a completion names.
func (t *table) at(number uint64) *request { return (*t.all.Load())[number] }

// fifo holds requests in completion form whose completions were not read. ready has a token when there may be some. The
// lists are under the table's mu, so that reading a completion and giving its request back take it once.
type fifo struct {
	ready chan struct{}
	list  []*request // from next on
	next  int
	len   atomic.Int64 // written under mu, read by all
	// waiters are the readers that wait for ready, or are about to. A reader counts itself before it reads len a
	// last time, and push reads it after it has changed len; both seq_cst, so one of the two sees the other.
	waiters atomic.Int32
}

// push appends a request that is done.
func (e *Endpoint) push(r *request) {
	f := &e.ended
	e.requests.mu.Lock()
	if f.next == len(f.list) {
		f.list, f.next = f.list[:0], 0
	}
	f.list = append(f.list, r)
	f.len.Add(1)
	e.requests.mu.Unlock()
	f.wake()
}

// pop takes the oldest completion and gives its request back. It reports whether there was one.
func (e *Endpoint) pop() (c Completion, ok bool, err error) {
	f, t := &e.ended, &e.requests
	if f.len.Load() == 0 {
		return Completion{}, false, nil
	}
	t.mu.Lock()
	if f.next == len(f.list) {
		t.mu.Unlock()
		return Completion{}, false, nil
	}
	r := f.list[f.next]
	f.list[f.next] = nil
	f.next++
	if f.next >= compactAt && f.next*2 >= len(f.list) {
		f.list, f.next = append(f.list[:0], f.list[f.next:]...), 0
	}
	left := f.len.Add(-1)
	c = Completion{Op: r.op, Value: r.context, Buf: r.buf[:min(r.n, len(r.buf))], Peer: r.peer, Tag: r.tag}
	if r.op == OpRecv {
		c.Peer = r.from
	}
	if r.err != nil {
		err = r.failure()
	}
	r.buf, r.context, r.err = nil, nil, nil
	t.free = append(t.free, r)
	t.mu.Unlock()
	if left > 0 {
		f.wake() // for another reader
	}
	return c, true, err
}

// compactAt is from how many places that were read on a list is moved to its start.
const compactAt = 1024

// wake leaves a token in ready if a reader may wait for it.
func (f *fifo) wake() {
	if f.waiters.Load() == 0 {
		return
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}
