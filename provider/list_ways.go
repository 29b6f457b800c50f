package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// FI_WEFT_TOKEN_WAYS, for the elements of lists that go as operations of their own. Others may take every way.

// mayTake reports whether an operation may take a way.
func (e *attributes) mayTake(a *RMAArgs, w Way) bool {
	if !a.listed {
		return true
	}
	on := &e.domain.cfg.TokenWays
	return [...]bool{on.IPC, on.RDMA, on.Message}[w]
}

// deviceLeads reports whether an operation may go to a path by an RDMA device, as soon as its key is known.
func (e *peering) deviceLeads(a *RMAArgs, p *path) bool {
	return e.mayTake(a, WayRDMA) && p.keys != nil && !e.orderedRMA() &&
		(!hmem.AnyOnDevice(a.IOV) || e.peerToPeer() && p.port.reachesDevices())
}

// peerToPeer reports whether memory of devices may go without copies in this process.
func (e *options) peerToPeer() bool { return e.p2p.Load() != fi.HMEMP2PDisabled }

// reachesDevices reports whether the port's device reaches memory of other devices.
func (p *port) reachesDevices() bool { return p.Memory().Attr().Caps&hw.MDDMABuf != 0 }

// countListed counts an operation that was posted, if it is an element of a list.
func (l *link) countListed(e *initiator, a *RMAArgs, err error, w Way, n uint64) {
	if a.listed && err == nil {
		l.countWay(e, w, 1, n)
	}
}

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
