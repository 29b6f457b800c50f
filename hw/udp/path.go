package udp

import "github.com/weft-fabric/weft/hw"

// Path returns what is measured of the path; see hw.PathReporter. Samples come
// with the acknowledgements of packets that are new.
func (c *Endpoint) Path() (hw.PathInfo, bool) {
	s := c.stats.Read()
	if s.Updated == 0 {
		return hw.PathInfo{}, false
	}
	waiting := uint64(0)
	if c.s.lease.try() {
		waiting = c.tx.tail - c.tx.next
		c.s.lease.unlock()
	}
	return hw.PathInfo{
		RTT: s.SRTT, RTTVar: s.RTTVAR, Min: s.Min, Max: s.Max, Samples: s.Samples, Lost: s.Lost, Window: s.Window,
		Age: max(c.i.now().Sub(s.Updated), 0), Waiting: int64(waiting),
	}, true
}
