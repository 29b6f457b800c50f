package coll

import (
	"time"

	"github.com/weft-fabric/weft/hw"
)

// rowAge is how old what is known of a path may be at the start of an operation: two of the longest intervals of probes
// that are of use. What is older says nothing about queues.
const rowAge = 200 * time.Millisecond

// row is a member's own row of the group's round-trip times, an entry at a time, at the start of an operation: the
// queueing delay of the path to a peer and its mean deviation, from the connection's statistics, which have the
// round-trip times of packets and those of probes, if these are sent. False if the latest is older than rowAge, or than
// the end of the operation before, in which chunks have measured the path.
func (x *collExchange) row(g *Group, peer int) (queue, dev time.Duration, ok bool) {
	m := &g.members[g.rankOf(peer)]
	if m.gone || m.dead {
		return 0, 0, false
	}
	p, ready := m.peer.Ready()
	if !ready {
		return 0, 0, false
	}
	newest := rowAge
	if x.ended != 0 {
		newest = min(newest, x.c.ep.Now().Sub(x.ended))
	}
	r, reports := p.Transport().(hw.PathReporter)
	if !reports {
		return 0, 0, false
	}
	at, ok := r.Path()
	if !ok || at.Samples == 0 || at.Age >= newest {
		return 0, 0, false
	}
	return max(at.RTT-at.Min, 0), at.RTTVar, true
}
