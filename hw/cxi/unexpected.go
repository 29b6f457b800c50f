package cxi

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// earlyBuffer is a buffer for unexpected messages. It goes back to the list when the NIC has taken it off, and all that
// is in it has been copied out.
type earlyBuffer struct {
	listed bool
	used   uint32 // bytes copied out
	end    uint32 // bytes of all messages, once it is off the list
}

// earlyKey says which two events are of one unexpected message: where its bytes are, or of a rendezvous its sender and
// number.
type earlyKey struct {
	from hw.MatchAddress
	at   uint64
}

// early are the unexpected messages.
type early struct {
	x       *matchRx
	memory  pinned
	buffers []earlyBuffer // their ids are one more
	spare   spares

	// kept is how many messages the NIC keeps, as far as their events were taken in. Changed by the lease holder, read
	// by posts.
	kept atomic.Int64
	here map[earlyKey]nic.Kept // events of messages that no receive has taken
	// messages that a receive has taken before the event of their bytes has come
	wanted map[earlyKey]*arriving
}

// open maps the buffers.
func (y *early) open(x *matchRx) (err error) {
	c := &x.m.cfg
	y.x, y.here, y.wanted = x, map[earlyKey]nic.Kept{}, map[earlyKey]*arriving{}
	if c.Mode == MatchSoftware {
		return nil // the NIC keeps none
	}
	y.buffers = make([]earlyBuffer, c.Buffers)
	y.spare.n = c.Buffers
	y.memory, err = x.m.i.d.newPinned(c.Buffers*c.BufferBytes, libcxi.MapRead|libcxi.MapWrite)
	return err
}

// listAll gives the NIC the buffers that are free. The caller has the receiver's lock.
func (y *early) listAll() {
	c := &y.x.m.cfg
	for n := range y.buffers {
		b := &y.buffers[n]
		if b.listed {
			continue
		}
		e := nic.Entry{
			PtlTE: y.x.pte.Number(), List: wire.ListOverflow, ID: uint16(n + 1), Memory: y.memory.at(n*c.BufferBytes,
				0),
			Length: uint64(c.BufferBytes), Ignore: ^uint64(0), MatchID: nic.AnyID(), MinFree: uint32(c.Eager),
			Managed: true, Put: true,
			NoLink: true, NoUnlink: true,
			// Receives that the NIC has refused come first: it refuses those behind them until they are tried again.
			InOrder: true,
		}
		if !y.x.append(&e) {
			return
		}
		*b = earlyBuffer{listed: true}
		y.spare.n--
	}
}

// list does so when there are some.
func (y *early) list() {
	if y.spare.due() {
		y.x.relist(&y.spare, y.listAll)
	}
}

// refused takes in that the NIC had no entry for a buffer.
func (y *early) refused(n int) {
	if b := &y.buffers[n]; b.listed && b.used == 0 && b.end == 0 {
		b.listed = false
		y.spare.refused()
	}
}

// key finds out which message an event is of.
func (y *early) key(e nic.Event) earlyKey {
	if e.Rendezvous() {
		r, _ := proto.RendezvousOf(e.MatchBits(), e.RendezvousID())
		return earlyKey{y.x.m.sentBy(e), 1<<63 | uint64(r.ID)}
	}
	return earlyKey{y.x.m.sentBy(e), e.Start()}
}

// landed takes in that a message has landed in a buffer.
func (y *early) landed(e nic.Event) {
	n := int(e.BufferID()) - 1
	b := &y.buffers[n]
	kept := y.kept.Add(1)
	if kept > int64(y.x.m.cfg.Unexpected) && y.x.flow.core.hybrid && y.x.flow.state() == flowEnabled {
		y.x.lock.take()
		y.x.flow.stop(true, true)
		y.x.lock.give()
	}
	if e.Last() {
		b.end = uint32(e.Start()-y.memory.iova) - uint32(n*y.x.m.cfg.BufferBytes) + e.Length()
	}
	if e.Wanted() > 0 {
		key := y.key(e)
		if a := y.wanted[key]; a != nil {
			delete(y.wanted, key)
			y.join(a, e)
		} else if !y.x.flow.landed(key, e) {
			y.here[key] = e.Keep()
		}
	}
	y.settle(n)
}

// taken takes in that a receive has taken an unexpected message.
func (y *early) taken(r *receive, e nic.Event) {
	a := y.x.begin(r, e.Initiator(), e.RendezvousID(), e.Rendezvous(), seenTaken)
	a.seen |= seenTaken
	y.kept.Add(-1)
	offset := r.start
	if r.multi {
		r.start += min(uint64(e.Wanted()), r.room-offset)
		if e.Last() {
			r.unlinked, r.total = true, r.start
		}
	}
	y.x.fill(a, e, offset)
	if e.Wanted() == 0 { // there is no event of bytes
		y.x.matched(a, e.MatchBits())
		return
	}
	key := y.key(e)
	if k, ok := y.here[key]; ok {
		delete(y.here, key)
		y.join(a, k.Event())
		return
	}
	y.wanted[key] = a
}

// join gives a receive the message with the bytes that the event says.
func (y *early) join(a *arriving, e nic.Event) {
	b := y.bytes(e)
	x := y.x
	x.judge(a, e)
	copy(a.r.into()[a.ev.Offset:], b[:min(uint64(len(b)), a.ev.Length)])
	if e.Rendezvous() {
		a.eager = e.Length()
		y.x.step(a, seenPut)
		return
	}
	y.x.matched(a, e.MatchBits())
}

// bytes are those of a message, by the event that says where they are, until the buffer is listed again: they count as
// copied out.
func (y *early) bytes(e nic.Event) []byte {
	n := int(e.BufferID()) - 1
	y.buffers[n].used += e.Length()
	y.settle(n)
	at, length := e.Start()-y.memory.iova, uint64(e.Length())
	if all := uint64(len(y.memory.memory)); length > all || at > all-length {
		y.x.m.i.logf("unexpected message of %d bytes outside of the buffers", length)
		return nil
	}
	return y.memory.memory[at : at+length]
}

// settle finds out whether a buffer that the NIC has taken off its list is free.
func (y *early) settle(n int) {
	if b := &y.buffers[n]; b.listed && b.end != 0 && b.used == b.end {
		b.listed = false
		y.spare.n++
	}
}

// matched ends an unexpected message, after a notice to its sender if that waits for the match.
func (x *matchRx) matched(a *arriving, bits uint64) {
	id, ok := proto.Awaits(bits)
	if !ok {
		x.end(a)
		return
	}
	a.do, a.bits, a.index = doMatched, proto.Matched(id), proto.IndexSource
	x.commands = append(x.commands, a)
}
