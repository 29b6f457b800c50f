package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// peerToPeer reports whether memory of devices may go without copies in this process.
func (e *options) peerToPeer() bool { return e.p2p.Load() != fi.HMEMP2PDisabled }

// countWay counts elements to the peer that took a way, and their bytes.
func (e *peering) countWay(l *link, w Way, elements, n uint64) {
	if elements == 0 {
		return
	}
	word := [...]int{stats.SharedTokenIPC, stats.SharedTokenRDMA, stats.SharedTokenMessage}[w]
	e.stats.Shared(word, elements)
	e.stats.Shared(word+1, n)
	l.Ways.Count(w, elements, n)
}
