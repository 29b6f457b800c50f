package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// peerToPeer reports whether memory of devices may go without copies in this process.
func (e *options) peerToPeer() bool { return e.p2p.Load() != fi.HMEMP2PDisabled }

// wayCount is what has taken a way to a peer. Added to by any thread, read by the lease holder; relaxed.
type wayCount struct{ elements, bytes atomic.Uint64 }

// countWay counts elements to the peer that took a way, and their bytes.
func (l *link) countWay(e *initiator, w Way, elements, n uint64) {
	if elements == 0 {
		return
	}
	word := [...]int{stats.SharedTokenIPC, stats.SharedTokenRDMA, stats.SharedTokenMessage}[w]
	e.stats.Shared(word, elements)
	e.stats.Shared(word+1, n)
	counts := l.ways.Load()
	if counts == nil {
		l.ways.CompareAndSwap(nil, new([ways]wayCount))
		counts = l.ways.Load()
	}
	counts[w].elements.Add(elements)
	counts[w].bytes.Add(n)
}

// sampleWays shows which ways elements have taken to the peer. The caller holds the lease.
func (l *link) sampleWays() {
	counts, n := l.ways.Load(), [ways][2]uint64{}
	if counts == nil && l.line.Listed.Load() == 0 {
		return
	}
	for w := range n {
		if counts != nil {
			n[w] = [2]uint64{counts[w].elements.Load(), counts[w].bytes.Load()}
		}
	}
	n[WayIPC][0] += l.line.Listed.Load()
	n[WayIPC][1] += l.line.ListedBytes.Load()
	for w, word := range [...]int{stats.PeerTokenIPC, stats.PeerTokenRDMA, stats.PeerTokenMessage} {
		l.stats.Set(word, n[w][0])
		l.stats.Set(word+1, n[w][1])
	}
}
