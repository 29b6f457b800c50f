package list

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Local memory of lists that goes by a device. Elements are often shorter than the pages that are registered, and more
// than registrations that are kept, so the device is given all local memory of a list at once, where that is not much
// more than the elements have, and than posts have moved by now.

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

// sparse is how much longer than its elements, and than what was moved of them, a list's memory may be for it to be
// registered as a whole.
const sparse = 4

// A registration stays with the list for later posts, which then take no lock of a cache, as long as it stands for the
// memory: that is not unmapped before the list is closed, and other changes the device's cache sees (Device.Still).
// What was a change of other memory another Use finds out. A device without room for other memory has lists end their
// use (Device.Keep), also of lists that are not posted.

// registration is a list's memory as a device knows it, which posts share.
type registration struct {
	local  rkey.Local // until its end
	device Device     // immutable
	access hw.Access  // immutable
	// users are the posts that use it, and the list while it keeps it (List.known). Added to by posts as long as it is
	// not 0 (R0), taken off by any thread, the last of which ends the registration (R1); sequentially consistent.
	users atomic.Int64
}

// fits reports whether it is this device's, with at least these rights. nil is no registration.
func (r *registration) fits(device Device, access hw.Access) bool {
	return r != nil && r.device == device && r.access&access == access
}

// use counts a post as a user, if the device knows the memory as it is. nil is no registration.
func (r *registration) use() bool {
	if r == nil {
		return false
	}
	for n := r.users.Load(); n != 0; n = r.users.Load() {
		if !r.users.CompareAndSwap(n, n+1) { // R0
			continue
		}
		still := r.device.Still(&r.local)
		if !still {
			r.leave()
		}
		return still
	}
	return false
}

// leave takes a user off. nil is no registration.
func (r *registration) leave() {
	if r != nil && r.users.Add(-1) == 0 { // R1
		r.device.Leave(&r.local)
	}
}

// keep has later posts use a registration, which has the caller as its user, instead of the list's former one, as long
// as the device has room for other memory.
func (l *List) keep(r *registration) {
	r.device.Keep(&r.local, func() { l.unkeep(r) })
	r.users.Add(1)
	former := l.known.Load()
	if !l.known.CompareAndSwap(former, r) { // R2
		r.leave()
		return
	}
	former.leave()
	if l.closed.Load() { // R3
		l.forget()
	}
}

// unkeep ends the list's use of a registration, if it keeps it. nil is no registration.
func (l *List) unkeep(r *registration) {
	if r != nil && l.known.CompareAndSwap(r, nil) { // R5
		r.leave()
	}
}

// forget ends the list's use of what it keeps.
func (l *List) forget() { l.known.Swap(nil).leave() } // R4

// registered returns a registration of the list's memory for a post by a device, with the post as a user. nil: elements
// are registered by themselves.
func (l *List) registered(op *Op, device Device, access hw.Access) *registration {
	if !l.of.cfg.TokenWays.RDMA {
		return nil
	}
	former := l.known.Load()
	fits := former.fits(device, access)
	switch used := former.use(); {
	case used && fits:
		return former
	case used:
		former.leave()
	default: // its pages may be others' by now
		l.unkeep(former)
	}
	n := l.host.end - l.host.first
	if moved := l.moved.Add(op.total); n == 0 || !fits && n > sparse*min(moved, l.shape.Bytes) {
		return nil
	}
	l.moved.Store(0)
	local, err := device.Use(l.host.first, n, access)
	if err != nil { // without room, or where the range is not whole: one by one, until as much is moved again
		return nil
	}
	r := &registration{local: local, device: device, access: access}
	r.users.Store(1)
	if device.Still(&r.local) {
		l.keep(r)
	}
	return r
}

// known is a list's memory that a device knows until a post ends.
type known struct {
	used  *registration // nil: there is none
	asked Device        // nil: none was yet
}

// register has the device of a path know the list's memory, unless that is known or was in vain, and returns it. nil:
// elements are registered by themselves.
func (op *Op) register(over Path) *rkey.Local {
	device, m := over.Device(), &op.stream.memory
	if device == nil || m.asked != nil && m.asked != device {
		return nil
	}
	if m.asked == nil {
		access := hw.Access(0)
		if op.args.Read {
			access = hw.LocalWrite
		}
		m.asked, m.used = device, op.list.registered(op, device, access)
	}
	if m.used == nil {
		return nil
	}
	return &m.used.local
}

// Unregister ends the registrations of posts that an endpoint which is closed leaves under way.
func (o *Posts) Unregister() {
	o.under.Each(func(op *Op) bool {
		op.unregister()
		return true
	})
}

// unregister ends that. No element is under way.
func (op *Op) unregister() {
	op.stream.memory.used.leave()
	op.stream.memory.used = nil
}
