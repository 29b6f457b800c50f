package flow

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/stats"
)

// segmentTarget and segmentNoise are of segments: their round-trip times contain the
// work of two hosts' programs, which vary by far more than those of packets.
const (
	segmentTarget = 2 * time.Millisecond
	segmentNoise  = 200 * time.Microsecond
)

// Burst is how many bytes one turn of a flow moves at most where segments end as they are posted: progress serves other
// peers in between.
const Burst = 4 << 20

// On reports whether long operations over a transport are cut.
func On(c *config.Config, a *hw.Attr) bool {
	return c.RTTControl == config.Yes || c.RTTControl == config.Auto && a.Caps&hw.CapDrops != 0
}

// cutting is how flows cut, and how their windows are computed.
func cutting(c *config.Config, a *hw.Attr) (congestion.SegmentConfig, congestion.Config, error) {
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

// Set are the flows of an endpoint.
type Set struct {
	now     func() congestion.Time
	waiting []*Flow // that time or room resumes
	spare   []*Transfer
}

// NewSet returns a set without flows, with a clock.
func NewSet(now func() congestion.Time) Set { return Set{now: now} }

// New returns a flow over a transport. An error says what of the configuration is wrong.
func (s *Set) New(c *config.Config, a *hw.Attr) (*Flow, error) {
	seg, cc, err := cutting(c, a)
	if err != nil {
		return nil, err
	}
	f := &Flow{set: s}
	path, err := congestion.NewPath(cc, rand.NewPCG(rand.Uint64(), rand.Uint64()), &f.stats)
	if err != nil {
		return nil, err
	}
	f.window, err = congestion.NewFlow(seg, path)
	return f, err
}

// Busy reports whether a flow waits for room or time.
func (s *Set) Busy() bool { return len(s.waiting) != 0 }

// Pump resumes the flows that wait for room or time.
func (s *Set) Pump() {
	if len(s.waiting) == 0 {
		return
	}
	for _, f := range slices.Clone(s.waiting) {
		f.Pump()
	}
}

// Flow is the flow of the operations to one peer.
type Flow struct {
	set    *Set
	window *congestion.Flow
	stats  congestion.Stats // of segments
	all    []*Transfer      // that have not ended

	sending *Transfer // that has posted a part of a segment, as messages
	waiting bool      // in Set.waiting: time or room resumes it, no completion
	pumping bool
}

// Path has the window that the flow is under.
func (f *Flow) Path() *congestion.Path { return f.window.Path() }

// Transfer returns a transfer of the flow's set, which is to begin.
func (f *Flow) Transfer(id uint64, m Mover) *Transfer { return f.set.Transfer(id, m) }

// Grain is what segments of a transfer over an endpoint had best be multiples of, in bytes; 0: of nothing.
func Grain(ep hw.Endpoint, get bool) int64 {
	t, ok := ep.(hw.Trains)
	if !ok {
		return 0
	}
	return int64(t.Train(get))
}

// Begin takes in a transfer of total bytes, which [Set.Transfer] has returned.
func (f *Flow) Begin(t *Transfer, total uint64) {
	t.flow, t.Owner = f, t
	f.all = append(f.all, t)
	if f.window.Start(&t.Operation, int64(total)) {
		t.end()
		return
	}
	f.Pump()
}

// Pump posts what the window lets out. Completions that come while it posts
// are taken in by its own loop.
func (f *Flow) Pump() {
	if f.pumping {
		return
	}
	f.pumping = true
	waits := f.turn()
	f.pumping = false
	if _, later := f.window.Wake(); !waits && later {
		waits = true // for the pace
	}
	if waits != f.waiting {
		f.waiting = waits
		if waits {
			f.set.waiting = append(f.set.waiting, f)
		} else {
			f.delist()
		}
	}
}

func (f *Flow) delist() {
	f.set.waiting = slices.DeleteFunc(f.set.waiting, func(o *Flow) bool { return o == f })
}

// turn reports whether it has left something to post that no completion resumes.
func (f *Flow) turn() bool {
	if f.sending != nil && !f.sending.proceed() {
		return true
	}
	for moved := int64(0); moved < Burst; {
		op, seg, ok := f.window.Next(f.set.now())
		if !ok {
			return false
		}
		t := op.Owner.(*Transfer)
		ended, posted := t.Mover.Post(t, seg)
		if !posted {
			return true
		}
		if ended {
			moved += seg.Length
		}
	}
	return true
}

// Drop ends the transfers to a peer that is gone, with a status. Segments that are in flight and end by themselves end
// first, and their transfers with them. A nil flow has none.
func (f *Flow) Drop(status fi.Errno) {
	if f == nil {
		return
	}
	f.sending = nil
	f.pumping = true // nothing more is posted
	if f.waiting {
		f.delist()
	}
	for _, t := range slices.Clone(f.all) {
		t.lose(status)
	}
}

// Sample shows what a flow measures.
func (f *Flow) Sample(line *stats.PeerLine) {
	s := f.stats.Read()
	line.Set(stats.PeerSegments, s.Samples)
	line.Set(stats.PeerSegmentRTT, uint64(s.SRTT))
	line.Set(stats.PeerSegmentWindow, uint64(f.window.Window()))
	line.Set(stats.PeerSegmentSize, uint64(f.window.SegmentSize()))
	line.Set(stats.PeerSegmentFlight, uint64(f.Path().Inflight()))
}
