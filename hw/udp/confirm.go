package udp

import "github.com/weft-fabric/weft/hw"

// Confirm checks, by a ping, that the peer still knows the connection; another interface that has
// its address by now does not. nil: it has answered since the first call. Errors: hw.ErrNoResource
// until then, hw.ErrPeerDead. Any thread.
func (c *Endpoint) Confirm() error {
	if err := c.Err(); err != nil {
		return err
	}
	if !c.s.lease.spin() {
		return hw.ErrNoResource
	}
	defer c.s.leave()
	c.s.work() // what the peer sent before
	switch t := &c.tx; {
	case c.at() != up:
		return c.Err()
	case t.confirms == 0:
		t.confirms = t.sent.Number()
		t.ping, t.urgent = true, true
		c.transmit(c.i.now())
	case t.sent.Largest() >= t.confirms:
		t.confirms = 0
		return nil
	}
	return hw.ErrNoResource
}
