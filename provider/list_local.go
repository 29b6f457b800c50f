package provider

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/rkey"
)

// Local memory of lists that goes by a device. Elements are often shorter than the pages that are registered, and more
// than registrations that are kept, so the device is given all local memory of a list at once, for as long as a post of
// it lasts, where that is not much more than the elements have.

// listExtent is memory from one address to before another, empty at first.
type listExtent struct{ first, end uint64 }

// add has the memory of a run be part of it.
func (s *listExtent) add(r *dataplane.Run) {
	if r.Len == 0 {
		return
	}
	if s.end == 0 || r.Local < s.first {
		s.first = r.Local
	}
	s.end = max(s.end, r.Local+uint64(r.Count-1)*r.Here+r.Len)
}

// sparse is how much longer than its elements a list's memory may be for it to be registered as a whole.
const sparse = 4

// register has the device of a path know the list's memory, unless that is known or was in vain, and returns it. nil:
// elements are registered by themselves.
func (op *listOp) register(p *path) *rkey.Local {
	l, access := op.list, hw.Access(0)
	if p.keys == nil || op.asked != nil && op.asked != p.port {
		return nil
	}
	if op.asked == nil {
		op.asked = p.port
		n := l.host.end - l.host.first
		if op.sel.Len() == 1 || n == 0 || n > sparse*op.total || !op.list.ep.domain.cfg.TokenWays.RDMA {
			return nil
		}
		if op.args.Read {
			access = hw.LocalWrite
		}
		// Without room, or where the range is not whole, one by one.
		op.registered, _ = p.port.device().Use(l.host.first, n, access)
	}
	if op.registered.Memory() == nil {
		return nil
	}
	return &op.registered
}

// unregister ends the registrations of posts that an endpoint which is closed leaves unfinished.
func (o *listOps) unregister() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.slots {
		if op != nil {
			op.unregister()
		}
	}
}

// unregister ends that. No element is under way.
func (op *listOp) unregister() {
	if op.asked != nil {
		op.asked.device().Leave(&op.registered)
	}
}
