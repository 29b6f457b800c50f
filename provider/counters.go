package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/internal/version"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/tally"
)

// openStats takes a block of counters for an endpoint with a name.
func (d *Domain) openStats(name []byte) (*stats.Endpoint, error) {
	st, why, err := stats.OpenEndpoint(d.cfg.SHMDir, version.String(), d.cfg.Stats, name)
	if why != nil {
		log.Infof(log.EPCtrl, "endpoint % x: counters are not shown: %v", name, why)
	}
	return st, err
}

// openStats takes the endpoint's block of counters. Want of room in the page
// costs a log line, not the endpoint.
func (e *peering) openStats(stripes int) error {
	st, err := e.domain.openStats(peers.Address{Name: e.name, Number: e.context}.Raw())
	if err != nil {
		return err
	}
	e.stats, e.counts = st, tally.On(st, stripes)
	return nil
}

// closeStats gives the block back.
func (e *peering) closeStats() {
	if e.stats != nil {
		e.stats.Close()
	}
}

// Counters writes the endpoint's counters to dst, by index in the table that
// docs/counters.md shows, as many as fit; those of the process and of single
// peers are 0. Gauges are as of the last sample. fi.EOPBADSTATE before Enable.
func (e *Endpoint) Counters(dst []uint64) error {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	if e.base.state.Load() != stateEnabled {
		return fi.EOPBADSTATE
	}
	e.base.stats.Values(dst)
	return nil
}

// countQueues shows what waits in matching. Gauges of a context that several endpoints share are those of the first.
func (r *receiving) countQueues(posted, unexpected int) {
	st := r.base.stats.Load()
	if st == nil {
		return
	}
	st.RxPeak(stats.RxPosted, stats.RxPostedPeak, uint64(posted))
	st.RxPeak(stats.RxKept, stats.RxKeptPeak, uint64(unexpected))
	st.RxPeak(stats.RxKeptBytes, stats.RxKeptBytesPeak, uint64(r.matching.UnexpectedBytes))
}

// sample writes what is not counted as it happens but known from words that exist anyway: positions of rings, lengths
// of lists. The timers call it some ten times a second.
func (r *leasedRx) sample() {
	if st := r.base.stats.Load(); st != nil {
		st.RxSet(stats.RxPosts, r.base.hot.PostsHead)
		st.RxSet(stats.RxPostRing, depth(r.base.hot.Posts.Tail, r.base.hot.PostsHead, 1<<r.base.hot.Posts.Log2Slots))
		st.RxSet(stats.RxMatchSteps, r.matching.Tagged.Steps()+r.matching.Untagged.Steps())
		st.RxSet(stats.RxOps, uint64(r.rendezvous.Live()))
		st.RxSet(stats.RxControls, uint64(r.out.Len()))
		st.RxSet(stats.RxWindowCloses, r.matching.Closures())
		closed := uint64(0)
		if r.matching.Closed {
			closed = 1
		}
		st.RxSet(stats.RxWindowClosed, closed)
	}
	for _, e := range r.eps {
		e.sample()
	}
}

func (e *leasedEP) sample() {
	st := e.ep.base.stats
	waiting := uint64(0)
	for i := range e.ep.base.hot.Inbound {
		if in := &e.ep.base.hot.Inbound[i]; in.Ring.Tail != 0 {
			waiting += depth(in.Ring.Tail, atomic.LoadUint64(&in.Head), 1<<in.Ring.Log2Slots)
		}
	}
	st.RxPeak(stats.RxRingDepth, stats.RxRingPeak, waiting)
	e.ep.base.bound.sampleQueues(st)
	var seen hw.Stats
	senders := uint64(0)
	for _, p := range e.ep.base.links.Transports() {
		s := p.Stats()
		seen.Malformed += s.Malformed
		seen.Reclaimed += s.Reclaimed
		seen.PeersLost += s.PeersLost
	}
	for range e.senders.Senders() {
		senders++
	}
	st.RxSet(stats.RxMalformed, seen.Malformed+e.malformedHere)
	st.RxSet(stats.RxReclaimed, seen.Reclaimed)
	st.RxSet(stats.RxPeersLost, seen.PeersLost)
	st.RxSet(stats.RxSenders, senders)
	e.samplePeers()
	probe.Sample(e.ep.base.transports.probers, st)
	e.ep.base.domain.clock.Sample(st)
}

// sampleQueues shows what the completion queues hold.
func (b *bindings) sampleQueues(st *stats.Endpoint) {
	overflow := uint64(0)
	for _, q := range []struct {
		q    *cq.Queue
		word int
	}{{b.txCQ, stats.RxTxCQDepth}, {b.rxCQ, stats.RxRxCQDepth}} {
		if q.q != nil {
			n, off := q.q.Depth()
			st.RxSet(q.word, n)
			overflow = max(overflow, off)
		}
	}
	st.RxSet(stats.RxOverflow, overflow)
}

// samplePeers shows the peers that this endpoint sends to.
func (e *leasedEP) samplePeers() {
	flying, up := uint64(0), uint64(0)
	for l := range e.ep.base.links.All() {
		n, ready := l.Sample(e.ep.base.stats)
		flying += n
		if !ready {
			continue
		}
		up++
		if f := e.initiated.Flow(&l.Link); f != nil {
			f.Sample(l.Shown())
		}
	}
	e.ep.base.stats.RxSet(stats.RxInFlight, flying)
	e.ep.base.stats.RxSet(stats.RxPeers, up)
}

// depth is the number of entries in a ring, from its tail, which is a hint that
// others may write, and its head.
func depth(tail uintptr, head, slots uint64) uint64 {
	n := atomic.LoadUint64((*uint64)(pointerAt(uint64(tail)))) - head
	if int64(n) < 0 {
		return 0
	}
	return min(n, slots)
}
