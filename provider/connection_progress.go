package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/match"
)

// What the lease holder does for a connection.

// lingerTime is how long messages of a peer on another host may follow the end
// of the connection, which does not come on the same path.
const lingerTime = 50 * time.Millisecond

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
		if c.e.rx.ids.Name(s.id) != *c.Sender() {
			return false
		}
		c.peerID = s.id
	}
	return s.id == c.peerID
}

// ending reports whether step has something to do.
func (c *connection) ending() bool { return c.flush.Load() != 0 }

// connected is a connection as the holder of the progress lease has it, and the protocol that ends what is under way.
type connected struct {
	*connection
	e *leasedEP
}

func (c *connected) handlers() map[hw.AMID]hw.Handler { return nil }
func (c *connected) busy() bool                       { return c.ending() }
func (c *connected) requested() bool                  { return c.ending() }
func (c *connected) sourceLost(hw.Source)             {}
func (c *connected) linkLost(*link, fi.Errno)         {} // PeerGone does

// pump ends what is under way on a connection that has ended.
func (c *connected) pump() {
	if !c.ending() || len(c.ep.networks) != 0 && time.Since(c.ended) < lingerTime {
		return
	}
	c.flush.Store(0)
	c.finish(fi.ECONNRESET)
}

// finish takes in what the peer sent before the end, and ends what is under
// way: transmits with status, receives with fi.ECANCELED.
func (c *connected) finish(status fi.Errno) {
	e, r := c.e, c.e.rx
	for range e.domain.cfg.RingSlots { // as much as there can be, but not for ever
		if !e.iface.Pending() {
			break
		}
		e.arrivals(r.cfg.ProgressBatch)
	}
	for l := range e.links.All() {
		e.linkLost(l, status)
		l.mu.Lock()
		l.path.Store(nil) // so that no post fills a line again
		l.mu.Unlock()
	}
	for _, p := range e.ports {
		for n, s := range p.sources {
			if s.id != 0 {
				r.senderLost(e, p.source(hw.Source(n)))
			}
		}
	}
	if e.srx == nil {
		r.Ended = true
		r.cancelRecvs()
		r.drainPosts(0) // the younger ones, likewise
	}
}

// cancelRecvs ends the posted receives, for which nothing can come any more.
func (r *receiving) cancelRecvs() {
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		for rv := range eng.Recvs() {
			eng.Remove(rv)
			r.dropRecv(eng, rv, fi.ECANCELED)
		}
	}
}
