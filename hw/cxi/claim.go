package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
)

// Claims. A search finds out whether there is a message; the NIC says where the rest of a long one is only while it
// takes no messages, so that what it keeps is taken over then, as in flow control, and the message is set aside there.

// Claim finds an unexpected message and sets it aside.
func (m *matcher) Claim(r *hw.MatchReceive) error { return m.search(r, true) }

// claimFound takes in that the NIC keeps a message that is to be set aside.
func (f *flow) claimFound(r *receive) {
	f.x.lock.take()
	defer f.x.lock.give()
	if f.core.state == flowControl || f.core.matches() {
		f.claim(r)
		return
	}
	f.claims = append(f.claims, r)
	f.stop(true, false)
}

// claim sets aside a message that was taken over, if it is still there. The caller has the lock.
func (f *flow) claim(r *receive) {
	if !f.x.soft.search(r) {
		f.x.soft.missing(r)
	}
}

// ReceiveClaimed receives a message that was set aside.
func (m *matcher) ReceiveClaimed(c hw.Claim, r *hw.MatchReceive) error {
	x := &m.rx
	memory, err := m.localOf(r)
	if err != nil {
		return err
	}
	if err := x.usable(); err != nil {
		return err
	}
	x.lock.take()
	defer x.lock.give()
	s := x.flow.claimed[c]
	if s == nil {
		return fmt.Errorf("cxi: message %d is not set aside: %w", c, hw.ErrInvalid)
	}
	e := nic.Entry{Memory: memory}
	p := x.enter(receivePosted, &e, segmentAddress(&r.Local), uint64(r.Local.Len), r.Context)
	if p == nil {
		return hw.ErrNoResource
	}
	delete(x.flow.claimed, c)
	x.soft.give(p, s)
	m.i.bell.Ring()
	return nil
}
