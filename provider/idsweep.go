package provider

import (
	"github.com/weft-fabric/weft/provider/match"
	"github.com/weft-fabric/weft/provider/names"
)

// idSlack is how many identities there may be beyond twice those that the last
// sweep kept.
const idSlack = 64

// sweepIDs gives up the identities that nothing knows any more, when there are many more than the last time: those of
// peers that are gone, that no posted receive names, and of which no message is unexpected or being read. A name that
// comes again gets another.
func (r *leasedRx) sweepIDs() {
	if len(r.idNames)-len(r.freeIDs) < r.idsKept*2+idSlack {
		return
	}
	known := r.knownIDs()
	for n, id := range r.ids {
		if !known[id] {
			delete(r.ids, n)
			r.dropPort(n)
		}
	}
	for i := range r.idNames {
		id := identityAt(i, r.idNames[i])
		if known[id] || r.idNames[i].IsZero() {
			continue
		}
		r.idNames[i], r.origins[i] = names.Name{}, nil
		r.freeIDs = append(r.freeIDs, id)
		for _, e := range r.eps {
			if i < len(e.addrs) {
				e.addrs[i] = addrUnknown
			}
			if i < len(e.backLinks) {
				e.backLinks[i] = nil
			}
		}
	}
	clear(r.addrIDs)
	r.idsKept = len(r.idNames) - len(r.freeIDs)
}

// knownIDs are the identities that something of the context names.
func (r *leasedRx) knownIDs() map[uint32]bool {
	known := map[uint32]bool{}
	for _, e := range r.eps {
		for _, p := range e.ports {
			for _, s := range p.sources {
				known[s.id] = true
			}
		}
	}
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		for rv := range eng.Recvs() {
			known[rv.Source()] = true
		}
		for m := range eng.Messages() {
			known[m.Source()] = true
		}
	}
	for i := r.active.head; i != 0; i = r.ops.At(i).next {
		known[r.ops.At(i).source] = true
	}
	for _, i := range r.pulls {
		known[r.ops.At(i).source] = true
	}
	return known
}
