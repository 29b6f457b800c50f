package transport

import (
	"sync"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// What C calls when it drives a transport (ibv.Functions), without the runtime where package direct has a trampoline:
// nothing here allocates, stores a pointer, sleeps or calls assembly. What that does not allow is left to Progress
// and to the methods of package verbs, in the state in which it was found.

// drivenFunctions are what C calls.
var drivenFunctions = ibv.Functions{Send: Send, Next: Next, Peek: Peek, Take: Take, Flush: Flush,
	Again: Again}

var declare = sync.OnceFunc(func() { ibv.SetFunctions(drivenFunctions) })

// Route has C call them without the runtime, where package direct has a trampoline, or else by callbacks, as at
// first. It reports whether C calls them without the runtime. It holds for all transports of the process.
func Route(without bool) bool {
	declare()
	return ibv.Route(without)
}

// then says what comes when the device has done what was wanted.
type then uint64

const (
	thenSent   then = iota // a message is sent
	thenCorked             // another one is corked
	thenFull               // there is no place for a message
	thenNext               // what was corked is sent, and Next goes on
	thenPolled             // the queues were polled, and Next goes on
	thenDone
)

// Send sends a message over a path.
func Send(path, message, call, _ uintptr) uintptr {
	p, m, c := peerAt(path), messageAt(message), ibv.CallAt(call)
	if p.Blocked.Load() != 0 || p.Window.Load() != 0 {
		return hot.PathGo
	}
	q := p.queue
	pos, ok := q.Claim(QueueReserve)
	if !ok {
		if p.transport.flush(c, thenFull) {
			return hot.PathFull
		}
		return p.full()
	}
	head, payload := Content(m)
	n := p.Put(pos, m.ID, m.Header, head, payload)
	q.Ready(pos)
	if corks, before := p.holds(m.Hold, n); corks {
		p.transport.queuePosts(before, c, thenCorked)
		return hot.PathCorked
	}
	p.transport.queuePosts(q, c, thenSent)
	return hot.PathSent
}

// full says that there is no place.
func (p *Peer) full() uintptr {
	if p.queue.FullForNow() {
		return hot.PathFull
	}
	return hot.PathGo
}

// Next polls for a message. Lease.
func Next(transport, message, call, _ uintptr) uintptr {
	p, c := transportAt(transport), ibv.CallAt(call)
	order.Store32(&p.polls, p.polls+1)
	if p.flush(c, thenNext) {
		return hot.TransportEmpty
	}
	return p.next(messageAt(message), c)
}

// ringPolls: while messages come by rings, one poll in so many includes the queues.
const ringPolls = 4

// passesBy reports whether a poll is of the rings only.
func (l *lease) passesBy() bool {
	if l.ringsHad {
		if l.passed++; l.passed < ringPolls {
			return true
		}
	}
	l.passed = 0
	return false
}

// next is Next when nothing is corked.
func (p *Transport) next(m *hot.TransportMessage, c *ibv.Call) uintptr {
	if p.Calls.Load() != 0 {
		return hot.TransportGo
	}
	if p.Staged() != 0 {
		return p.first(m)
	}
	if p.lease.ringsDue {
		p.lease.ringsDue = false
		if found := p.FindWritten(m); found != hot.TransportEmpty {
			return found
		}
	}
	if p.lease.passesBy() || !p.tryPoll() {
		return p.behindPoll(m)
	}
	if p.Staged() != 0 {
		p.polled()
		return p.behindPoll(m)
	}
	p.want(c, false)
	c.Keep(uint64(thenPolled), 0)
	return hot.TransportEmpty
}

// behindPoll is what next finds behind a poll.
func (p *Transport) behindPoll(m *hot.TransportMessage) uintptr {
	if p.Staged() != 0 {
		p.EndStaged()
	}
	if p.Staged() == 0 {
		return p.FindWritten(m)
	}
	p.lease.ringsDue = true
	return p.first(m)
}

// first is what is staged first.
func (p *Transport) first(m *hot.TransportMessage) uintptr {
	if found := p.FindArrived(m); found != hot.TransportEmpty {
		return found
	}
	return hot.TransportGo // completions that are Progress's
}

// Peek is Next of senders only that write into rings. Lease.
func Peek(transport, message, _, _ uintptr) uintptr {
	return transportAt(transport).FindWritten(messageAt(message))
}

// Take is done with the message that Next or Peek has found. Lease.
func Take(transport, _, _, _ uintptr) uintptr {
	p := transportAt(transport)
	p.countTaken()
	if p.Take() {
		return 1
	}
	return 0
}

// Flush sends what is corked.
func Flush(transport, _, call, _ uintptr) uintptr {
	transportAt(transport).flush(ibv.CallAt(call), thenDone)
	return 0
}

// Again goes on with what was called with these arguments, when the device has done what it wanted.
func Again(object, message, call, _ uintptr) uintptr {
	c := ibv.CallAt(call)
	kept, address := c.Kept()
	next := then(kept)
	if next == thenPolled {
		p := transportAt(object)
		ok := p.stage(c)
		p.polled()
		if !ok {
			return hot.TransportGo
		}
		return p.behindPoll(messageAt(message))
	}
	if posting, _ := queueAt(address).goOn(c); posting {
		c.Keep(kept, address)
		return 0
	}
	switch next {
	case thenSent:
		return hot.PathSent
	case thenCorked:
		return hot.PathCorked
	case thenFull:
		return peerAt(object).full()
	case thenNext:
		return transportAt(object).next(messageAt(message), c)
	}
	return 0
}
