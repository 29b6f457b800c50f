package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
)

// What the lease holder does for a connection.

// lingerTime is how long messages of a peer on another host may follow the end of the connection, which does not come
// on the same path, and one another: one that is lost is sent again in that time.
const lingerTime = 250 * time.Millisecond

// emptyPolls is how many polls in turn find nothing when nothing has arrived: a transport that has been idle polls
// its socket in one of several only.
const emptyPolls = 64

// only is h for the messages of the peer. Others may know the endpoint's name,
// but have no business with it.
func (c *connected) only(h hw.Handler) hw.Handler {
	return func(src hw.Source, header uint64, head, payload []byte) {
		if !c.isPeer(src) {
			c.e.malformed(src, "message to a connected endpoint that its peer has not sent")
			return
		}
		h(src, header, head, payload)
	}
}

// isPeer reports whether a source is the peer.
func (c *connected) isPeer(src hw.Source) bool {
	s := c.e.senderOf(src)
	if c.peerID == 0 {
		if c.e.rx.ids.Name(s.ID) != *c.Sender() {
			return false
		}
		c.peerID = s.ID
	}
	return s.ID == c.peerID
}

// ending reports whether step has something to do.
func (c *connection) ending() bool { return c.flush.Load() != 0 }

// connected is a connection as the holder of the progress lease has it, and the protocol that ends what is under way.
type connected struct {
	*connection
	e *leasedEP
}

func (c *connected) Handlers() map[hw.AMID]hw.Handler { return nil }
func (c *connected) Busy() bool                       { return c.ending() }
func (c *connected) Requested() bool                  { return c.ending() }
func (c *connected) SourceLost(hw.Source)             {}
func (c *connected) PeerLost(uint32, fi.Errno)        {} // PeerGone does

// Pump ends what is under way on a connection that has ended, once nothing comes any more: progress takes messages in
// as ever meanwhile.
func (c *connected) Pump() {
	if !c.ending() {
		return
	}
	if len(c.e.ep.base.transports.networks) != 0 {
		now := time.Now()
		if n := c.takenIn(); n != c.taken {
			c.taken, c.arrived = n, now
		}
		if now.Sub(c.ended) < lingerTime || now.Sub(c.arrived) < lingerTime {
			return
		}
		if c.takeIn() {
			return // the next pump sees it, and more may follow
		}
	}
	c.flush.Store(0)
	c.end(fi.ECONNRESET)
}

// takenIn is how many messages the endpoint has taken in, in the data plane and in Go.
func (c *connected) takenIn() uint64 {
	return c.e.ep.base.stats.RxTotal(stats.RxDirect) + c.e.ep.base.stats.RxTotal(stats.RxArrivals)
}

// takeIn takes in what has arrived, as much as there can be, but not for ever, and reports whether that is anything.
func (c *connected) takeIn() bool {
	e, empty := c.e, 0
	before := c.takenIn()
	for _, p := range e.ep.base.transports.networks {
		p.Notify()
	}
	for range e.ep.base.domain.cfg.RingSlots {
		switch n := e.arrivals(e.rx.base.cfg.ProgressBatch, false); {
		case n != 0:
			empty = 0
		case !e.ep.base.transports.iface.Pending():
			if empty++; empty == emptyPolls || len(e.ep.base.transports.networks) == 0 {
				return c.takenIn() != before
			}
		}
	}
	return c.takenIn() != before
}

// end takes in what the peer sent before the end, and ends what is under
// way: transmits with status, receives with fi.ECANCELED.
func (c *connected) end(status fi.Errno) {
	e, r := c.e, c.e.rx
	e.ep.base.transports.iface.Revoke() // the application has its buffers back with what this ends
	c.takeIn()
	for l := range e.ep.base.links.All() {
		e.linkLost(l, status)
		l.Set(nil) // so that no post fills a line again
	}
	for src := range e.senders.Senders() {
		r.senderLost(e, src)
	}
	if e.ep.base.bound.srx == nil {
		r.matching.Ended = true
		r.matching.CancelAll()
		r.matching.Drain(0) // the younger ones, likewise
	}
}
