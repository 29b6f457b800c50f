package weft

import (
	"context"
	"iter"
)

// Completion is an operation in completion form that has ended.
type Completion struct {
	Op    Op
	Value any    // what the operation was started with
	Buf   []byte // what was received, read, written or sent
	Peer  Peer   // of a receive the sender, as in Message; else the peer that was named
	Tag   uint64 // of a receive
}

// Completions yields what was started with StartSend, StartRecv, StartRead and StartWrite and has completed, in the
// order in which it completes, each once, among all that range over it. It waits for the next as long as ctx lasts. The
// error is the operation's, an [Error]; then Op is not 0 and the loop goes on. When ctx ends or the endpoint is closed,
// a zero Completion with the reason is the last.
func (e *Endpoint) Completions(ctx context.Context) iter.Seq2[Completion, error] {
	return func(yield func(Completion, error) bool) {
		for {
			c, err := e.next(ctx)
			if !yield(c, err) || c.Op == 0 {
				return
			}
		}
	}
}

// Poll makes progress and returns a completion if there is one, without waiting. The error is the operation's, or
// [net.ErrClosed].
func (e *Endpoint) Poll() (c Completion, ok bool, err error) {
	if err := e.enter(); err != nil {
		return Completion{}, false, err
	}
	defer e.leave()
	if c, ok, err = e.pop(); ok {
		return c, ok, err
	}
	e.poll()
	return e.pop()
}

// next waits for a completion.
func (e *Endpoint) next(ctx context.Context) (Completion, error) {
	if err := e.enter(); err != nil {
		return Completion{}, err
	}
	var s spinner
	for {
		if c, ok, err := e.pop(); ok {
			e.leave()
			return c, err
		}
		again, err := s.poll(ctx, e)
		if err == nil && !again {
			err = e.parkReader(ctx)
		}
		if err != nil {
			return Completion{}, e.result(err)
		}
	}
}

// parkReader waits until there may be a completion.
func (e *Endpoint) parkReader(ctx context.Context) error {
	f := &e.ended
	f.waiters.Add(1)
	defer f.waiters.Add(-1)
	some := func() bool { return f.len.Load() != 0 }
	if some() {
		return nil
	}
	return e.park(ctx, f.ready, some)
}
