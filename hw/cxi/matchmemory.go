package cxi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Memory that peers read and write by a key. A region is an entry of a list: of one at indices of its own, without
// matching, or of the one that regions share with control messages. transfer.go has reads and writes of theirs.

// Ids of entries whose events come to the queue of control messages.
const (
	idControl   = 1
	firstRegion = 2
	// maxAsked is how many commands about regions may wait for their answer: each has an event or two, for which
	// the queue has room.
	maxAsked = 64
	// maxRegions is how many regions there may be.
	maxRegions = 1 << 15
)

// regionState is how far a region is.
type regionState uint8

const (
	regionNone      regionState = iota
	regionAppended              // the NIC has not answered yet
	regionExposed               // peers reach it
	regionWithdrawn             // the NIC has not answered yet
)

// region is memory that peers reach. Under the receiver's lock.
type region struct {
	state   regionState
	name    regionName
	context uint64
	entry   nic.Entry
	slot    uint32        // of the command that waits for its answer
	own     *libcxi.PtlTE // nil: the shared list
}

// regionName is what no two regions have in common.
type regionName struct {
	key    uint64
	notify bool
}

// keys are the keys that are chosen. Under the receiver's lock.
type keys struct {
	taken    [2]int   // ids that were given out so far, of regions that share lists and of those with their own
	free     [2][]int // of them, those that no region has
	sequence uint64
}

// choose gives out a key, with an index of its own if own. False: there is none of the kind.
func (k *keys) choose(own, events bool) (key uint64, ok bool) {
	kind, most := 0, proto.ChosenIDs-proto.OwnIDs
	if own {
		kind, most = 1, proto.OwnIDs
	}
	var id int
	switch free := k.free[kind]; {
	case k.taken[kind] < most:
		id = k.taken[kind]
		k.taken[kind]++
	case len(free) > 0: // it rests as long as possible: a key with an index of its own has nothing else in it
		id, k.free[kind] = free[0], free[1:]
	default:
		return 0, false
	}
	if !own {
		id += proto.OwnIDs
	}
	k.sequence++
	return proto.Chosen{ID: uint32(id), Sequence: k.sequence, Own: own, Events: events}.Key(), true
}

// put takes back a key that was given out.
func (k *keys) put(key uint64) {
	if id := proto.ChosenID(key); id < proto.OwnIDs {
		k.free[1] = append(k.free[1], id)
	} else {
		k.free[0] = append(k.free[0], id-proto.OwnIDs)
	}
}

// regions are the regions of a matcher. Everything is guarded by the receiver's lock.
type regions struct {
	x     *matchRx
	pte   *libcxi.PtlTE // the shared list; the matcher's
	list  []region      // by id, from firstRegion
	free  []uint16      // ids of list that none has, the one that rests longest first
	names map[regionName]bool
	keys  keys
	asked int
}

// open takes the shared list.
func (g *regions) open(x *matchRx, pte *libcxi.PtlTE) {
	g.x, g.pte, g.names = x, pte, map[regionName]bool{}
	g.keys.sequence = rand.Uint64()
}

// MaxKey is the greatest key that the owner chooses.
func (m *matcher) MaxKey() uint64 { return proto.MaxKey }

// KeyValid reports whether a peer's region can have a key.
func (m *matcher) KeyValid(key uint64, data bool) bool {
	_, ok := placeOf(key, data)
	return ok
}

// placeOf is where operations on the region with a key go, or writes with data.
func placeOf(key uint64, data bool) (proto.Region, bool) {
	if data {
		return proto.NotifyOf(key)
	}
	return proto.RegionOf(key)
}

// Expose lets peers reach a region.
func (m *matcher) Expose(r *hw.MatchRegion) (hw.MatchID, error) {
	memory, ok := r.Memory.(*Memory)
	switch {
	case r.Memory != nil && (!ok || memory.d != m.i.d):
		return 0, fmt.Errorf("cxi: region of memory that is not this device's: %w", hw.ErrInvalid)
	case r.Access == 0 || r.Access&^(hw.RemoteRead|hw.RemoteWrite) != 0,
		r.Notify && (r.Access != hw.RemoteWrite || r.Choose),
		!r.Choose && !r.Notify && r.Key > proto.MaxKey,
		memory != nil && r.Access&hw.RemoteWrite != 0 && memory.region.Access&hw.LocalWrite == 0:
		return 0, fmt.Errorf("cxi: region with key %#x and rights %#x: %w", r.Key, r.Access, hw.ErrInvalid)
	case m.i.closed.Load():
		return 0, errClosed
	}
	x := &m.rx
	x.lock.take()
	defer x.lock.give()
	return x.regions.add(r, memory)
}

