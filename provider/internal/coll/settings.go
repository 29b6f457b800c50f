package coll

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// settingsOf are an endpoint's.
func (g *Group) settingsOf() (s wire.CollSettings) {
	cfg := g.c.cfg
	for i, name := range wire.AllToAllNames {
		if name == cfg.AllToAll {
			s.Algorithm = uint8(i)
		}
	}
	s.Sched, s.Spans, s.First = cfg.Sched, g.join.spans, g.join.first
	s.Relay, s.RelaySize = cfg.Relay != "no", uint32(cfg.RelaySize)
	return s
}

// agree ends a join of which a member has said of itself what differs from this one. All members have this side's word
// by then, so they find a difference, too, and it is not withdrawn: those that join later have to come by it.
func (g *Group) agree(c *Protocol) {
	own := g.settingsOf()
	for rank := range g.members {
		m := &g.members[rank]
		if m.peer == nil || !m.joined {
			continue
		}
		if err := own.Differs(&m.settings); err != nil {
			g.warn("join: rank %d: %v", rank, err)
			g.fails(c, fi.EINVAL, false)
			return
		}
	}
}

// Copies reports whether chunks of all-to-alls go as puts or gets where they can.
func Copies(c *config.Config) bool {
	return c.AllToAll == "put" || c.AllToAll == "get" || c.AllToAll == "auto"
}

// relayHosts is how many hosts a group has at least in which members relay.
const relayHosts = 4

// decide says whether all-to-alls go by an engine, when all members have joined.
func (g *Group) decide(c *Protocol) {
	cfg := g.c.cfg
	_, byPlan := fixedOrders[cfg.AllToAll]
	spans, hosts := g.join.spans, 0
	if g.join.first {
		hosts++
	}
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil {
			spans = spans || m.settings.Spans
			if m.settings.First {
				hosts++
			}
		}
	}
	w := ways{algorithm: cfg.AllToAll}
	w.scheduled = len(g.members) > 1 && !byPlan && (cfg.Sched == config.Yes || cfg.Sched == config.Auto && spans)
	w.gets = w.scheduled && cfg.AllToAll == "get"
	w.puts = w.scheduled && Copies(cfg) && !w.gets
	w.relays = w.scheduled && hosts >= relayHosts && cfg.Relay != "no"
	if g.ways = w; w.scheduled {
		c.ordered.openBesides()
	}
}

// reach connects to all members, each beside the others, and finds whether one is reached over the network, and whether
// one of a lower rank is not. Errors: fi.EAGAIN while one is not connected, and those of connect.
func (g *Group) reach() (awaited error) {
	g.join.first = true
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil {
			continue
		}
		p, err := m.peer.Connect()
		switch {
		case errors.Is(err, fi.EAGAIN):
			awaited = err
			continue
		case err != nil:
			return err
		}
		far := p.Over().Caps&hw.CapDrops != 0
		g.join.spans = g.join.spans || far
		g.join.first = g.join.first && (far || i > g.rank)
	}
	return awaited
}
