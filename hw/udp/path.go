package udp

import "github.com/weft-fabric/weft/hw"

// Path returns the round-trip time and the window of the connection, as
// hw.PathReporter asks. False while somebody holds the stripe.
func (c *Endpoint) Path() (hw.PathInfo, bool) {
	if !c.s.lease.try() {
		return hw.PathInfo{}, false
	}
	defer c.s.lease.unlock()
	if c.tx.path == nil {
		return hw.PathInfo{}, false
	}
	return hw.PathInfo{RTT: c.tx.path.RTT().SRTT(), Window: c.tx.path.Control().Window()}, true
}