// add appends a region's entry. The caller has the lock.
func (g *regions) add(r *hw.MatchRegion, memory *Memory) (hw.MatchID, error) {
	name := regionName{r.Key, r.Notify}
	switch {
	case r.Choose:
	case g.names[name]:
		return 0, fmt.Errorf("cxi: a region has key %#x: %w", r.Key, hw.ErrInvalid)
	case r.Key > proto.MaxKey && !g.names[regionName{r.Key, false}]:
		return 0, fmt.Errorf("cxi: no region has key %#x: %w", r.Key, hw.ErrInvalid)
	}
	q := &g.x.portal.q
	if g.asked == maxAsked || !q.Room(2) || len(g.free) == 0 && len(g.list) == maxRegions {
		q.Ring()
		return 0, hw.ErrNoResource
	}
	p := region{state: regionAppended, name: name, context: r.Context, entry: nic.Entry{
		PtlTE: g.pte.Number(), MatchID: nic.AnyID(), Put: r.Access&hw.RemoteWrite != 0,
		Get: r.Access&hw.RemoteRead != 0, Silent: !r.Notify && !r.Events,
	}}
	if memory != nil {
		p.entry.Memory, p.entry.Length = memory.local(memory.addr, 0), uint64(memory.region.Len)
	}
	if err := g.find(&p, r); err != nil {
		return 0, err
	}
	p.entry.ID = g.takeID()
	q.Append(&p.entry)
	g.ask(&p)
	g.list[p.entry.ID-firstRegion] = p
	g.names[p.name] = true
	return hw.MatchID(p.entry.ID), nil
}

// find finds the list of a region, and a key if it has none. One that may have a list of its own, and for which the
// device has none, shares one.
func (g *regions) find(p *region, r *hw.MatchRegion) error {
	if !r.Choose {
		at, ok := placeOf(r.Key, r.Notify)
		if !ok {
			return fmt.Errorf("cxi: writes with data under key %#x: %w", r.Key, hw.ErrInvalid)
		}
		p.entry.MatchBits = at.MatchBits
		if !at.Own {
			return nil
		}
		return g.place(p, at)
	}
	if !r.Data {
		if done, err := g.choose(p, r, true); done || err != nil && !errors.Is(err, hw.ErrNoResource) {
			return err
		}
	}
	done, err := g.choose(p, r, false)
	if err == nil && !done {
		err = hw.ErrNoResource
	}
	return err
}

// choose chooses a key for a region, with a list of its own if own. False: there is none of the kind.
func (g *regions) choose(p *region, r *hw.MatchRegion, own bool) (done bool, err error) {
	key, ok := g.keys.choose(own, r.Events)
	if !ok {
		return false, nil
	}
	at, _ := proto.RegionOf(key)
	if own {
		if err := g.place(p, at); err != nil {
			g.keys.put(key)
			return false, err
		}
	}
	r.Key, p.name.key, p.entry.MatchBits = key, key, at.MatchBits
	return true, nil
}

// ask has the NIC take a region's command, the last one.
func (g *regions) ask(p *region) {
	q := &g.x.portal.q
	p.slot = q.LastSlot()
	g.x.slots[p.slot] = idOther
	q.Ring()
	g.asked++
}

// place makes a list for the region alone.
func (g *regions) place(p *region, at proto.Region) (err error) {
	i, q := g.x.m.i, &g.x.portal.q
	if p.own, err = i.networks.newPtlTE(i.d, g.x.flow.events.eq, libcxi.PtlTELong, at.Write); err != nil {
		return err
	}
	if err = i.networks.place(p.own, at.Read); err != nil {
		err = errors.Join(err, p.own.Close())
		p.own = nil // the region may share a list
		return err
	}
	p.entry.PtlTE = p.own.Number()
	q.Enable(p.entry.PtlTE)
	g.x.slots[q.LastSlot()] = idOther
	return nil
}

// takeID gives out an id, of which there is one.
func (g *regions) takeID() uint16 {
	if len(g.free) > 0 {
		id := g.free[0]
		g.free = g.free[1:]
		return id
	}
	g.list = append(g.list, region{})
	return uint16(len(g.list) - 1 + firstRegion)
}

// at is the region with an id, nil: there is none.
func (g *regions) at(id uint64) *region {
	if id -= firstRegion; id < uint64(len(g.list)) && g.list[id].state != regionNone {
		return &g.list[id]
	}
	return nil
}

