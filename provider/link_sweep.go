package provider

import "github.com/weft-fabric/weft/provider/internal/peers"

// Links to peers that are gone are removed, so that an endpoint that stays does
// not grow with those that come and go. The lease holder removes a link when
// nothing leads to it: no thread holds it, no address of the address vector
// has resolved to it, and no request, reply, message of the protocol or live
// source names it. Then its number is used again.

// sweepLinks removes the links that nothing leads to, when there are many more than the last time.
func (e *leasedEP) sweepLinks() {
	if !e.ep.links.Due() {
		return
	}
	named := e.namedLinks()
	e.ep.links.Sweep(func(l *link) bool { return !named[l] && e.ep.retireLink(l) })
}

// retireLink takes a link out of use if only its name leads to it. A thread that holds
// it makes it lead to by more than that before it lets go, or does not.
func (e *peering) retireLink(l *link) bool {
	if p := l.path.Load(); p != nil && p.Err() == nil {
		return false // as long as the peer is there, so is the path to it
	}
	return l.Retire(func() bool { return l.lines.Load() == 0 && l.awaited() == 0 })
}

// namedLinks are the links that the lease holder's own tables name. Those back
// to sources that are gone are dropped on the way.
func (e *leasedEP) namedLinks() map[*link]bool {
	named := map[*link]bool{}
	for to := range e.rx.out.Destinations() {
		named[to.link] = true
	}
	live := map[int]bool{}
	for _, p := range e.ep.transports {
		for _, s := range p.sources {
			live[peers.Slot(s.id)] = true
		}
	}
	for slot, l := range e.backLinks {
		if live[slot] {
			named[l] = true
		} else {
			e.backLinks[slot] = nil
		}
	}
	return named
}
