package cxi

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// reasonOf is why the NIC has stopped by itself, or has left matching to software.
func reasonOf(reason int) hw.MatchReason {
	switch reason {
	case wire.ReasonFcEqFull:
		return hw.MatchNoEvents
	case wire.ReasonFcNoMatch:
		return hw.MatchNoBuffers
	case wire.ReasonFcUnexpectedFail:
		return hw.MatchNoEntries
	case wire.ReasonFcRequestFull:
		return hw.MatchNoRequests
	case wire.ReasonSmUnexpectedFail:
		return hw.MatchSoftUnexpected
	case wire.ReasonSmAppendFail:
		return hw.MatchSoftReceive
	}
	return hw.MatchElse
}

// MatchStats returns the counters of flow control. It takes the locks of posts for a moment.
func (m *matcher) MatchStats() hw.MatchStats {
	c := &m.rx.flow.counts
	s := hw.MatchStats{State: m.rx.flow.state(), Onloaded: c.onloaded.Load(),
		Software: c.matched.Load(), Refused: c.refused.Load(), Overruns: c.overruns.Load(),
		Unknown: c.unknown.Load(), Malformed: m.rx.malformed.Load()}
	s.Stopped[hw.MatchBySoftware] = c.software.Load()
	for k := range c.reasons {
		s.Stopped[reasonOf(k)] += c.reasons[k].Load()
	}
	for _, t := range m.txs {
		s.Dropped += t.drops.Load()
		t.lock.take()
		s.Doorbells += t.q.Bells
		t.release(false)
	}
	m.rx.lock.take()
	s.Doorbells += m.rx.portal.q.Bells
	m.rx.lock.give()
	return s
}