// Withdraw takes a region's entry away.
func (m *matcher) Withdraw(id hw.MatchID) error {
	x := &m.rx
	x.lock.take()
	defer x.lock.give()
	g := &x.regions
	p := g.at(uint64(id))
	switch {
	case p == nil || p.state == regionWithdrawn:
		return fmt.Errorf("cxi: region %d is not exposed: %w", id, hw.ErrInvalid)
	case p.state == regionAppended || g.asked == maxAsked || !x.portal.q.Room(1):
		x.portal.q.Ring()
		return hw.ErrNoResource
	}
	pte := g.pte
	if p.own != nil {
		pte = p.own
	}
	if err := pte.Invalidate(uint32(id)); err != nil && !is(err, unix.ENOSYS, unix.ENOENT) {
		m.i.logf("region: %v", err) // the entry goes all the same
	}
	x.portal.q.Unlink(&p.entry)
	g.ask(p)
	p.state = regionWithdrawn
	return nil
}

// take takes in an event of a region: an answer of the NIC about it, or a write with data. It returns how much it has
// said. Lease.
func (g *regions) take(e nic.Event) int {
	g.x.lock.take()
	p := g.at(uint64(e.BufferID()))
	if p == nil {
		g.x.lock.give()
		return 0
	}
	ev := hw.MatchEvent{Context: p.context}
	said := 1
	switch {
	case writes(e) && !p.entry.Silent && e.Code() == wire.RcOk:
		ev.Kind, ev.Length, ev.Offset = hw.MatchWritten, uint64(e.Length()), e.Offset()
		if p.name.notify {
			ev.Data, ev.HasData = e.HeaderData(), true
		}
		ev.From = g.x.m.sentBy(e)
	case e.Type() == wire.EventLink || e.Type() == wire.EventUnlink:
		g.answered(p, e, &ev)
	default:
		said = 0
	}
	g.x.lock.give()
	if said != 0 {
		g.x.say(&ev)
	}
	return said
}

// writes reports whether an event is of an operation that writes.
func writes(e nic.Event) bool {
	return e.Type() == wire.EventPut || e.Type() == wire.EventAtomic || e.Type() == wire.EventFetchAtomic
}

// answered takes in an answer of the NIC. The caller has the lock.
func (g *regions) answered(p *region, e nic.Event, ev *hw.MatchEvent) {
	g.asked--
	ev.Kind = hw.MatchExposed
	switch {
	case e.Type() == wire.EventUnlink:
		ev.Kind = hw.MatchWithdrawn
		g.remove(p)
	case e.Code() != wire.RcOk:
		ev.Err = fmt.Errorf("cxi: no list entry for a region: %s: %w", codeText(e.Code()), hw.ErrNoResource)
		g.remove(p)
	default:
		p.state = regionExposed
	}
	ev.Last = p.state == regionNone
}

// refused takes in that the NIC has refused a region's command, and reports whether it was one. A region that was to be
// withdrawn is exposed still. Lease.
func (g *regions) refused(slot uint32, err error) bool {
	g.x.lock.take()
	k := slices.IndexFunc(g.list, func(p region) bool {
		return p.slot == slot && (p.state == regionAppended || p.state == regionWithdrawn)
	})
	if k < 0 {
		g.x.lock.give()
		return false
	}
	p := &g.list[k]
	ev := hw.MatchEvent{Kind: hw.MatchExposed, Context: p.context, Err: err, Last: p.state == regionAppended}
	g.asked--
	if ev.Last {
		g.remove(p)
	} else {
		ev.Kind, p.state = hw.MatchWithdrawn, regionExposed
	}
	g.x.lock.give()
	g.x.say(&ev)
	return true
}

// remove ends a region that the NIC has no entry of. The caller has the lock.
func (g *regions) remove(p *region) {
	if p.own != nil {
		if err := p.own.Close(); err != nil {
			g.x.m.i.logf("region: %v", err)
		}
	}
	delete(g.names, p.name)
	if proto.IsChosen(p.name.key) && !p.name.notify {
		g.keys.put(p.name.key)
	}
	g.free = append(g.free, p.entry.ID)
	p.state, p.own = regionNone, nil
}

// close gives back the lists of regions that are still there.
func (g *regions) close() (err error) {
	for k := range g.list {
		if p := &g.list[k]; p.own != nil {
			err = errors.Join(err, p.own.Close())
			p.own = nil
		}
	}
	return err
}
