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
	case n > nic.MaxInline:
		return fmt.Errorf("cxi: injected write of %d bytes: %w", n, hw.ErrTooLong)
	case n > 0 && (p.Get || p.Local.Len > 0), p.Get && p.HasData:
		return fmt.Errorf("cxi: a read that injects or has data, or a write that injects and has memory: %w",
			hw.ErrInvalid)
	}
	return nil
}

// regionAt is where an operation on the region with a key goes, at an offset: Offset of what it returns is that at the
// peer. Errors: hw.ErrInvalid.
func regionAt(key, offset uint64, data bool) (proto.Region, error) {
	at, ok := placeOf(key, data)
	if !ok || offset > wire.DmaRemoteOffsetMask || at.Offset+offset > wire.DmaRemoteOffsetMask {
		return at, fmt.Errorf("cxi: key %#x, offset %#x, data %v: %w", key, offset, data, hw.ErrInvalid)
	}
	at.Offset += offset
	return at, nil
}

// restricted reports whether a restricted command does for a region, unless it is to be more than that.
func restricted(at proto.Region, more bool) bool { return at.Own && !at.Events && !more }

// PostTransfer posts a read or write of a region of a peer's.
func (m *matcher) PostTransfer(p *hw.MatchTransfer) error {
	if err := checkTransfer(p); err != nil {
		return err
	}
	at, err := regionAt(p.Key, p.Offset, p.HasData)
	if err != nil {
		return err
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
	admitted := !p.HasData || t.writes.admit(p)
	s, n := t.begin(receiverPlaces)
	if s == nil || !admitted {
		return hw.ErrNoResource
	}
	if len(p.Inject) > 0 {
		if memory, err = t.injected(n, p.Inject); err != nil {
			return err
		}
	}
	c := nic.Transfer{Message: nic.Message{To: to, MatchBits: at.MatchBits, UserPtr: s.cookie(n)}, Offset: at.Offset,
		Local: memory, Initiator: m.self, EQ: t.events.number, Restricted: restricted(at, p.Ordered || p.Events),
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
	if s.data = p.HasData; s.data {
		s.out.to, t.writes.put[n] = p.To, c
	}
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
