package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// What goes over the wire in an all-to-all has to be alike at all members: each says
// in its join what its variables are, and whether it reaches a member over the network.

// allToAllNames are the values of FI_WEFT_ALLTOALL_ALGORITHM, in the order of their numbers on
// the wire.
var allToAllNames = []string{"auto", "bruck", "pairwise", "message"}

// joinSettings is what a member says of itself.
type joinSettings struct {
	algorithm uint8 // of allToAllNames
	sched     config.Tri
	spans     bool // it reaches a member over the network
	first     bool // it reaches no member of a lower rank otherwise: it is its host's first
	relay     bool // through others
	relaySize uint32
}

// settingsOf are an endpoint's.
func (g *Group) settingsOf() (s joinSettings) {
	cfg := g.ep.domain.cfg
	for i, name := range allToAllNames {
		if name == cfg.AllToAll {
			s.algorithm = uint8(i)
		}
	}
	s.sched, s.spans, s.first = cfg.Sched, g.spans, g.first
	s.relay, s.relaySize = cfg.Relay != "no", uint32(cfg.RelaySize)
	return s
}

const settingsKnown = 0x7ffff

// pack makes all of it but the size of the relay.
func (s *joinSettings) pack() uint32 {
	v := uint32(s.algorithm) | uint32(s.sched)<<8
	for i, set := range []bool{s.spans, s.first, s.relay} {
		if set {
			v |= 1 << (16 + i)
		}
	}
	return v
}

// unpack refuses values that there are not.
func (s *joinSettings) unpack(v uint32) bool {
	*s = joinSettings{algorithm: uint8(v), sched: config.Tri(v >> 8 & 0xff)}
	s.spans, s.first, s.relay = v>>16&1 != 0, v>>17&1 != 0, v>>18&1 != 0
	return v&^settingsKnown == 0 && int(s.algorithm) < len(allToAllNames) && s.sched <= config.No
}

// differs returns the first variable that is not alike, with both values.
func (s *joinSettings) differs(o *joinSettings) error {
	if s.algorithm != o.algorithm {
		return fmt.Errorf("FI_WEFT_ALLTOALL_ALGORITHM is %s here and %s there",
			allToAllNames[s.algorithm], allToAllNames[o.algorithm])
	}
	if s.sched != o.sched {
		return fmt.Errorf("FI_WEFT_RTT_SCHED_ENABLE is %v here and %v there", s.sched, o.sched)
	}
	if s.relay != o.relay {
		name := map[bool]string{true: "auto", false: "no"}
		return fmt.Errorf("FI_WEFT_ALLTOALL_RELAY is %s here and %s there", name[s.relay], name[o.relay])
	}
	if s.relaySize != o.relaySize {
		return fmt.Errorf("FI_WEFT_ALLTOALL_RELAY_SIZE is %d here and %d there", s.relaySize, o.relaySize)
	}
	return nil
}

// agree takes in what a member says of itself.
func (g *Group) agree(rank uint32, s *joinSettings) {
	own := g.settingsOf()
	if err := own.differs(s); err != nil {
		g.warn("join: rank %d: %v", rank, err)
		g.failed(fi.EINVAL)
		return
	}
	g.spans = g.spans || s.spans
	if s.first {
		g.hosts++
	}
}

// relayHosts is how many hosts a group has at least in which members relay.
const relayHosts = 4

// decide says whether all-to-alls go by an engine, when all members have joined.
func (g *Group) decide() {
	cfg := g.ep.domain.cfg
	byPlan := cfg.AllToAll == "bruck" || cfg.AllToAll == "pairwise"
	g.scheduled = len(g.members) > 1 && !byPlan && (cfg.Sched == config.Yes || cfg.Sched == config.Auto && g.spans)
	if g.first {
		g.hosts++
	}
	g.relays = g.scheduled && g.hosts >= relayHosts && cfg.Relay != "no"
}

// reach connects to all members, and finds whether one is reached over the network, and whether
// one of a lower rank is not. Errors:
// fi.EAGAIN while one is not connected, and those of connect.
func (g *Group) reach() error {
	g.first = true
	for i := range g.members {
		m := &g.members[i]
		if m.link == nil {
			continue
		}
		if m.dead {
			return fi.ECONNRESET // whoever has its address now is another
		}
		p, err := g.ep.connect(m.link)
		if err != nil {
			return err
		}
		far := p.port.attr.Caps&hw.CapDrops != 0
		g.spans = g.spans || far
		g.first = g.first && (far || i > g.rank)
	}
	return nil
}
