package verbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/internal/doorbell"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// The doorbell (hw.Waiter): Arm, then Pending; if that is false, sleep on DoorbellFD; then Disarm.

// EnableWait makes the doorbell, once: the device rings by the completion channel, other threads ring for the lease
// holder. Errors are of the kernel (EMFILE, ENOMEM).
func (i *Iface) EnableWait() error {
	if i.closed.Load() {
		return errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.bell.Enable(doorbell.Source{FD: i.channel.FD, Events: unix.EPOLLIN}); err != nil {
		return fmt.Errorf("verbs: %w", err)
	}
	return nil
}

// DoorbellFD becomes readable when there is something to do between Arm and Disarm. -1 before EnableWait.
func (i *Iface) DoorbellFD() int { return i.bell.FD() }

// Arm has the device ring with the next completion of each queue.
func (i *Iface) Arm() {
	for _, q := range i.rx.cqs {
		if err := q.Arm(); err != nil {
			i.logf("%v", err)
		}
	}
}

// Pending reports whether Progress would find something. It polls the completion queues for the lease holder, which
// finds the completions staged. True also where it cannot poll, because another thread does or has polled completions
// left: what comes behind those and before Arm does not ring.
func (i *Iface) Pending() bool {
	if i.closed.Load() {
		return false
	}
	polled, p := i.rx.poll(), i.rx.transport
	return !polled || p.Staged() != 0 || i.anyTodo.Load() || i.signalsDue.Load() ||
		p.Calls.Load()&transport.CallPost != 0
}

// Disarm empties the doorbell.
func (i *Iface) Disarm() {
	i.channel.Drain()
	i.bell.Drain()
}
