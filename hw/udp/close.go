package udp

import (
	"time"

	"github.com/weft-fabric/weft/congestion"
	"github.com/weft-fabric/weft/hw"
)

// closeWait bounds how long Close itself waits for what was sent to arrive.
const closeWait = 5 * time.Millisecond

// Close ends all connections. Messages that were posted still go to their
// peers, for Config.Linger at most; what takes longer than a moment happens in
// the background, and the address stays taken until then. The caller has
// stopped all threads that use the interface.
func (i *Iface) Close() error {
	if i.closed.Swap(true) {
		return nil
	}
	i.keeper.end()
	i.wait.close()
	begin := i.now()
	for _, s := range i.stripes {
		s.lease.lock()
		s.begone(begin)
		s.leave()
	}
	i.cancel()
	if i.cfg.Linger > 0 && i.linger(begin.Add(min(closeWait, i.cfg.Linger)), 20*time.Microsecond) && i.cfg.Linger > closeWait {
		go func() {
			i.linger(begin.Add(i.cfg.Linger), time.Millisecond)
			i.freeStripes()
		}()
		return nil
	}
	i.freeStripes()
	return nil
}

// begone has all connections of the stripe close.
func (s *stripe) begone(now congestion.Time) {
	for _, c := range s.conns {
		if c != nil {
			c.abandon(hw.ErrCanceled)
		}
		switch {
		case c == nil:
		case c.at() == up && !c.half:
			c.phase.Store(uint32(leaving))
			c.tx.closing = true
			c.transmit(now)
		default:
			c.phase.Store(uint32(dead))
			c.due = 0
		}
	}
}

// linger looks after the connections that have something to send until none
// has or end is over. It returns true if some still have.
func (i *Iface) linger(end congestion.Time, pause time.Duration) bool {
	for {
		left := false
		for _, s := range i.stripes {
			s.lease.lock()
			s.work()
			s.acks(i.now())
			for _, c := range s.conns {
				left = left || c != nil && c.at() == leaving && !c.tx.closed
			}
			s.leave()
		}
		if !left || i.now() >= end {
			return left
		}
		time.Sleep(pause)
	}
}

// cancel tells the operations that Close has ended.
func (i *Iface) cancel() {
	d := &i.deliver
	for _, s := range i.stripes {
		s.lease.lock()
		d.finished = append(d.finished, s.finished...)
		s.finished = nil
		s.leave()
	}
	i.tell()
}
