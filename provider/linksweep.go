package provider

import (
	"slices"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/peers"
)

// Links to peers that are gone are removed, so that an endpoint that stays does
// not grow with those that come and go. The lease holder removes a link when
// nothing leads to it: no thread holds it, no address of the address vector
// has resolved to it, and no request, reply, message of the protocol or live
// source names it. Then its number is used again.

// retired in link.users: a thread that would use the link releases it again.
const retired = -1 << 30

// linkSlack is how many links there may be beyond twice those that the last
// sweep kept.
const linkSlack = 64

// hold keeps the link from being removed, until release. It reports false if it
// is removed.
func (l *link) hold() bool {
	if l.users.Add(1) > 0 {
		return true
	}
	l.users.Add(-1)
	return false
}

func (l *link) release() { l.users.Add(-1) }

// addLink makes a link. The caller has linkMu.
func (e *linkTable) addLink(a peers.Address, h *hot.EP, t *transmits) *link {
	l := &link{to: a, raw: a.Raw()}
	list := *e.links.Load()
	if n := len(e.freeLinks); n != 0 {
		l.index, e.freeLinks = e.freeLinks[n-1], e.freeLinks[:n-1]
		list = slices.Clone(list)
		list[l.index] = l
	} else {
		l.index = uint32(len(list))
		list = append(list[:len(list):len(list)], l)
	}
	l.line = t.lineOf(h, l.index)
	l.transmits = &l.line.InFlight
	e.links.Store(&list)
	e.linkByAddr[a] = l
	e.linksMade.Add(1)
	return l
}

// sweepLinks removes the links that nothing leads to, when there are many more than the last time.
func (e *leasedEP) sweepLinks() {
	e.linkMu.Lock()
	defer e.linkMu.Unlock()
	if len(e.linkByAddr) < e.linksKept*2+linkSlack {
		return
	}
	named := e.namedLinks()
	list := slices.Clone(*e.links.Load())
	for i, l := range list {
		if l == nil || named[l] || !e.retireLink(l) {
			continue
		}
		delete(e.linkByAddr, l.to)
		list[i] = nil
		e.freeLinks = append(e.freeLinks, l.index)
	}
	e.links.Store(&list)
	e.linksKept = len(e.linkByAddr)
}

// retireLink takes a link out of use if only its name leads to it. A thread that holds
// it makes it lead to by more than that before he lets go, or does not.
func (e *peering) retireLink(l *link) bool {
	if p := l.path.Load(); p != nil && p.Err() == nil {
		return false // as long as the peer is there, so is the path to it
	}
	if !l.users.CompareAndSwap(0, retired) {
		return false
	}
	if l.lines.Load() != 0 || l.awaited() != 0 {
		l.users.Add(-retired)
		return false
	}
	return true
}

// namedLinks are the links that the lease holder's own tables name. Those back
// to sources that are gone are dropped on the way.
func (e *leasedEP) namedLinks() map[*link]bool {
	named := map[*link]bool{}
	for _, c := range e.rx.out {
		named[c.link] = true
	}
	live := map[int]bool{}
	for _, p := range e.ports {
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
