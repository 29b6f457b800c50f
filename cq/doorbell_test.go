package cq

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// doorbell is an endpoint as far as waiting goes: messages arrive from a peer
// that rings a descriptor if it is armed, and progress turns them into
// completions.
type doorbell struct {
	source  Source
	inbound atomic.Int64
	armed   atomic.Uint32
	waiting atomic.Int64 // messages that come only with progress, unannounced
	rings   atomic.Int64
	q       *Queue
}

func newDoorbell(t testing.TB, q *Queue) *doorbell {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	d := &doorbell{q: q}
	d.source = Source{
		FD:        fd,
		Arm:       func() { drain(fd); d.armed.Store(1) },
		Disarm:    func() { d.armed.Store(0) },
		HasWork:   func() bool { return d.inbound.Load() > 0 },
		Attention: func() bool { return d.waiting.Load() > 0 },
		Progress:  d.progress,
	}
	return d
}

// deliver is what a peer in another process does.
func (d *doorbell) deliver() {
	d.inbound.Add(1)
	if d.armed.CompareAndSwap(1, 0) {
		d.rings.Add(1)
		unix.Write(d.source.FD, one)
	}
}

func (d *doorbell) progress() {
	if n := d.waiting.Load(); n > 0 && d.waiting.Add(-1) == 0 {
		d.inbound.Add(1)
	}
	for range d.inbound.Swap(0) {
		d.q.Complete(entry(1))
	}
}

// add adds the doorbell to a waiter until the test ends.
func (d *doorbell) add(t testing.TB, w *Waiter) {
	t.Helper()
	if err := w.AddSource(&d.source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.RemoveSource(&d.source); err != nil {
			t.Error(err)
		}
	})
}
