package cxi

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// stateNames are libfabric's names.
var stateNames = map[flowState]string{
	flowDisabled: "DISABLED", flowEnabled: "ENABLED", flowPendingDisable: "PENDING_PTLTE_DISABLE",
	flowOnload:         "ONLOAD_FLOW_CONTROL",
	flowOnloadReenable: "ONLOAD_FLOW_CONTROL_REENABLE", flowControl: "FLOW_CONTROL",
}

// reasonNames are those for which the NIC stops.
var reasonNames = map[int]string{
	wire.ReasonFcEqFull: "events", wire.ReasonFcNoMatch: "buffers", wire.ReasonFcUnexpectedFail: "entries",
	wire.ReasonFcRequestFull: "request buffers",
}

// MatchStats returns the counters of flow control.
func (m *matcher) MatchStats() hw.MatchStats {
	c := &m.rx.flow.counts
	s := hw.MatchStats{State: stateNames[m.rx.flow.state()],
		Stopped: map[string]uint64{"software": c.software.Load()},
		Dropped: m.tx.drops.Load(), Onloaded: c.onloaded.Load(), Software: c.matched.Load(),
		Refused:   c.refused.Load(),
		Malformed: m.rx.malformed.Load()}
	for k := range c.reasons {
		name := reasonNames[k]
		if name == "" {
			name = "other"
		}
		s.Stopped[name] += c.reasons[k].Load()
	}
	return s
}
