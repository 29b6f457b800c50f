package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
)

// Long one-sided operations (reads, writes, and reads of rendezvous) go in segments (package flow) where congestion
// control is on. Flows and transfers belong to the holder of the progress lease. Threads that post leave their
// operations to it (queueRMA).

// segmentFlow is the flow of the operations over one path. The movers of its transfers are made of it: rmaMover,
// deviceMover, and those of package rendezvous.
type segmentFlow struct {
	*flow.Flow
	path  *path
	e     *leasedEP
	reads *rendezvous.Flow // of rendezvous
}

// segmented reports whether an operation of n bytes over a port is cut.
func (e *attributes) segmented(p *port, n uint64) bool {
	return p.segments && n > uint64(e.domain.cfg.MinSegment)
}

// flowOf returns the flow of a link's path, nil if there can be none.
func (e *leasedEP) flowOf(l *link, p *path) *segmentFlow {
	at := &l.flow
	if p.back {
		at = &p.flow
	}
	if n := *at; n == nil || n.path != p {
		n.drop(fi.ECONNRESET) // of a path before
		*at = e.newFlow(l, p)
	}
	return *at
}

func (e *leasedEP) newFlow(l *link, p *path) *segmentFlow {
	f, err := e.flows.New(e.domain.cfg, &p.port.attr)
	if err != nil {
		log.Warnf(log.EPData, "no congestion control for %s: %v", l.to, err)
		return nil
	}
	return &segmentFlow{Flow: f, path: p, e: e, reads: e.rendezvous.NewFlow(f, p)}
}

// now is the clock of flows.
func (e *peering) now() congestion.Time { return congestion.Time(time.Since(e.born)) + 1 }

// drop ends the transfers over a path to a peer that is gone. A nil flow has none.
func (n *segmentFlow) drop(status fi.Errno) {
	if n != nil {
		n.Drop(status)
	}
}
