package cxi

import (
	"errors"
	"math/bits"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/freering"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/order"
)

// A matcher has transmit stripes: each is a transmit queue with its event queue, its places and its lock (matchTx).
// Messages and operations to a peer go by the stripe that the peer's address chooses, all of them and always: order
// holds within a queue of the NIC only, and flow control of a peer sends again in the order of one. So threads that
// post to peers of different stripes do not meet, and progress meets each for a moment. What the wire has once for an
// endpoint is here: the list that peers read long messages from, and the ids in match bits.

// maxStripes is how many stripes there may be.
const maxStripes = 8

// txShared is what the stripes have in common.
type txShared struct {
	list *libcxi.PtlTE // of data of rendezvous and of notices; its events come to the first stripe's queue
	// sources are the entries of address contexts, sourceNone and so on. Changed by posts (compare-and-swap) and the
	// lease holder, read by posts.
	sources          [proto.LACs]atomic.Uint32
	restricted       [proto.LACs]restrictedList // for receivers that get by restricted gets
	matches          sharedNumbers
	untagged, tagged sharedNumbers // rendezvous
	// ended says that ended or answers of a stripe is not empty. Set behind them, cleared by the lease holder before it
	// reads them; read by the lease holder and C.
	ended atomic.Bool
	// controls is the number of stripes with anyControl. Added to under their locks; read by the lease holder, Arm and
	// C.
	controls atomic.Int32
	// corked says that a post has left its doorbell to the next one, which may go by another stripe. Set behind the
	// stripe's unrung, taken before those are read; sequentially consistent, of a thread that is alone
	// release. Where there is one stripe it stays clear.
	corked flag
}

// leaves notes that a post has left its doorbell to the next one. It needs nothing of the runtime.
func (m *matcher) leaves() {
	if len(m.txs) > 1 {
		m.shared.corked.set()
	}
}

// endPost gives the lock back behind a post. One behind which no other follows has the NIC take what posts before it
// have left, also in other stripes.
func (t *matchTx) endPost(more bool) {
	t.release(more)
	if more {
		t.m.leaves()
	} else if t.m.shared.corked.take() {
		for _, o := range t.m.txs {
			if o.unrung.isSet() {
				o.lock.take()
				o.release(false)
			}
		}
	}
}

// openIDs makes the ids, for n messages in flight.
func (s *txShared) openIDs(n int) {
	s.matches.open(0, uint32(min(n, proto.TxIDs)))
	s.untagged.open(0, proto.UntaggedIDs)
	s.tagged.open(proto.UntaggedIDs, uint32(min(n, proto.RendezvousIDs-proto.UntaggedIDs)))
}

// count is the number of ids, and so the most notices that are to come.
func (s *txShared) count() int {
	return len(s.matches.owners) + len(s.untagged.owners) + len(s.tagged.owners)
}

// otherEvents are blocks of an event queue for what is of no command, such as the links of address contexts, and for
// the one that the NIC leaves free.
const otherEvents = 64

// eventBlocks is how many blocks of 64 bytes the event queue of a stripe has. They hold all events that may come
// without progress. An event takes one block at most, of which null events fill the rest if the next is of 64 bytes.
// The command of a place has two events at most: the answer to a message, and its notice or the read of its data, or
// both answers to an atomic operation. To the first stripe come notices of the other stripes' messages as well, as
// many as these have in flight, and as there are ids: with n places in each stripe and ids of both kinds of
// rendezvous and of messages that wait for their match, min((stripes-1) n, n + 256 + min(n, 2048)) where n is at most
// 16384. The NIC gets blocks back by quarters, so that three quarters of the queue are sure, and it has 4/3 of the
// sum.
func (m *matcher) eventBlocks(stripe uint32) int {
	n := m.cfg.Sends
	most := 2 * (n + receiverPlaces)
	if stripe == 0 {
		most += min((int(floorPower(m.cfg.Stripes))-1)*n, m.shared.count())
	}
	return (4*most+2)/3 + otherEvents
}

// rendezvous are the ids among which one of a rendezvous is.
func (s *txShared) rendezvous(id uint32) *sharedNumbers {
	if id < proto.UntaggedIDs {
		return &s.untagged
	}
	return &s.tagged
}

// sharedNumbers are ids that threads of several stripes take, and the lease holder gives back. One that is given back
// rests as long as possible.
type sharedNumbers struct {
	lock queueLock // of the taker of free
	free freering.Ring
	// owners are the owners of ids from base on (matchTx.owner), noOp: none. Stored by the taker and the giver
	// (release), read by the lease holder (acquire).
	owners []uint32
	base   uint32
}

func (n *sharedNumbers) open(base, count uint32) {
	n.base, n.owners = base, make([]uint32, count)
	n.free.Open(base, count)
	n.free.Fill()
	for k := range n.owners {
		n.owners[k] = noOp
	}
}

