package rma

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
)

// Long one-sided operations (reads, writes, and reads of rendezvous) go in segments (package flow) where congestion
// control is on. Flows and transfers belong to the holder of the progress lease. Threads that post leave their
// operations to it (Initiator.leaveToProgress).

// Flow is the flow of the operations over one path. The movers of its transfers are made of it: messageMover,
// deviceMover, and those of package rendezvous. It belongs to the holder of the progress lease.
type Flow struct {
	*flow.Flow
	path  *Path
	pr    *Protocol
	reads *rendezvous.Flow // of rendezvous
}

// Reads is the flow as rendezvous have it.
func (f *Flow) Reads() *rendezvous.Flow { return f.reads }

// Flow is the flow of segments over the path of a link, nil: there was none.
func (pr *Protocol) Flow(l *Link) *Flow { return l.flow }

// Drop ends the transfers over a path that belongs to no link, whose peer is gone.
func (pr *Protocol) Drop(p *Path, status fi.Errno) { p.flow.drop(status) }

// FlowOf returns the flow of a link's path, nil if there can be none.
func (pr *Protocol) FlowOf(l *Link, p *Path) *Flow {
	at := &l.flow
	if p.Back {
		at = &p.flow
	}
	if f := *at; f == nil || f.path != p {
		f.drop(fi.ECONNRESET) // of a path before
		*at = pr.newFlow(l, p)
	}
	return *at
}

func (pr *Protocol) newFlow(l *Link, p *Path) *Flow {
	f, err := pr.flows.New(pr.in.cfg, p.On.Attr)
	if err != nil {
		log.Warnf(log.EPData, "no congestion control for %s: %v", pr.ep.NameOf(l), err)
		return nil
	}
	return &Flow{Flow: f, path: p, pr: pr, reads: pr.ep.Reads(f, p)}
}

// drop ends the transfers over a path to a peer that is gone. A nil flow has none.
func (f *Flow) drop(status fi.Errno) {
	if f != nil {
		f.Flow.Drop(status)
	}
}
