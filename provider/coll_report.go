package provider

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
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

// GroupOf returns the group of an address. Errors: fi.EOPBADSTATE on an endpoint without
// collective operations, fi.EINVAL if there is no such group.
func (e *Endpoint) GroupOf(group fi.Addr) (*Group, error) {
	c := e.coll
	if c == nil {
		return nil, fi.EOPBADSTATE
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.find(group)
	if g == nil {
		return nil, e.refuse(fi.EINVAL, "collective: %#x is no group of the endpoint",
			uint64(group))
	}
	return g, nil
}

// Path is what the transport measures of the path to a peer.
type Path struct {
	// Base is the least round-trip time, Smoothed the smoothed one and Deviation its mean
	// deviation (RFC 6298). Queue is how much longer than Base packets lately were on their
	// way.
	Base, Smoothed, Deviation, Queue time.Duration
	// Rate is the bytes per second that the congestion window lets through.
	Rate float64
	// Samples are the round-trip times taken in, and Lost the packets and probes without an
	// answer.
	Samples, Lost uint64
	// Age is how long ago the last of them was.
	Age time.Duration
}

// Path returns what is measured of the path to a peer. Errors: fi.EINVAL for an address that is
// not in the address vector, fi.ENODATA for a peer that is not connected or of which nothing has
// been measured yet, and fi.EOPNOTSUPP where the transport measures nothing, as on one host.
func (e *Endpoint) Path(addr fi.Addr) (Path, error) {
	l, err := e.linkOf(addr)
	if err != nil {
		return Path{}, e.refuse(fi.EINVAL, "path: address %d is not in the address vector", addr)
	}
	defer l.Release()
	p, ok := l.ready()
	if !ok {
		return Path{}, fi.ENODATA
	}
	r, ok := p.Endpoint.(hw.PathReporter)
	if !ok {
		return Path{}, fi.EOPNOTSUPP
	}
	at, ok := r.Path()
	if !ok || at.Samples == 0 {
		return Path{}, fi.ENODATA
	}
	return Path{
		Base: at.Min, Smoothed: at.RTT, Deviation: at.RTTVar, Queue: at.RTT - at.Min,
		Rate:    float64(at.Window) * float64(time.Second) / float64(max(at.RTT, 1)),
		Samples: at.Samples, Lost: at.Lost, Age: at.Age,
	}, nil
}

// count counts what the engine has done since it last counted.
func (x *collExchange) count(st *stats.Endpoint) {
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
