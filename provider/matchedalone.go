package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Matched endpoints of which one thread at a time makes data transfer calls: that thread enters a gate, and takes
// neither leases nor locks inside (hot.Gate). A control operation that uses what these guard shares the gate
// meanwhile, as it may come from any thread.

// openGate makes the gate of all matched endpoints of the domain, with FI_THREAD_DOMAIN.
func (d *Domain) openGate() {
	if d.Matches() && d.threading() == fi.ThreadDomain && d.gated() {
		d.gate = new(hot.Gate)
	}
}

// gated reports whether matched endpoints of the domain have gates. With FI_TRIGGER they have not: what a counter
// triggers is posted by the thread that advances it, which may be one that makes a control operation. Nor have they
// where the kernel has no barrier for all threads.
func (d *Domain) gated() bool {
	alone, _ := d.exclusive()
	return alone && d.info.Caps&fi.Trigger == 0 && order.Barriers()
}

// gateFor is the gate of a new endpoint with capabilities, nil: several threads use it.
func (d *Domain) gateFor(caps uint64) *hot.Gate {
	switch {
	case !d.gated() || caps&fi.Trigger != 0 || !d.exclusiveTo(caps):
		return nil
	case d.gate != nil:
		return d.gate
	}
	return new(hot.Gate) // of FI_THREAD_COMPLETION: another endpoint may be another thread's
}
