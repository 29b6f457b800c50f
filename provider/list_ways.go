package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// peerToPeer reports whether memory of devices may go without copies in this process.
func (e *options) peerToPeer() bool { return e.p2p.Load() != fi.HMEMP2PDisabled }

// countWay counts elements to the peer that took a way, and their bytes.
func (l *link) countWay(e *initiator, w Way, elements, n uint64) {
	if elements == 0 {
		return
	}
	word := [...]int{stats.SharedTokenIPC, stats.SharedTokenRDMA, stats.SharedTokenMessage}[w]
	e.stats.Shared(word, elements)
	e.stats.Shared(word+1, n)
	l.ways.Count(w, elements, n)
}

// sampleWays shows which ways elements have taken to the peer. The caller holds the lease.
func (l *link) sampleWays() {
	moved, counted := l.ways.Moved()
	if !counted && l.line.Listed.Load() == 0 {
		return
	}
	moved[WayIPC].Elements += l.line.Listed.Load()
	moved[WayIPC].Bytes += l.line.ListedBytes.Load()
	for w, word := range [...]int{stats.PeerTokenIPC, stats.PeerTokenRDMA, stats.PeerTokenMessage} {
		l.stats.Set(word, moved[w].Elements)
		l.stats.Set(word+1, moved[w].Bytes)
	}
}
