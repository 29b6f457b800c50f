package udp

import (
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// CheckPeers finds peers that are gone and calls the peer event function
// for each. The caller holds the progress lease.
func (i *Iface) CheckPeers() {
	if i.closed.Load() {
		return
	}
	for _, s := range i.stripes {
		s.lease.lock()
		s.work()
		now := i.now()
		s.keepAlive(now)
		s.acks(now)
		unknown := s.reclaim()
		i.deliver.collect(s)
		s.leave()
		for _, c := range unknown { // Connect takes mu before a lease
			i.forget(c)
		}
	}
	i.complete() // before the peer events: these operations have ended
	i.report()
}

// report calls the peer event function. The event of a peer that is gone waits
// until what it sent over other connections is delivered, for there may be answers in it. A connection
// that began when nothing came from it any more is of another peer, which has its address now.
func (i *Iface) report() {
	d := &i.deliver
	if len(d.events) == 0 {
		return
	}
	oldest := map[sock.Addr]congestion.Time{} // when the oldest with something unread began
	i.each(func(c *Endpoint) {
		if began, ok := oldest[c.addr]; (c.rx.queued || c.deliver.visited) && (!ok || c.began < began) {
			oldest[c.addr] = c.began
		}
	})
	events := d.events
	d.events = nil
	for _, e := range events {
		c, to := e.Endpoint.(*Endpoint)
		if to {
			if began, ok := oldest[c.addr]; ok && began <= c.life.heard {
				d.events = append(d.events, e)
				continue
			}
		}
		i.lost.Add(1)
		i.onPeer(e)
		if to {
			i.forget(c) // not before: a new connection must know what has ended
		}
	}
}

// each calls f for every connection, with its stripe's lease.
func (i *Iface) each(f func(*Endpoint)) {
	for _, s := range i.stripes {
		s.lease.lock()
		for _, c := range s.conns {
			if c != nil {
				f(c)
			}
		}
		s.leave()
	}
}

// peersThat returns the addresses of the peers with a connection for which is returns true.
func (i *Iface) peersThat(is func(*Endpoint) bool) map[sock.Addr]bool {
	set := map[sock.Addr]bool{}
	i.each(func(c *Endpoint) {
		if is(c) {
			set[c.addr] = true
		}
	})
	return set
}

// keepAlive asks peers that have been silent for long whether they are there.
func (s *stripe) keepAlive(now congestion.Time) {
	interval := max(s.i.cfg.KeepAlive, time.Duration(len(s.conns))*time.Millisecond)
	for _, c := range s.conns {
		if c != nil && c.at() == up && !c.half && c.tx.sent.Flying() == 0 && now.Sub(c.life.heard) >= interval {
			c.tx.ping, c.tx.urgent = true, true
			c.transmit(now)
		}
		if c != nil {
			c.rest(now)
		}
	}
}

// restAfter is how long a connection carries no message until it gives the memory
// of its rings back, in which a busy one has touched every page.
const restAfter = 2 * time.Second

// rest gives the rings back if they are empty and have not been used for long. The
// caller has the progress lease too.
func (c *Endpoint) rest(now congestion.Time) {
	t, r := &c.tx, &c.rx
	if t.ring.b == nil && r.ring.b == nil {
		return
	}
	if t.tail != c.rested.tail || r.top != c.rested.top {
		c.rested.tail, c.rested.top, c.rested.since = t.tail, r.top, now
		return
	}
	if now.Sub(c.rested.since) < restAfter || t.acked != t.tail || r.top != c.deliver.consumed.Load() || r.queued ||
		c.deliver.visited {
		return
	}
	c.s.flush() // nothing built points into the ring any more
	c.freeRings()
}

// reclaim reports connections that are dead, when what the peer sent is delivered: there may be answers in it. It
// returns those that no Connect has returned, which the caller forgets.
func (s *stripe) reclaim() (unknown []*Endpoint) {
	i := s.i
	kept := s.dead[:0]
	for _, c := range s.dead {
		if c.rx.queued || c.deliver.visited {
			kept = append(kept, c)
			continue
		}
		if c.attached.Load() {
			i.deliver.events = append(i.deliver.events, hw.PeerEvent{Endpoint: c, Err: hw.ErrPeerDead})
		} else {
			unknown = append(unknown, c)
		}
		if c.deliver.known {
			c.deliver.known = false
			i.deliver.sources[c.deliver.source] = nil
			i.deliver.events = append(i.deliver.events, hw.PeerEvent{Source: c.deliver.source, HasSource: true,
				Closed: c.ended, Err: hw.ErrPeerDead})
		}
		s.remove(c)
	}
	clear(s.dead[len(kept):])
	s.dead = kept
	return unknown
}

// forget has the next Connect to the peer begin anew. The caller has no stripe's lease.
func (i *Iface) forget(c *Endpoint) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c.deliver.reported.Store(true)
	if i.peers[c.known] == c {
		delete(i.peers, c.known)
	}
}
