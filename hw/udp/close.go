package udp

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// closeWait bounds how long Close itself waits for what was sent to arrive.
const closeWait = 5 * time.Millisecond

// lingering counts the interfaces of the process that are closed and still send. Written by Close
// and what it leaves behind, read by Settle; sequentially consistent.
var lingering atomic.Int32

// Settle waits until no closed interface of the process has anything left to send, for Config.Linger
// at most. It goes to the end of a process, which would take with it what has not arrived.
func Settle() {
	for lingering.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// Close ends all connections. Messages that were posted still go to their
// peers, for Config.Linger at most; what takes longer than a moment happens in
// the background, and the address stays taken until then. When all has arrived the
// address is free, also if a peer does not answer any more. The caller has
// stopped all threads that use the interface.
func (i *Iface) Close() error {
	if i.closed.Swap(true) {
		return nil
	}
	if i.cfg.mapper != nil {
		i.cfg.mapper.leave(i)
	}
	i.timerLoop.end()
	i.wait.close()
	begin := i.now()
	for _, s := range i.stripes {
		s.lease.lock()
		s.begone(begin)
		s.leave()
	}
	i.cancel()
	i.sayClosed()
	if i.cfg.Linger > 0 && i.linger(begin.Add(min(closeWait, i.cfg.Linger)), 20*time.Microsecond,
		unclosed) &&
		i.cfg.Linger > closeWait && i.any(unsent) {
		lingering.Add(1)
		go func() {
			defer lingering.Add(-1)
			i.linger(begin.Add(i.cfg.Linger), time.Millisecond, unsent)
			i.freeStripes()
		}()
		return nil
	}
	i.freeStripes()
	return nil
}

// begone has all connections of the stripe close, when what was posted has arrived.
func (s *stripe) begone(now congestion.Time) {
	for _, c := range s.conns {
		if c == nil {
			continue
		}
		c.ops.answered() // what was delivered has been performed
		c.ops.abandon(hw.ErrCanceled)
		switch {
		case c.at() == up && !c.half:
			c.phase.Store(uint32(leaving))
			c.transmit(now)
		default:
			c.phase.Store(uint32(dead))
			c.due = 0
		}
	}
}

// sayClosed closes the connections with peers that have all that was sent to them, over
// any connection: a Close is the last that a peer hears of the interface.
func (i *Iface) sayClosed() {
	waiting := i.peersThat(func(c *Endpoint) bool { return c.at() == leaving && c.tx.pending() })
	now := i.now()
	for _, s := range i.stripes {
		s.lease.lock()
		for _, c := range s.conns {
			if c != nil && c.at() == leaving && !c.tx.closing && !waiting[c.addr] {
				c.tx.closing = true
				c.transmit(now)
			}
		}
		s.leave()
	}
}

// unclosed reports whether the peer has not said that it got the Close.
func unclosed(c *Endpoint) bool { return c.at() == leaving && !c.tx.closed }

// unsent reports whether messages are on their way, or the Close has not left. A
// peer that did not get the Close learns from the closed port.
func unsent(c *Endpoint) bool {
	return unclosed(c) && (c.tx.pending() || c.tx.closeSent == 0)
}

// pending reports whether something has not arrived, or waits for room.
func (t *sender) pending() bool { return t.acked != t.tail || len(t.replies) > 0 }

// any reports whether is says so of a connection.
func (i *Iface) any(is func(*Endpoint) bool) bool {
	found := false
	i.each(func(c *Endpoint) { found = found || is(c) })
	return found
}

// linger serves the connections until none has something left to do, or
// end is over. It returns true if some still have.
func (i *Iface) linger(end congestion.Time, pause time.Duration, has func(*Endpoint) bool) bool {
	for {
		for _, s := range i.stripes {
			s.lease.lock()
			s.work()
			s.acks(i.now())
			s.leave()
		}
		i.sayClosed()
		left := i.any(has)
		if !left || i.now() >= end {
			return left
		}
		time.Sleep(pause)
	}
}

// cancel ends the operations when Close has ended.
func (i *Iface) cancel() {
	i.flushes.Dispatch()
	d := &i.deliver
	for _, s := range i.stripes {
		s.lease.lock()
		d.ended = append(d.ended, s.ended...)
		s.ended = nil
		s.leave()
	}
	i.complete()
}
