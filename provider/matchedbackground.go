package provider

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/matched"
)

// matchedBackground is a matched endpoint as a progress thread drives it. The thread does all that a reader of its
// queues would do: it takes in the device's events, gets the data of long messages that the device leaves to software,
// and takes part in flow control.
type matchedBackground struct{ e *MatchedEndpoint }

// matchedDriver is the progress thread that drives a matched endpoint.
type matchedDriver struct {
	node   int                // NUMA node of the device, -1: none; immutable from Enable on
	engine *matchedBackground // by which the thread drives the endpoint, nil: none does; under the endpoint's mu
	// thread is nil: none. Stored by Enable and Close, read by any thread; sequentially consistent.
	thread atomic.Pointer[progressThread]
}

// start gives an enabled endpoint to its progress thread, if the domain has threads.
func (d *matchedDriver) start(e *MatchedEndpoint) error {
	if !e.domain.threaded() {
		return nil
	}
	t, err := e.domain.joinMatched(d.node)
	if err != nil {
		return err
	}
	engine := &matchedBackground{e}
	if err := t.Add(engine); err != nil {
		e.domain.leaveThread(t)
		return err
	}
	d.engine = engine
	d.thread.Store(t)
	return nil
}

// stop takes it away. When it returns, no thread of weft's uses the endpoint.
func (d *matchedDriver) stop(of *Domain) {
	t := d.thread.Swap(nil)
	if t == nil {
		return
	}
	t.Remove(d.engine)
	of.leaveThread(t)
	d.engine = nil
}

func (b *matchedBackground) table() *hot.EP { return b.e.hot }

// DoorbellFD is the device's doorbell.
func (b *matchedBackground) DoorbellFD() int { return b.e.wakes.FD }

// Arm asks for it.
func (b *matchedBackground) Arm() { b.e.wakes.Listen() }

// Disarm takes that back.
func (b *matchedBackground) Disarm() { b.e.wakes.Unlisten() }

// HasWork reports whether Progress would find something: events, or commands whose doorbell was left to the next post.
func (b *matchedBackground) HasWork() bool { return b.e.wakes.HasWork() || b.transfer().Left() }

// Attention reports whether there is work that comes without an event.
func (b *matchedBackground) Attention() bool {
	return b.e.wakes.Attention != nil && b.e.wakes.Attention() ||
		b.e.hot.Transport != 0 && atomic.LoadUint32(&b.e.rx.Attention)&hot.AttentionGo != 0
}

// Progress does a batch of the work.
func (b *matchedBackground) Progress() (worked bool) {
	if l := b.e.leased.Take(); l != nil {
		worked = l.progress()
		b.e.leased.Give()
	}
	b.e.domain.work.PostReady()
	return worked
}

// Housekeeping shows the device's counters.
func (b *matchedBackground) Housekeeping() {
	if l := b.e.leased.Take(); l != nil {
		if !l.dead {
			l.sample(b.transfer())
		}
		b.e.leased.Give()
	}
}

// Reserved reports nothing: such endpoints are not reserved.
func (b *matchedBackground) Reserved() bool { return false }

// Polled reports whether the application makes progress by itself.
func (b *matchedBackground) Polled() bool {
	return atomic.SwapUint32(&b.e.hot.Polled, 0) >= hot.PolledEnough
}

// String describes the endpoint for the dump. Nothing that the lease protects is checked.
func (b *matchedBackground) String() string {
	rx := b.e.rx
	return fmt.Sprintf("endpoint %x of FI_PROTO_CXI: lease %d, attention %d, room for %d operations",
		b.transfer().Name(), atomic.LoadUint32(&rx.Lease), atomic.LoadUint32(&rx.Attention),
		b.transfer().Room())
}

// transfer is the endpoint's, which it has as long as a thread drives it.
func (b *matchedBackground) transfer() *matched.Endpoint { return b.e.transfer.Load() }
