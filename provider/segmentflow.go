package provider

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
)

// Long one-sided operations (reads, writes, and reads of announced messages)
// are cut into segments where congestion control is on. A flow is what those to
// one peer share: it holds the window, decides how large the next segment is and
// of which operation, and is resumed by completions. The window is driven by the
// segments' own round-trip times, from the post to the completion.
//
//	start → pump: Next → post …        until the window is full
//	a segment ends → Done → pump
//	no room at the interface, or not yet by the pace → progress pumps again
//
// Flows and transfers belong to the holder of the progress lease. Threads that
// post leave their operations to it (queueRMA).

// segmentFlow is the flow of the operations over one path.
type segmentFlow struct {
	*congestion.Flow
	path  *path
	owner *leasedEP        // whose lease it is under
	stats congestion.Stats // of segments; see samplePath
	all   []*transfer      // that have not ended

	sending *transfer // that has posted a part of a segment
	waiting bool      // in Endpoint.flows: time or room resumes it, no completion
	pumping bool
}

// segmentTarget and segmentNoise are of segments: their round-trip times contain the
// work of two hosts' programs, which vary by far more than those of packets.
const (
	segmentTarget = 2 * time.Millisecond
	segmentNoise  = 200 * time.Microsecond
)

// flowBytes is what one turn of a flow moves at most where segments end as they
// are posted: progress serves other peers in between.
const flowBytes = getChunk

// segmentsOn reports whether long operations over a port are cut.
func segmentsOn(c *config.Config, a *hw.Attr) bool {
	return c.RTTControl == config.Yes || c.RTTControl == config.Auto && a.Caps&hw.CapDrops != 0
}

// flowConfig is how flows cut, and how their windows are computed.
func flowConfig(c *config.Config, a *hw.Attr) (congestion.SegmentConfig, congestion.Config, error) {
	seg := congestion.SegmentConfig{Size: int64(c.SegmentSize), Min: int64(c.MinSegment), Max: int64(c.MaxSegment)}
	if a.Caps&hw.CapDrops != 0 {
		seg.Floor = int64(c.InitialCwnd) * seg.Size // it has windows of its own
	}
	cc := seg.PathConfig(0)
	cc.Alpha, cc.Beta, cc.Initial, cc.Max = c.RTTAlpha, c.RTTBeta, c.InitialCwnd, c.MaxCwnd
	cc.Target, cc.Granularity = segmentTarget, segmentNoise
	var err error
	cc.Algorithm, err = congestion.ParseAlgorithm(c.CC)
	return seg, cc, err
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
		e.dropFlow(n, fi.ECONNRESET) // of a path before
		*at = e.newFlow(l, p)
	}
	return *at
}

func (e *leasedEP) newFlow(l *link, p *path) *segmentFlow {
	seg, cc, err := flowConfig(e.domain.cfg, &p.port.attr)
	n := &segmentFlow{path: p, owner: e}
	if err == nil {
		var cp *congestion.Path
		if cp, err = congestion.NewPath(cc, rand.NewPCG(rand.Uint64(), rand.Uint64()), &n.stats); err == nil {
			n.Flow, err = congestion.NewFlow(seg, cp)
		}
	}
	if err != nil {
		log.Warnf(log.EPData, "no congestion control for %s: %v", l.to, err)
		return nil
	}
	return n
}

// now is the clock of flows.
func (e *peering) now() congestion.Time { return congestion.Time(time.Since(e.born)) + 1 }

// grain is what segments of a transfer had best be multiples of, in bytes; 0: of nothing.
func (n *segmentFlow) grain(get bool) int64 {
	t, ok := n.path.Endpoint.(hw.Trains)
	if !ok {
		return 0
	}
	return int64(t.Train(get))
}

// start takes in a transfer of total bytes.
func (n *segmentFlow) start(t *transfer, total uint64) {
	t.flow, t.Owner = n, t
	n.all = append(n.all, t)
	if n.Start(&t.Operation, int64(total)) {
		t.finish()
		return
	}
	n.pump(t.e)
}

// pump posts what the window lets out. Completions that come while it posts
// are taken in by its own loop.
func (n *segmentFlow) pump(e *leasedEP) {
	if n.pumping {
		return
	}
	n.pumping = true
	waits := n.turn(&e.Endpoint)
	n.pumping = false
	if _, later := n.Wake(); !waits && later {
		waits = true // for the pace
	}
	if waits != n.waiting {
		n.waiting = waits
		if waits {
			e.flows = append(e.flows, n)
		} else {
			e.flows = slices.DeleteFunc(e.flows, func(o *segmentFlow) bool { return o == n })
		}
	}
}

// turn reports whether it has left something to post that no completion resumes.
func (n *segmentFlow) turn(e *Endpoint) bool {
	if n.sending != nil && !n.sending.proceed() {
		return true
	}
	for moved := int64(0); moved < flowBytes; {
		op, seg, ok := n.Next(e.now())
		if !ok {
			return false
		}
		t := op.Owner.(*transfer)
		ended, posted := t.post(seg)
		if !posted {
			return true
		}
		if ended {
			moved += seg.Length
		}
	}
	return true
}

// pumpFlows resumes the flows that waited for room or time.
func (e *leasedEP) pumpFlows() {
	if len(e.flows) == 0 {
		return
	}
	for _, n := range slices.Clone(e.flows) {
		n.pump(e)
	}
}

// dropFlow ends the transfers over a path to a peer that is gone. Gets that are
// in flight end by themselves, and their transfers with them.
func (e *leasedEP) dropFlow(n *segmentFlow, status fi.Errno) {
	if n == nil {
		return
	}
	n.sending = nil
	n.pumping = true // nothing more is posted
	if n.waiting {
		e.flows = slices.DeleteFunc(e.flows, func(o *segmentFlow) bool { return o == n })
	}
	for _, t := range slices.Clone(n.all) {
		t.lose(status)
	}
}

// sample shows what a flow measures.
func (n *segmentFlow) sample(line *stats.PeerLine) {
	s := n.stats.Read()
	line.Set(stats.PeerSegments, s.Samples)
	line.Set(stats.PeerSegmentRTT, uint64(s.SRTT))
	line.Set(stats.PeerSegmentWindow, uint64(n.Window()))
	line.Set(stats.PeerSegmentSize, uint64(n.SegmentSize()))
	line.Set(stats.PeerSegmentFlight, uint64(n.Path().Inflight()))
}
