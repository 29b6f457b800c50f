package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Puts drives a congestion.Flow over links that carry whole segments, as a
// reliable fabric does: what the provider does over a backend's put. A segment
// completes when its acknowledgement is back.
type Puts struct {
	Flow *congestion.Flow

	// Bytes counts what has completed, Segments in how many.
	Bytes, Segments int64

	// OnDone, if set, is called with each ended operation.
	OnDone func(now congestion.Time)

	net         *Net
	forth, back Route
	posted      map[uint64]put
	next        uint64
	wake        congestion.Time
	far         putTarget
}

type put struct {
	op  *congestion.Operation
	seg congestion.Segment
}

type putTarget struct{ *Puts }

// Puts makes a flow over a route; cfg is the path's.
func (n *Net) Puts(seg congestion.SegmentConfig, cfg congestion.Config, forth, back Route) *Puts {
	path, err := congestion.NewPath(cfg, n.Rand, nil)
	if err != nil {
		panic(err) // a test's mistake
	}
	flow, err := congestion.NewFlow(seg, path)
	if err != nil {
		panic(err)
	}
	p := &Puts{Flow: flow, net: n, forth: forth, back: back, posted: map[uint64]put{}}
	p.far = putTarget{p}
	return p
}

// Put starts an operation.
func (p *Puts) Put(bytes int64) {
	p.Flow.Start(new(congestion.Operation), bytes)
	p.pump()
}

// pump posts what the flow lets out.
func (p *Puts) pump() {
	now := p.net.now
	for op, seg, ok := p.Flow.Next(now); ok; op, seg, ok = p.Flow.Next(now) {
		p.posted[p.next] = put{op, seg}
		out := p.net.packet()
		out.Size, out.Number = seg.Length, p.next
		p.next++
		p.net.send(out, p.forth, p.far)
	}
	if at, ok := p.Flow.Wake(); ok && (p.wake <= now || at < p.wake) {
		p.wake = max(at, now+1)
		p.net.at(p.wake, p, nil)
	}
}

// handle is the pace's.
func (p *Puts) handle(*Packet) { p.pump() }

// receive at the target acknowledges.
func (t putTarget) receive(in *Packet) {
	out := t.net.packet()
	out.Size, out.Number = ackSize, in.Number
	t.net.send(out, t.back, t.Puts)
}

// receive completes a segment.
func (p *Puts) receive(in *Packet) {
	done := p.posted[in.Number]
	delete(p.posted, in.Number)
	p.Bytes += done.seg.Length
	p.Segments++
	if p.Flow.Done(p.net.now, done.op, done.seg, 0) && p.OnDone != nil {
		p.OnDone(p.net.now)
	}
	p.pump()
}

// Keep keeps n operations of so many bytes going.
func (p *Puts) Keep(n int, bytes int64) {
	p.OnDone = func(congestion.Time) { p.net.At(p.net.now.Add(time.Nanosecond), func() { p.Put(bytes) }) }
	for range n {
		p.Put(bytes)
	}
}
