package matched

import (
	"errors"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
)

// RegionAttr describes memory that peers are to reach.
type RegionAttr struct {
	// Memory is the whole of it, registered with the device, nil: it has no bytes. The registration is the region's,
	// which ends it when the device has no entry of the region's any more.
	Memory hw.Memory
	Addr   uint64 // of its first byte, for completions
	Key    uint64 // at most Endpoint.MaxKey
	Access hw.Access
	// Choose has the device choose the key, which Region.Key is.
	Choose bool
	// Notify has writes with data complete at this endpoint.
	Notify  bool
	Context uint64 // in those completions
	// Events has peers say of their operations that they were performed, where the device chooses the key.
	Events bool
	// Written is called for each write and atomic operation of peers, nil: it is not. Lease.
	Written func(bytes uint64)
}

// Region is memory that peers reach.
type Region struct {
	e    *Endpoint
	attr RegionAttr
	own  []*entry // list entries
}

// entry is one entry of a region's at the device.
type entry struct {
	region  *Region
	id      hw.MatchID
	context uint64 // in events
	// open says that a command about it is posted whose answer has not been taken, withdrawing that the last one is to
	// take the entry away. The region's caller.
	open, withdrawing bool
	// answered says that the device has answered the last command about it, with err. Under entries.mu.
	answered bool
	err      error
}

// entries are the entries of all regions, by the context of their events.
type entries struct {
	mu   sync.Mutex // guards everything; control operations, and events of regions
	by   map[uint64]*entry
	last uint64 // context that was given out
}

func (n *entries) add(r *Region) *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[uint64]*entry{}
	}
	n.last++
	t := &entry{region: r, context: n.last}
	n.by[n.last] = t
	return t
}

func (n *entries) remove(t *entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by, t.context)
}

// at is the entry with a context, nil: there is none.
func (n *entries) at(context uint64) *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[context]
}

// answer takes in an answer of the device.
func (n *entries) answer(context uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.by[context]; t != nil {
		t.answered, t.err = true, err
	}
}

// ask forgets the last answer.
func (n *entries) ask(t *entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t.answered, t.err = false, nil
}

// answered reports whether there is an answer, and which.
func (n *entries) answered(t *entry) (ok bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return t.answered, t.err
}

// MaxKey is the greatest key of a region, 0 where the device has none.
func (e *Endpoint) MaxKey() uint64 {
	if e.memory == nil {
		return 0
	}
	return e.memory.MaxKey()
}

// Expose lets peers reach a region, and returns when they do. Errors: fi.ENOKEY for a key that a region of the endpoint
// has, fi.ENOSPC when the device has no room for it, fi.EINVAL, fi.EOPNOTSUPP where the device has no regions, and what
// Options.Await returns. A region beside an error is one that the device may have: its memory is registered until
// Close returns without an error. Without one the registration has ended.
func (e *Endpoint) Expose(a *RegionAttr) (*Region, error) {
	r := &Region{e: e, attr: *a}
	if e.memory == nil {
		return nil, errors.Join(log.Reject(log.EPData, fi.EOPNOTSUPP, "region: the device has none"), r.Close())
	}
	err := r.append(false)
	if err == nil && r.notifies() {
		err = r.append(true)
	}
	if err == nil {
		return r, nil
	}
	if late := r.Close(); late != nil {
		return r, errors.Join(err, late)
	}
	return nil, err
}

// Key is the region's key.
func (r *Region) Key() uint64 { return r.attr.Key }

// notifies reports whether the region takes writes with data.
func (r *Region) notifies() bool { return r.attr.Notify && r.attr.Access&hw.RemoteWrite != 0 }

// append gives the region an entry.
func (r *Region) append(notify bool) error {
	e := r.e
	t := e.regions.add(r)
	m := hw.MatchRegion{Memory: r.attr.Memory, Key: r.attr.Key, Access: r.attr.Access, Notify: notify,
		Context: t.context, Events: r.attr.Events || r.attr.Written != nil}
	if notify {
		m.Access = hw.RemoteWrite
	} else {
		m.Choose, m.Data = r.attr.Choose, r.notifies()
	}
	err := e.command(t, func() (err error) {
		t.id, err = e.memory.Expose(&m)
		return err
	})
	r.attr.Key = m.Key
	if err == nil || t.open {
		r.own = append(r.own, t)
	} else {
		e.regions.remove(t)
	}
	if err != nil {
		errno := Errno(err)
		if errors.Is(err, hw.ErrNoResource) {
			errno = fi.ENOSPC
		}
		return log.Reject(log.EPData, errno, "region with key %#x: %v", r.attr.Key, err)
	}
	return nil
}

// command posts a command about an entry, once there is room, and waits for its answer: t.open says afterwards that it
// is posted and the answer has not come.
func (e *Endpoint) command(t *entry, post func() error) error {
	e.regions.ask(t)
	var err error
	if late := e.o.Await(func() bool {
		err = post()
		return !errors.Is(err, hw.ErrNoResource)
	}); late != nil || err != nil {
		return errors.Join(err, late)
	}
	t.open = true
	return e.await(t)
}

// await waits for the answer to a command.
func (e *Endpoint) await(t *entry) (err error) {
	if late := e.o.Await(func() (ok bool) {
		ok, err = e.regions.answered(t)
		return ok
	}); late != nil {
		return late
	}
	t.open = false
	return err
}

// takeAway has the device give up an entry, of which a command may be open.
func (e *Endpoint) takeAway(t *entry) error {
	if t.open {
		err := e.await(t)
		if t.open {
			return err
		}
		if gone := (err == nil) == t.withdrawing; gone {
			return nil
		}
	}
	t.withdrawing = true
	return e.command(t, func() error { return e.memory.Withdraw(t.id) })
}

// Close ends the region: when it returns without an error no peer is at the memory, and its registration has ended.
// Errors: those of the device and of Options.Await; peers may reach the region still, and the memory stays registered.
func (r *Region) Close() error {
	for len(r.own) > 0 {
		t := r.own[len(r.own)-1]
		if err := r.e.takeAway(t); err != nil {
			log.Warnf(log.MR, "close region with key %#x: %v; the device may reach its memory, which stays registered",
				r.attr.Key, err)
			return Errno(err)
		}
		r.e.regions.remove(t)
		r.own = r.own[:len(r.own)-1]
	}
	if r.attr.Memory == nil {
		return nil
	}
	err := r.attr.Memory.Close()
	r.attr.Memory = nil
	return err
}

// regionEvent takes in an event of a region. Lease.
func (e *Endpoint) regionEvent(ev *hw.MatchEvent) {
	if ev.Kind != hw.MatchWritten {
		e.regions.answer(ev.Context, ev.Err)
		return
	}
	t := e.regions.at(ev.Context)
	if t == nil || e.closing.Load() {
		return
	}
	a := &t.region.attr
	if a.Written != nil {
		a.Written(ev.Length)
	}
	if !ev.HasData {
		return
	}
	e.ended = Ended{Completion: Completion{Bytes: ev.Length}}
	c := &e.ended.Entry
	c.Flags, c.Data = fi.RMA|fi.RemoteWrite|fi.RemoteCQData, ev.Data
	c.Context, c.Len, c.Buf = a.Context, ev.Length, a.Addr+ev.Offset
	e.sender(ev.From)
	e.o.Ended(&e.ended)
}