// take gives out an id. False: there is none now. It needs nothing of the runtime.
func (n *sharedNumbers) take(owner uint32) (id uint32, ok bool) {
	if !n.lock.try() {
		return 0, false
	}
	if id, ok = n.free.Take(); ok {
		order.Store32(&n.owners[id-n.base], owner)
	}
	n.lock.release()
	return id, ok
}

// put takes back an id. Lease. It needs nothing of the runtime.
func (n *sharedNumbers) put(id uint32) {
	order.Store32(&n.owners[id-n.base], noOp)
	n.free.Put(id)
}

// find is the owner of an id, noOp: there is none. Lease.
func (n *sharedNumbers) find(id uint32) uint32 {
	if id -= n.base; id < uint32(len(n.owners)) {
		return atomic.LoadUint32(&n.owners[id])
	}
	return noOp
}

// Places of stripes, as cookies and owners of ids name them: the stripe stands behind the place.
const (
	placeBits = 24
	placeMask = 1<<placeBits - 1
)

// owner names a place among those of all stripes.
func (t *matchTx) owner(n uint32) uint32 { return t.stripe<<placeBits | n }

// txOf is the stripe of a peer. It needs nothing of the runtime.
func (m *matcher) txOf(to hw.MatchAddress) *matchTx {
	return m.txs[uint64(to)*roomFactor>>m.stripeShift]
}

// openStripes makes the stripes, as many as are asked for, or fewer where the service has no more queues.
func (m *matcher) openStripes() error {
	m.txs = append(m.txs, &m.tx)
	m.shared.openIDs(m.cfg.Sends)
	if err := m.tx.open(); err != nil {
		return err
	}
	for n := uint32(1); n < floorPower(m.cfg.Stripes); n++ {
		t := &matchTx{m: m, stripe: n}
		if err := t.open(); err != nil {
			if failed := t.close(); failed != nil || !errors.Is(err, hw.ErrNoResource) {
				return errors.Join(err, failed)
			}
			m.i.cfg.Logf("cxi %s: %d transmit queues, not %d: %v", m.i.d.dev.Name, floorPower(int(n)), m.cfg.Stripes,
				err)
			break
		}
		m.txs = append(m.txs, t)
	}
	for keep := int(floorPower(len(m.txs))); len(m.txs) > keep; m.txs = m.txs[:len(m.txs)-1] {
		if err := m.txs[len(m.txs)-1].close(); err != nil {
			return err
		}
	}
	m.stripeShift = uint8(64 - bits.Len(uint(len(m.txs)-1)))
	return nil
}

// floorPower is the greatest power of two that is at most n, which is at least 1.
func floorPower(n int) uint32 { return 1 << (bits.Len(uint(n)) - 1) }

// controlling notes whether a stripe has something to be sent by and by. The caller has its lock.
func (t *matchTx) controlling(on bool) {
	if t.anyControl.Load() == on {
		return
	}
	t.anyControl.Store(on)
	if on {
		t.m.shared.controls.Add(1)
	} else {
		t.m.shared.controls.Add(-1)
	}
}

// endings notes that ended or answers of a stripe is not empty. The caller has its lock.
func (t *matchTx) endings() {
	t.anyEnded.Store(true)
	t.m.shared.ended.Store(true)
}

// admit lets peers read what is in an address context. False: they may not yet.
func (t *matchTx) admit(lac uint32) (ready bool, err error) {
	s := &t.m.shared.sources[lac]
	if s.Load() == sourceReady {
		return true, nil
	}
	if s.CompareAndSwap(sourceNone, sourceAsked) {
		e := nic.Entry{PtlTE: t.m.shared.list.Number(), ID: uint16(lac), Memory: nic.Memory{LAC: lac},
			Length:  wire.TargetLengthMask,
			MatchID: nic.AnyID(), Get: true, NoUnlink: true}
		e.MatchBits, e.Ignore = proto.SourceEntry(lac)
		if !t.m.rx.command(func(q *nic.Queue) bool { return q.Append(&e) }) {
			s.Store(sourceNone)
		}
	}
	return false, hw.ErrNoResource
}

// notAdmitted takes in that the NIC has refused a command for an address context: the next message tries again.
func (s *txShared) notAdmitted() {
	for lac := range s.sources {
		s.sources[lac].CompareAndSwap(sourceAsked, sourceNone)
		if r := &s.restricted[lac]; r.number.Load() != 0 { // else the list is being made
			r.state.CompareAndSwap(sourceAsked, sourceNone)
		}
	}
}

// admitted takes in the NIC's answer about an address context.
func (m *matcher) admitted(lac, code uint32) {
	if code == wire.RcOk {
		m.shared.sources[lac].Store(sourceReady)
		return
	}
	m.shared.sources[lac].Store(sourceNone)
	m.i.logf("no list entry for long messages from address context %d: %s", lac, codeText(code))
}
