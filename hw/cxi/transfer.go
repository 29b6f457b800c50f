package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/hw/cxi/libcxi"
)

// Reads and writes of peers' regions.

// checkTransfer judges a read or write.
func checkTransfer(p *hw.MatchTransfer) error {
	switch n := len(p.Inject); {
	case p.Key > proto.MaxKey || p.Offset > wire.DmaRemoteOffsetMask:
		return fmt.Errorf("cxi: key %#x, offset %#x: %w", p.Key, p.Offset, hw.ErrInvalid)
	case n > nic.MaxInline:
		return fmt.Errorf("cxi: injected write of %d bytes: %w", n, hw.ErrTooLong)
	case n > 0 && (p.Get || p.Local.Len > 0), p.Get && p.HasData:
		return fmt.Errorf("cxi: a read that injects or has data, or a write that injects and has memory: %w",
			hw.ErrInvalid)
	}
	return nil
}

// PostTransfer posts a read or write of a region of a peer's.
func (m *matcher) PostTransfer(p *hw.MatchTransfer) error {
	if err := checkTransfer(p); err != nil {
		return err
	}
	at := proto.RegionOf(p.Key)
	if p.HasData {
		at = proto.NotifyOf(p.Key)
	}
	index := at.Write
	if p.Get {
		index = at.Read
	}
	to, err := m.at(p.To, index)
	if err != nil {
		return err
	}
	memory, err := segmentMemory(&p.Local, p.Get, maxMatched)
	switch {
	case err != nil:
		return err
	case m.i.closed.Load():
		return errClosed
	}
	t := &m.tx
	t.lock.take()
	defer t.release(p.More)
	s, n := t.begin(receiverPlaces)
	if s == nil {
		return hw.ErrNoResource
	}
	if len(p.Inject) > 0 {
		if memory, err = t.injected(n, p.Inject); err != nil {
			return err
		}
	}
	c := nic.Transfer{Message: nic.Message{To: to, MatchBits: at.MatchBits, UserPtr: s.cookie(n)}, Offset: p.Offset,
		Local: memory, Initiator: m.self, EQ: t.events.number, Restricted: at.Own && !p.Ordered,
		Flush: p.Delivered && !p.Get}
	if p.HasData {
		c.HeaderData = p.Data
	}
	if p.Get {
		t.q.Get(&c)
	} else {
		t.q.Put(&c)
	}
	t.commit(s, sentTransfer, p.Context)
	s.own = at.Own
	return nil
}

// injected copies what is written by the command in a place. The NIC reads it until the place is free again. The memory
// of all places is mapped the first time. The caller has the lock.
func (t *matchTx) injected(place uint32, b []byte) (nic.Memory, error) {
	if t.places.md == nil {
		p, err := t.m.i.d.newPinned(len(t.slots)*nic.MaxInline, libcxi.MapRead|libcxi.MapWrite)
		if err != nil {
			return nic.Memory{}, err
		}
		t.places = p
	}
	off := int(place) * nic.MaxInline
	copy(t.places.memory[off:off+nic.MaxInline], b)
	return t.places.at(off, len(b)), nil
}

// transferError is what the answer to a read or write means. An index of its own is there as long as the region is.
func transferError(own bool, code uint32) error {
	if own && code == wire.RcPtlteNotFound {
		return fmt.Errorf("cxi: no region: %s: %w", codeText(code), hw.ErrKey)
	}
	return codeError(code)
}
