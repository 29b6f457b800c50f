package cxi

// Room in the receiver's event queue. The NIC refuses messages that would leave less of it than what is reserved, and
// their senders send them again. Nothing holds back the events of what has arrived: of an unexpected message that a
// receive takes, of a rendezvous whose data is there, of a receive that is taken back. There is room reserved for those
// of each receive that takes one message. A buffer for many messages may take as many unexpected ones as there are, and
// so may receives beyond those: they are posted if what that brings has room beside what is unread, else later, when it
// was read. If the NIC keeps too many messages for that they are taken over into software, a few at a time (onload.go),
// which needs no room then.
//
// A rendezvous that finds a buffer for many, or a receive beyond those, where that waits in the NIC's list brings two
// events more than the one for which the NIC has seen room, and nothing says so before. So two blocks are reserved for
// each message that the NIC may take while nothing is read (forMany), and as the driver reserves so many only, the NIC
// takes no more messages than that allows (waiting). Not counted are rendezvous whose first event has been read and
// whose data is still to come: thousands of them, and as many messages more while nothing is read, overrun the queue.

const (
	// perReceive are the blocks for events of one receive: that it takes an unexpected message, how that goes on as a
	// rendezvous, that its data is there, and the answer to its cancelling.
	perReceive = 4
	// perMessage are those of an unexpected message once it has landed: the first three.
	perMessage = 3
	// perLong are those of a rendezvous beside the one for which the NIC has seen room.
	perLong = 2
	// blocksKept are blocks that the NIC leaves free.
	blocksKept = 31
	// stateEvents are blocks for changes of state and what else is of no receive.
	stateEvents = 32
	// mostReserved is the most that the driver reserves.
	mostReserved = 1<<14 - 1
)

// leastSure is how many receives have room reserved for their events in any case, if there may be so many.
const leastSure = 3000

// waiting is how many events of messages may wait in any case: Events, or what the room allows that the driver
// reserves.
func (c *MatchConfig) waiting() int {
	if c.unreserved || c.Mode == MatchSoftware {
		return c.Events
	}
	most := (mostReserved - stateEvents - perReceive*min(c.Receives, leastSure)) / perLong
	return min(c.Events, (most-blocksKept)*4/5)
}

// forMany are the reserved blocks for rendezvous that have come into buffers for many.
func (c *MatchConfig) forMany() int { return perLong * c.openBlocks() }

// reserved is how many blocks of the queue messages leave: for receives, and for rendezvous that have come into buffers
// for many.
func (c *MatchConfig) reserved() int {
	if c.unreserved || c.Mode == MatchSoftware {
		return 1
	}
	return min(stateEvents+c.forMany()+perReceive*c.Receives, mostReserved)
}

// sure is how many receives have room reserved for their events.
func (c *MatchConfig) sure() int {
	if c.unreserved || c.Mode == MatchSoftware {
		return c.Receives
	}
	return min((c.reserved()-stateEvents-c.forMany())/perReceive, c.Receives)
}

// openBlocks are blocks that messages may take: the NIC gets them back by quarters.
func (c *MatchConfig) openBlocks() int { return c.waiting()*5/4 + blocksKept }

// openEvents opens the queue.
func (x *matchRx) openEvents() error {
	c, q := &x.m.cfg, &x.events
	n := uint32(c.reserved())
	err := q.open(x.m.i.d, c.openBlocks()+int(n), true, x.m.i.wait, n)
	if err == nil {
		q.Every(uint32(c.openBlocks()) / 4 * 64)
	}
	return err
}

// certain reports whether the events of one more receive of one message have room reserved. The caller has the lock.
// It needs nothing of the runtime.
func (x *matchRx) certain() bool {
	return x.sure == len(x.list) || len(x.list)-x.free.Len() < x.sure
}

// hasRoom reports whether the events that a receive may bring have room. If not, messages are taken over where it is
// those that are too many. The caller has the lock.
func (x *matchRx) hasRoom(multi bool) bool {
	c := &x.m.cfg
	if x.flow.core.software || c.unreserved || !multi && x.certain() {
		return true
	}
	kept := int(x.early.kept.Load())
	room := c.waiting() - perMessage*max(kept, 0)
	if room < 0 {
		x.crowded.Store(true)
		x.later.Store(true)
		return false
	}
	most := room / (1 + perMessage)
	return x.events.Unread(most+1) <= most
}

// relieve has messages be taken over if they are too many for receives. Lease.
func (x *matchRx) relieve() {
	if !x.crowded.Load() {
		return
	}
	x.crowded.Store(false)
	x.lock.take()
	x.flow.stop(x.early.kept.Load() > 0, x.flow.core.hybrid)
	x.lock.give()
}
