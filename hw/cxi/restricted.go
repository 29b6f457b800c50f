package cxi

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Senders of rendezvous by restricted gets (MatchConfig.Restricted). A receiver whose NIC does not get the rest of a
// message by itself gets it from a list without matching, of which there is one for each address context, and puts a
// notice when it has it, as those lists give no events. A list is made when the first message from its address context
// is posted. Where the device has none, messages from there are of the default protocol.

// idRestricted is the list entry of the first of these lists.
const idRestricted = idNotices + 1

// restrictedList is the list of an address context.
type restrictedList struct {
	// state is sourceNone and so on. Changed by posts (compare-and-swap) and the lease holder, read by posts.
	state atomic.Uint32
	// number is the list's, 0: there is none. Stored by the thread that has set sourceAsked, before it has the NIC take
	// a command for it; read by the lease holder.
	number atomic.Uint32
	// list is the thread's that has set sourceAsked, and Close's; nil: there is none.
	list *libcxi.PtlTE
}

// protocol is by which protocol messages from an address context are sent. False: that is not known yet. The caller has
// the stripe's lock.
func (t *matchTx) protocol(lac uint32) (p proto.Protocol, known bool) {
	if !t.m.cfg.Restricted {
		return proto.ProtocolDefault, true
	}
	s := &t.m.shared.restricted[lac]
	switch s.state.Load() {
	case sourceReady:
		return proto.ProtocolRestricted, true
	case sourceRefused:
		return proto.ProtocolDefault, true
	}
	if s.state.CompareAndSwap(sourceNone, sourceAsked) {
		if err := t.m.openRestricted(s, lac); errors.Is(err, hw.ErrNoResource) && s.list != nil {
			s.state.Store(sourceNone) // the target queue is full
		} else if err != nil {
			t.m.notRestricted(lac, err)
		}
	}
	return proto.ProtocolDefault, false
}

// openRestricted makes the list of an address context and enables it. It gets its entry when the NIC answers. Errors:
// hw.ErrNoResource.
func (m *matcher) openRestricted(s *restrictedList, lac uint32) (err error) {
	if s.list == nil {
		if s.list, err = m.i.networks.newPtlTE(m.i.d, m.tx.events.eq, 0, proto.IndexRestricted+lac); err != nil {
			s.list = nil
			return err
		}
		s.number.Store(s.list.Number())
	}
	number := s.number.Load()
	if !m.rx.command(func(q *nic.Queue) bool { return q.Enable(number) }) {
		return hw.ErrNoResource
	}
	return nil
}

// enabledRestricted appends the entry of a list, all of the address context. The next message tries again where there
// is no room for the command. Lease.
func (m *matcher) enabledRestricted(s *restrictedList, lac uint32) {
	e := nic.Entry{PtlTE: s.number.Load(), ID: uint16(idRestricted + lac), Memory: nic.Memory{LAC: lac},
		Length: wire.TargetLengthMask, MatchID: nic.AnyID(), Get: true, Silent: true}
	if !m.rx.command(func(q *nic.Queue) bool { return q.Append(&e) }) {
		s.state.CompareAndSwap(sourceAsked, sourceNone)
	}
}

// notRestricted has messages from an address context be of the default protocol.
func (m *matcher) notRestricted(lac uint32, err error) {
	m.shared.restricted[lac].state.Store(sourceRefused)
	m.i.logf("long messages from address context %d are not read by restricted gets: %v", lac, err)
}

// restrictedBy takes in an event of one of these lists. False: it is of another. Lease.
func (m *matcher) restrictedBy(e nic.Event) bool {
	for lac := range m.shared.restricted {
		s := &m.shared.restricted[lac]
		if n := s.number.Load(); n == 0 || n != e.PtlTE() {
			continue
		}
		switch {
		case e.Code() != wire.RcOk:
			m.notRestricted(uint32(lac), errCommand(e.Code()))
		case e.Type() == wire.EventLink:
			s.state.CompareAndSwap(sourceAsked, sourceReady)
		default:
			m.enabledRestricted(s, uint32(lac))
		}
		return true
	}
	return false
}

// closeRestricted gives the lists back.
func (m *matcher) closeRestricted() (err error) {
	for lac := range m.shared.restricted {
		if s := &m.shared.restricted[lac]; s.list != nil {
			err = errors.Join(err, s.list.Close())
			s.list = nil
		}
	}
	return err
}
