package cxi

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// closeWait bounds how long Close waits for what was posted to arrive, and then for the NIC to answer for it.
const closeWait = 200 * time.Millisecond

// Close notifies the peers and gives everything back. What was posted gets a fifth
// of a second to arrive. The caller has stopped all threads that use the
// interface.
func (i *Iface) Close() error {
	if i.closed.Load() {
		return nil
	}
	i.drain(func(e *Endpoint) bool { return e.w.head == e.w.tail && e.ops.count == 0 })
	for _, e := range *i.peers.Load() {
		if e != nil && e.failure.Load() == nil {
			e.q.take()
			if e.ready.Load() {
				e.control(kindBye, 0, nil)
			}
			e.q.give()
		}
	}
	i.drain(func(e *Endpoint) bool { return e.w.head == e.w.tail && e.ops.count == 0 })
	if i.match != nil {
		i.match.drain()
	}
	if i.closed.Swap(true) {
		return nil
	}
	canceled := fmt.Errorf("cxi: interface closed: %w", hw.ErrCanceled)
	for _, e := range *i.peers.Load() {
		if e != nil {
			e.failure.CompareAndSwap(nil, &canceled)
		}
	}
	// Nothing is sent again now. The NIC may be at the memory of what is on its way.
	i.drain(func(e *Endpoint) bool { return e.w.inflight == 0 && e.ops.count == 0 })
	i.named.drain()
	i.discard(canceled)
	if i.match != nil {
		i.match.cancel(canceled)
	}
	i.flushes.Cancel(canceled)
	return i.release()
}

// drain takes in what ends until there is nothing to wait for over any path that works, but not for long. Arrivals are
// left alone.
func (i *Iface) drain(quiet func(*Endpoint) bool) {
	for end := time.Now().Add(closeWait); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		all := true
		now := time.Now()
		for _, e := range *i.peers.Load() {
			if e == nil {
				continue
			}
			e.q.take()
			e.q.poll()
			e.resend(now)
			failed := e.failure.Load() != nil && !i.closed.Load()
			all = all && (failed || quiet(e))
			e.q.give()
		}
		i.pollAll()
		if all {
			return
		}
	}
}

// discard ends everything that waits.
func (i *Iface) discard(err error) {
	for _, e := range *i.peers.Load() {
		if e == nil {
			continue
		}
		e.q.take()
		e.cancel()
		e.q.give()
	}
	for _, q := range i.tx {
		q.take()
		for n := range q.ops {
			if o := &q.ops[n]; o.e != nil && o.comp != nil {
				q.complete(ended{comp: o.comp, err: err})
				o.comp = nil
			}
		}
		q.give()
	}
	i.pollAll()
}
