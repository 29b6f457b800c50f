package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
)

// Identities (package peers) of the senders of a receive context, and what address vectors call them.

// origin is an interface that an identity sends from, as one of a context's endpoints sees it.
type origin struct {
	ep     *Endpoint
	src    hw.Source
	number uint8
}

// Reaches reports whether n is a name or alias of the source.
func (o origin) Reaches(n names.Name) bool {
	return o.ep.base.links.Transports().Reach(o.src, peers.Address{Name: n, Number: o.number})
}

// identityChanged drops the cached address of an identity whose names have changed, so that the next use finds it.
func (r *receiving) identityChanged(slot int) {
	for _, e := range r.eps {
		e.reported.Drop(slot)
		forgetStrangers(&e.ep.base.peering)
	}
}

// name has an address vector name the sources of directed receives from now on, nil: none.
func (r *receiving) name(av *AV) {
	r.av, r.addrIDs, r.matching.Addresses = av, nil, dataplane.Addresses{}
	if av != nil {
		r.matching.Addresses.Generation = av.GenerationWord()
	}
}

// SourceOf turns the source address of a receive with flags into what matching takes.
func (r *receiving) SourceOf(addr fi.Addr, flags uint64) uint32 {
	if addr == fi.AddrUnspec || !r.matching.Directs(flags) {
		return match.AnySource
	}
	if r.av == nil {
		return peers.None
	}
	if flags&fi.AuthKey != 0 {
		return r.holdersOf(addr)
	}
	if g := r.av.Generation(); g != r.matching.Addresses.Seen {
		r.matching.Addresses.Seen = g
		clear(r.addrIDs)
	}
	addr, _ = r.av.Peer(addr) // whichever of the peer's contexts: it sends from others
	i := uint64(addr)
	if i < uint64(len(r.addrIDs)) && r.addrIDs[i] != 0 {
		return r.addrIDs[i]
	}
	n, ok := r.av.Name(addr)
	if !ok {
		log.Warnf(log.EPData, "receive from address %d: not in the address vector", addr)
		return peers.None
	}
	id := r.ids.Of(n)
	for uint64(len(r.addrIDs)) <= i {
		r.addrIDs = append(r.addrIDs, 0)
	}
	r.addrIDs[i] = id
	r.matching.Addresses.Set(r.addrIDs)
	return id
}

// holdersOf is what matching takes for all senders under an authorisation key.
func (r *receiving) holdersOf(handle fi.Addr) uint32 {
	number := r.av.KeyNumber(handle) // takes a lock, as few receives name a key
	if number == 0 {
		log.Warnf(log.EPData, "receive from authorisation key %#x: not in the address vector", handle)
		return peers.None
	}
	return match.Group(number)
}

// addrOf is the source address of an identity in the endpoint's AV, as
// completions have it; fi.AddrNotAvail if it is not in it.
func (e *leasedEP) addrOf(id uint32) fi.Addr {
	return e.reported.Of(id, e.ep.base.bound.av.Generation(), directory{e})
}

// Address vectors have no addresses that [peers.Reported] has for itself.
const _ = uint(av.ReservedIDs - peers.ReservedAddrs)

// directory is an endpoint's address vector as the addresses of identities are found there.
type directory struct{ e *leasedEP }

// Links counts the links that were made.
func (d directory) Links() uint64 { return d.e.ep.base.links.Made() }

// Search finds the address that completions report.
func (d directory) Search(id uint32) fi.Addr {
	return d.e.ep.base.bound.av.Reported(d.e.rx.ids.AddressOf(id, d))
}

// Find returns the address of a name.
func (d directory) Find(n names.Name) fi.Addr { return d.e.ep.base.bound.av.Find(n) }

// Aliases are the names of links, and the addresses of this host.
func (d directory) Aliases(port uint16, key uint8) (all []names.Name) {
	for l := range d.e.ep.base.links.All() {
		all = append(all, l.To.Name)
	}
	for _, n := range d.e.ep.base.domain.local.All() {
		all = append(all, n.WithPort(port).WithKey(key))
	}
	return all
}

// sweepIDs gives up the identities that nothing knows any more, when there are many more than the last time: those of
// peers that are gone, that no posted receive names, and of which no message is unexpected or being read.
func (r *leasedRx) sweepIDs() {
	if !r.ids.Due() {
		return
	}
	r.ids.Sweep(r.knownIDs(), func(slot int) {
		for _, e := range r.eps {
			e.reported.Drop(slot)
			e.senders.DropSlot(slot)
		}
	})
}

// knownIDs are the identities that something of the context names.
func (r *leasedRx) knownIDs() map[uint32]bool {
	known := map[uint32]bool{}
	for _, e := range r.eps {
		for _, s := range e.senders.Senders() {
			known[s.ID] = true
		}
	}
	r.matching.AddKnown(known)
	for m := range r.rendezvous.Messages() {
		known[m.Sender] = true
	}
	return known
}
