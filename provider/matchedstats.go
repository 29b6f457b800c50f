package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/tally"
)

// sampleInterval is how often the device's counters are shown.
const sampleInterval = 100 * time.Millisecond

// count counts an operation that has ended.
func (l *leasedMatched) count(n *matched.Ended) {
	st := l.e.stats
	switch {
	case n.Err != fi.Success && n.Err != fi.ETRUNC:
		if !n.Search {
			st.Rx(tally.Error(n.Err), 1)
		}
		return
	case n.Search || n.Entry.Flags&fi.RemoteWrite != 0:
		return
	case n.Err == fi.ETRUNC:
		st.Rx(stats.RxErrTruncated, 1)
	}
	word := n.Counted()
	st.Rx(word, 1)
	st.Rx(word+1, n.Bytes)
}

// sample shows what the device counts, if it is time.
func (l *leasedMatched) sample(t *matched.Endpoint) {
	now := time.Now()
	if now.Sub(l.sampled) < sampleInterval {
		return
	}
	l.sampled = now
	l.groups.Check(now)
	l.showStats(t)
}

// showStats writes what the device counts, and what the queues hold, to the page of counters.
func (l *leasedMatched) showStats(t *matched.Endpoint) {
	l.e.bound.sampleQueues(l.e.stats)
	s, ok := t.Stats()
	if !ok {
		return
	}
	st := l.e.stats
	st.RxSet(stats.RxMatchState, uint64(s.State))
	for k, n := range s.Stopped {
		st.RxSet(stats.RxMatchNoEvents+k, n)
	}
	st.RxSet(stats.RxMatchDropped, s.Dropped)
	st.RxSet(stats.RxMatchOnloaded, s.Onloaded)
	st.RxSet(stats.RxMatchSoftware, s.Software)
	st.RxSet(stats.RxMatchDoorbells, s.Doorbells)
	st.RxSet(stats.RxMatchRefused, s.Refused)
	st.RxSet(stats.RxMatchOverruns, s.Overruns)
	st.RxSet(stats.RxMatchUnknown, s.Unknown)
	st.RxSet(stats.RxMalformed, s.Malformed+l.groups.Refused())
}

// Counters is as an Endpoint's; what the device counts is as of now, unless another thread makes progress.
func (e *MatchedEndpoint) Counters(dst []uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.enabled()
	if err != nil {
		return err
	}
	e.gate.Share()
	defer e.gate.Unshare()
	if l := e.leased.Take(); l != nil {
		l.showStats(t)
		e.leased.Give()
	}
	e.stats.Values(dst)
	return nil
}

// The device's reasons are the words behind RxMatchNoEvents.
var _ = [1]struct{}{}[stats.RxMatchSoftReceive-stats.RxMatchNoEvents-int(hw.MatchSoftReceive)]
