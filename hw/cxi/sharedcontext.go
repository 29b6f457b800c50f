package cxi

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Writes and atomic operations with a shared context (hw.MatchTransfer.Shared) that go with their command have no
// place. All of one kind and context carry one cookie, so that the queue's state stays from one to the next, and are
// counted. Each is answered, and its answer says how many bytes it has written. Which of several has failed nothing
// says, nor is
// it asked.
//
// The number of a place in such a cookie is that of no place, and the generation the epoch:
//
//	63        32 31    24 23            2    1      0
//	+-----------+--------+--------------+------+---------+
//	|   epoch   | stripe | noPlace      | kind | context |
//	+-----------+--------+--------------+------+---------+

// Kinds of what has no place.
const (
	sharedWrite = iota
	sharedAtomic
	sharedKinds = sharedAtomic + 1

	sharedCounts = sharedKinds * hw.SharedContexts
	noPlace      = placeMask &^ (sharedCounts - 1) // more than there are places
)

// sharedCount is how many commands are under way, by the last bits of their cookies.
type sharedCount [sharedCounts]uint32

func (c *sharedCount) sum() (n uint32) {
	for _, k := range c {
		n += k
	}
	return n
}

// sharedContexts are a stripe's commands without a place. Under its lock.
type sharedContexts struct {
	posted sharedCount // in this epoch
	// doubtful are those of earlier epochs, since the one in which that began: the event of some may have been dropped
	// (overrun.go).
	doubtful     sharedCount
	epoch, since uint32
	all          uint32 // the sum of both
}

// underway is how many have not ended.
func (s *sharedContexts) underway() int { return int(s.all) }

// doubt has those under way be doubtful, and others be of another epoch.
func (s *sharedContexts) doubt() {
	if s.doubtful.sum() == 0 {
		s.since = s.epoch
	}
	for k := range s.posted {
		s.doubtful[k] += s.posted[k]
	}
	s.posted = sharedCount{}
	s.epoch++
}

// of is the count in which a command of an epoch is.
func (s *sharedContexts) of(epoch uint32) *sharedCount {
	switch {
	case epoch == s.epoch:
		return &s.posted
	case epoch-s.since < s.epoch-s.since:
		return &s.doubtful
	}
	return nil
}

// sharedCookie is the cookie of commands of a kind with a context.
func (t *matchTx) sharedCookie(kind uint32, context uint64) uint64 {
	return uint64(t.shared.epoch)<<32 | uint64(t.owner(noPlace|kind*hw.SharedContexts|uint32(context)))
}

// postedShared counts a command.
func (t *matchTx) postedShared(kind uint32, context uint64) {
	t.shared.posted[kind*hw.SharedContexts|uint32(context)]++
	t.shared.all++
}

// writeShared writes the command of a write. False: no room. The caller has the lock, as of what follows.
func (t *matchTx) writeShared(a *access, inject []byte, context uint64) bool {
	if !t.roomBut(receiverPlaces) {
		return false
	}
	t.inlineState(a, t.sharedCookie(sharedWrite, context), 0)
	t.q.PutInline(&a.to, a.at.Offset, inject)
	t.postedShared(sharedWrite, context)
	return true
}

// performShared writes the command of an atomic operation that fetches nothing. False: no room.
func (t *matchTx) performShared(a *access, o *atomicOp, d *atomicType, operand, compare *[operandBytes]byte,
	context uint64) bool {
	if !t.roomBut(receiverPlaces) {
		return false
	}
	c := nic.Atomic{Op: o.code, Condition: o.condition, Type: d.code}
	c.To, c.Offset = a.to, a.at.Offset
	elements(&c, operand, compare)
	t.inlineState(a, t.sharedCookie(sharedAtomic, context), 0)
	t.q.AtomicInline(&c)
	t.postedShared(sharedAtomic, context)
	return true
}

// sharedEnd takes in an answer, if it is of a command without a place. It needs nothing of the runtime.
func (t *matchTx) sharedEnd(e nic.Event) (context uint32, ok bool) {
	cookie := e.UserPtr()
	n := uint32(cookie) & placeMask
	if uint32(cookie)>>placeBits != t.stripe || n < noPlace {
		return 0, false
	}
	c := t.shared.of(uint32(cookie >> 32))
	if c == nil || c[n-noPlace] == 0 {
		return 0, false
	}
	c[n-noPlace]--
	t.shared.all--
	return n % hw.SharedContexts, true
}

// endShared says that one has ended.
func (t *matchTx) endShared(context uint32, length uint64, err error) {
	t.ended = append(t.ended, hw.MatchEvent{Kind: hw.MatchTransferred, Context: uint64(context), Last: true,
		Shared: true, Length: length, Err: err})
	t.endings()
}

// abandonShared ends all of a count.
func (t *matchTx) abandonShared(c *sharedCount, err error) {
	for k := range c {
		for ; c[k] > 0; c[k]-- {
			t.shared.all--
			t.endShared(uint32(k)%hw.SharedContexts, 0, err)
		}
	}
}

// failShared ends all.
func (t *matchTx) failShared(err error) {
	t.abandonShared(&t.shared.posted, err)
	t.abandonShared(&t.shared.doubtful, err)
	t.shared.epoch++
}

// refusedShared ends one whose command the NIC refuses. False: it is of none. Where it may be one of this epoch it is:
// one of these that is refused has no other end, and those that are doubtful end in any case.
func (t *matchTx) refusedShared(command uint64, err error) bool {
	kind, ok := sharedKind(command)
	if !ok {
		return false
	}
	for _, c := range []*sharedCount{&t.shared.posted, &t.shared.doubtful} {
		for context := range uint32(hw.SharedContexts) {
			if k := kind*hw.SharedContexts | context; c[k] > 0 {
				c[k]--
				t.shared.all--
				t.endShared(context, 0, err)
				return true
			}
		}
	}
	return false
}

// sharedKind is the kind of a command that may be one without a place, by its first byte.
func sharedKind(command uint64) (kind uint32, ok bool) {
	if command>>wire.CommandTypeShift&wire.CommandTypeMask != wire.CmdTypeInline {
		return 0, false
	}
	switch command >> wire.CommandOpcodeShift {
	case wire.OpPut:
		return sharedWrite, true
	case wire.OpAtomic:
		return sharedAtomic, true
	}
	return 0, false
}

// SharedUnderway reports whether an operation with a shared context may not have ended that was posted for a peer.
func (m *matcher) SharedUnderway(to hw.MatchAddress) bool {
	t := m.txOf(to)
	t.lock.take()
	defer t.release(false)
	return t.shared.underway() > 0
}
