package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
)

// engines are those of a group's operations that have ended, with what they know of the paths, and what the last one
// says. Under Groups.mu.
type engines struct {
	spare  []*collExchange
	report exchange.Report // of the last operation that an engine ordered
	last   *collExchange   // by which that went; not in spare: another operation has it; nil: that has failed
}

// take takes an engine, nil: there is none.
func (e *engines) take() *collExchange {
	n := len(e.spare)
	if n == 0 {
		return nil
	}
	x := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return x
}

// put gives an engine back.
func (e *engines) put(x *collExchange) { e.spare = append(e.spare, x) }

// completed gives the engine of an operation that has completed back, and keeps its report.
func (e *engines) completed(x *collExchange) {
	e.report, e.last = x.engine.Report(), x
	e.report.Took = x.ended.Sub(x.began)
	e.put(x)
}

// failed takes in that the operation of an engine has failed: it does not know what has come of its chunks.
func (e *engines) failed(x *collExchange) {
	if e.last == x {
		e.last = nil
	}
}

// Report returns what the engine says of the group's last all-to-all that it ordered and that has
// completed; the zero value before the first.
func (g *Group) Report() exchange.Report {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return g.engines.report
}

// PeerReports returns that report, and what became of the operation's slices of each rank, in the
// group's order; the own rank's is the zero value. Errors: fi.ENODATA before the first such
// operation, or if the next one has failed, and fi.EAGAIN while that is under way.
func (g *Group) PeerReports() (exchange.Report, []exchange.PeerReport, error) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	switch {
	case g.engines.last == nil:
		return exchange.Report{}, nil, fi.ENODATA
	case !slices.Contains(g.engines.spare, g.engines.last):
		return exchange.Report{}, nil, fi.EAGAIN
	}
	all := make([]exchange.PeerReport, len(g.members))
	for r := range all {
		if r != g.rank {
			all[r] = g.engines.last.engine.Peer(g.peerOf(r))
		}
	}
	return g.engines.report, all, nil
}

// Find returns the group of an address. Errors: fi.EINVAL if there is no such group.
func (c *Groups) Find(group fi.Addr) (*Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.find(group)
	if g == nil {
		return nil, log.Reject(log.EPData, fi.EINVAL, "collective: %#x is no group of the endpoint", uint64(group))
	}
	return g, nil
}

// Size is how many members the group has.
func (g *Group) Size() int { return len(g.members) }

// count counts what the engine has done since it last counted.
func (x *collExchange) count(st Counters) {
	r := x.engine.Report()
	st.Rx(stats.RxExchangeChunks, r.Chunks-x.seen.Chunks)
	st.Rx(stats.RxExchangeDeferrals, r.Deferrals-x.seen.Deferrals)
	st.Rx(stats.RxExchangeForced, r.Forced-x.seen.Forced)
	st.Rx(stats.RxExchangeCredits, r.Credits-x.seen.Credits)
	st.Rx(stats.RxExchangeInvited, r.Invited-x.seen.Invited)
	st.Rx(stats.RxExchangeRelayed, r.Relayed-x.seen.Relayed)
	st.Rx(stats.RxExchangeCarried, r.Carried-x.seen.Carried)
	st.Rx(stats.RxExchangeAgain, r.Again-x.seen.Again)
	st.RxPeak(stats.RxExchangePeers, stats.RxExchangePeersPeak, uint64(x.engine.Begun()))
	x.seen = r
}
