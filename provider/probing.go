package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/probe"
)

// startProbers begins to probe peers over the transports that can, if that is asked for (package probe).
func (e *peering) startProbers() {
	for _, p := range e.links.Transports() {
		i, ok := p.Iface.(probe.Interface)
		if !ok {
			continue
		}
		peers := func() probe.Peers { return e.probed(p) }
		pr, err := probe.Start(i, e.name.String(), e.domain.cfg, e.domain.clock, peers, e.domain.every)
		if err != nil {
			log.Warnf(log.EPCtrl, "%s: no probes: %v", e.name, err)
			return
		}
		if pr != nil {
			e.transports.probers = append(e.transports.probers, pr)
		}
	}
}

// probed are the peers that the endpoint is connected to over a transport.
func (e *peering) probed(over *transport) probe.Peers {
	return func(yield func(probe.Target, *atomic.Pointer[probe.Peer]) bool) {
		for l := range e.links.All() {
			p, ready := l.Ready()
			if !ready || p.Via != over {
				continue
			}
			if t, ok := p.Endpoint.(probe.Target); ok && !yield(t, &l.Probed) {
				return
			}
		}
	}
}
