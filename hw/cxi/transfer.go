package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Reads and writes of peers' regions.

// checkTransfer judges a read or write.
func checkTransfer(p *hw.MatchTransfer) error {
	switch n := len(p.Inject); {
	case n > placeBytes:
		return fmt.Errorf("cxi: injected write of %d bytes: %w", n, hw.ErrTooLong)
	case p.Shared && (p.Get || p.Context >= hw.SharedContexts):
		return fmt.Errorf("cxi: a read, or context %#x, with a shared one: %w", p.Context, hw.ErrInvalid)
	case n > 0 && (p.Get || p.Local.Len > 0), p.Get && p.HasData:
		return fmt.Errorf("cxi: a read that injects or has data, or a write that injects and has memory: %w",
			hw.ErrInvalid)
	}
	return nil
}

// regionOf is where an operation on the region with a key goes, at an offset: Offset of what it returns is that at the
// peer. False: no region has the key, or the offset.
func regionOf(key, offset uint64, data bool) (at proto.Region, ok bool) {
	at, ok = placeOf(key, data)
	if !ok || offset > wire.DmaRemoteOffsetMask || at.Offset+offset > wire.DmaRemoteOffsetMask {
		return at, false
	}
	at.Offset += offset
	return at, true
}

// regionAt is regionOf with an error, hw.ErrInvalid.
func regionAt(key, offset uint64, data bool) (proto.Region, error) {
	at, ok := regionOf(key, offset, data)
	if !ok {
		return at, fmt.Errorf("cxi: key %#x, offset %#x, data %v: %w", key, offset, data, hw.ErrInvalid)
	}
	return at, nil
}

// access is an operation on a region of a peer's.
type access struct {
	to        nic.Address
	at        proto.Region
	get       bool // it reads, or fetches
	more      bool // a restricted command does not do: it is ordered, say
	delivered bool // it ends only when the peer's processors see it
	data      bool // it is a write with data
	shared    bool // its context is that of several operations
}

// restricted reports whether it goes in no order with others.
func (a *access) restricted() bool { return a.at.Own && !a.at.Events && !a.more }

// inline reports whether it is a write of n bytes that go with the command: into a list without matching, as those
// commands have no match bits.
func (a *access) inline(n int) bool {
	most := nic.MaxInline
	if a.restricted() {
		most = nic.MaxInlineRestricted
	}
	return a.at.Own && !a.get && !a.data && n <= most
}

// index is the peer's index to which it goes.
func (a *access) index() uint32 {
	if a.get {
		return a.at.Read
	}
	return a.at.Write
}

// address stores in a command where an operation from a place goes.
func (t *matchTx) address(c *nic.Transfer, a *access, n uint32) {
	c.To, c.MatchBits, c.UserPtr = a.to, a.at.MatchBits, t.cookie(n)
	c.Offset, c.Initiator, c.EQ = a.at.Offset, t.m.self, t.events.number
	c.Restricted, c.Flush = a.restricted(), a.delivered && !a.get
}

// inlineState writes the state of an inline access with a cookie, which may have something fetched into an address
// context. The sender is in it where an event may name it to the owner of the region.
func (t *matchTx) inlineState(a *access, cookie uint64, lac uint32) {
	t.messages = false
	s := nic.State{Index: a.index(), EQ: t.events.number, UserPtr: cookie, ResultLAC: lac,
		Restricted: a.restricted(), Flush: a.delivered && !a.get}
	if a.at.Events {
		s.Initiator = t.m.self
	}
	t.q.SetState(&s)
}

// PostTransfer posts a read or write of a region of a peer's.
func (m *matcher) PostTransfer(p *hw.MatchTransfer) error {
	if err := checkTransfer(p); err != nil {
		return err
	}
	at, err := regionAt(p.Key, p.Offset, p.HasData)
	if err != nil {
		return err
	}
	a := access{at: at, get: p.Get, more: p.Ordered || p.Events, delivered: p.Delivered, data: p.HasData,
		shared: p.Shared}
	if a.to, err = m.at(p.To, a.index()); err != nil {
		return err
	}
	m.i.networks.restrict(&a)
	memory, err := segmentMemory(&p.Local, p.Get, maxMatched)
	switch {
	case err != nil:
		return err
	case m.i.closed.Load():
		return errClosed
	}
	t := m.txOf(p.To)
	t.lock.take()
	defer t.endPost(p.More)
	if p.HasData && !t.writes.admit(p) {
		return hw.ErrNoResource
	}
	if len(p.Inject) > 0 && !a.inline(len(p.Inject)) {
		if err := t.mapPlaces(); err != nil {
			return err
		}
	}
	c := nic.Transfer{Local: memory}
	if p.HasData {
		c.HeaderData = p.Data
	}
	s, n, ok := t.transfer(&a, &c, p.Inject, p.Context)
	if !ok {
		return hw.ErrNoResource
	}
	if p.HasData {
		t.writes.keep(s, n, p.To, &c)
	}
	return nil
}

// transfer writes the command of a read or write, which has its memory or something to inject. False: no room. The
// memory of places is mapped if something is injected that does not go with the command. There is no place where the
// command has a shared context and all that is written. The caller has the lock.
func (t *matchTx) transfer(a *access, c *nic.Transfer, inject []byte, context uint64) (s *sent, n uint32, ok bool) {
	inline := c.Local.Len == 0 && a.inline(len(inject))
	if inline && a.shared {
		return nil, 0, t.writeShared(a, inject, context)
	}
	if s, n = t.begin(receiverPlaces); s == nil {
		return nil, 0, false
	}
	switch {
	case inline:
		t.inlineState(a, t.cookie(n), 0)
		t.q.PutInline(&a.to, a.at.Offset, inject)
	case a.get:
		t.address(c, a, n)
		t.q.Get(c)
	default:
		t.address(c, a, n)
		if len(inject) > 0 {
			c.Local = t.injected(n, inject)
		}
		t.q.Put(c)
	}
	t.commit(s, sentTransfer, context)
	s.own = a.at.Own
	if a.shared {
		s.shared, s.length = true, max(c.Local.Len, uint32(len(inject)))
	}
	return s, n, true
}

// placeBytes is what each place has of that memory: room for what the longest inline write has, which goes to another
// list than those that take such writes.
const placeBytes = nic.MaxInlineRestricted

// mapPlaces maps the memory of all places, the first time. The caller has the lock.
func (t *matchTx) mapPlaces() error {
	if t.places.md != nil {
		return nil
	}
	p, err := t.m.i.d.newPinned(len(t.slots)*placeBytes, libcxi.MapRead|libcxi.MapWrite)
	if err == nil {
		t.places = p
	}
	return err
}

// injected copies what is written by the command in a place, of which the memory is mapped. The NIC reads it until the
// place is free again. The caller has the lock.
func (t *matchTx) injected(place uint32, b []byte) nic.Memory {
	off := int(place) * placeBytes
	copy(t.places.memory[off:off+placeBytes], b)
	return t.places.at(off, len(b))
}

// transferError is what the answer to a read or write means. An index of its own is there as long as the region is.
func transferError(own bool, code uint32) error {
	if own && code == wire.RcPtlteNotFound {
		return fmt.Errorf("cxi: no region: %s: %w", codeText(code), hw.ErrKey)
	}
	return codeError(code)
}
