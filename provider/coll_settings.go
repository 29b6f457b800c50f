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
}

// settingsOf are an endpoint's.
func (g *Group) settingsOf() (s joinSettings) {
	cfg := g.ep.domain.cfg
	for i, name := range allToAllNames {
		if name == cfg.AllToAll {
			s.algorithm = uint8(i)
		}
	}
	s.sched, s.spans = cfg.Sched, g.spans
	return s
}

const settingsKnown = 0x1ffff

func (s *joinSettings) pack() uint32 {
	v := uint32(s.algorithm) | uint32(s.sched)<<8
	if s.spans {
		v |= 1 << 16
	}
	return v
}

// unpack refuses values that there are not.
func (s *joinSettings) unpack(v uint32) bool {
	*s = joinSettings{algorithm: uint8(v), sched: config.Tri(v >> 8 & 0xff), spans: v>>16&1 != 0}
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
}

// decide says whether all-to-alls go by an engine, when all members have joined.
func (g *Group) decide() {
	cfg := g.ep.domain.cfg
	byPlan := cfg.AllToAll == "bruck" || cfg.AllToAll == "pairwise"
	g.scheduled = len(g.members) > 1 && !byPlan && (cfg.Sched == config.Yes || cfg.Sched == config.Auto && g.spans)
}

// reach connects to all members, and finds whether one is reached over the network. Errors:
// fi.EAGAIN while one is not connected, and those of connect.
func (g *Group) reach() error {
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
		g.spans = g.spans || p.port.attr.Caps&hw.CapDrops != 0
	}
	return nil
}
