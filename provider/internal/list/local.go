package list

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Local memory of lists that goes by a device. Elements are often shorter than the pages that are registered, and more
// than registrations that are kept, so the device is given all local memory of a list at once, for as long as a post of
// it lasts, where that is not much more than the elements have.

// extent is memory from one address to before another, empty at first.
type extent struct{ first, end uint64 }

// add has the memory of a run be part of it.
func (s *extent) add(r *dataplane.Run) {
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

// known is a list's memory that a device knows until a post ends.
type known struct {
	registered rkey.Local
	asked      Device // nil: none was yet
}

// register has the device of a path know the list's memory, unless that is known or was in vain, and returns it. nil:
// elements are registered by themselves.
func (op *Op) register(over Path) *rkey.Local {
	l, access, device, m := op.list, hw.Access(0), over.Device(), &op.stream.memory
	if device == nil || m.asked != nil && m.asked != device {
		return nil
	}
	if m.asked == nil {
		m.asked = device
		n := l.host.end - l.host.first
		if op.sel.Len() == 1 || n == 0 || n > sparse*op.total || !l.of.cfg.TokenWays.RDMA {
			return nil
		}
		if op.args.Read {
			access = hw.LocalWrite
		}
		// Without room, or where the range is not whole, one by one.
		m.registered, _ = device.Use(l.host.first, n, access)
	}
	if m.registered.Memory() == nil {
		return nil
	}
	return &m.registered
}

// Unregister ends the registrations of posts that an endpoint which is closed leaves unfinished.
func (o *Posts) Unregister() {
	o.under.Each(func(op *Op) bool {
		op.unregister()
		return true
	})
}

// unregister ends that. No element is under way.
func (op *Op) unregister() {
	if m := &op.stream.memory; m.asked != nil {
		m.asked.Leave(&m.registered)
	}
}
