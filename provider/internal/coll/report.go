package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/stats"
)

// Report returns what the engine says of the group's last all-to-all that it ordered and that has
// completed; the zero value before the first.
func (g *Group) Report() exchange.Report {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return g.report
}

// PeerReports returns that report, and what became of the operation's slices of each rank, in the
// group's order; the own rank's is the zero value. Errors: fi.ENODATA before the first such
// operation, or if the next one has failed, and fi.EAGAIN while that is under way.
func (g *Group) PeerReports() (exchange.Report, []exchange.PeerReport, error) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	switch {
	case g.last == nil:
		return exchange.Report{}, nil, fi.ENODATA
	case !slices.Contains(g.spare, g.last):
		return exchange.Report{}, nil, fi.EAGAIN
	}
	all := make([]exchange.PeerReport, len(g.members))
	for r := range all {
		if r != g.rank {
			all[r] = g.last.engine.Peer(g.peerOf(r))
		}
	}
	return g.report, all, nil
}

// Find returns the group of an address. Errors: fi.EINVAL if there is no such group.
func (c *Groups) Find(group fi.Addr) (*Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.find(group)
	if g == nil {
		return nil, c.refuse(fi.EINVAL, "collective: %#x is no group of the endpoint", uint64(group))
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
