package udp

import "github.com/weft-fabric/weft/hw"

// Path returns what is measured of the path; see hw.PathReporter. Samples come
// with the acknowledgements of packets that are new.
func (c *Endpoint) Path() (hw.PathInfo, bool) {
	s := c.stats.Read()
	if s.Updated == 0 {
		return hw.PathInfo{}, false
	}
	return hw.PathInfo{
		RTT: s.SRTT, RTTVar: s.RTTVAR, Min: s.Min, Max: s.Max, Samples: s.Samples, Lost: s.Lost, Window: s.Window,
		Age: max(c.i.now().Sub(s.Updated), 0),
	}, true
}

// Unsent returns how many bytes of messages wait to be sent for the first time; see hw.Streamer.
func (c *Endpoint) Unsent() (int64, bool) {
	if !c.s.lease.try() {
		return 0, false
	}
	defer c.s.lease.unlock()
	return int64(c.tx.tail - c.tx.next), true
}
