package provider

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/av"
	"github.com/weft-fabric/weft/provider/match"
	"github.com/weft-fabric/weft/provider/names"
)

// An identity is the number that matching knows a peer by. Its lowest 24 bits start
// at 1 and are dense; above them stands the number of the authorisation key under
// which the peer sends (avkeys.go), so that a receive can ask for that alone. A peer
// is another one under each key.
//
// A peer has one name of its own, under which it sends. One that is bound to a
// wildcard address is reached at others as well, and an address vector may hold
// any of them: they are its aliases and lead to the same identity. That a name
// is an alias is known when the peer's first message is at hand, before it is
// matched, because the transport says then where else the peer answers.
// Receives that were posted before with an alias as their source had an
// identity of the alias, which is given up: they become receives from the peer,
// at their places in the queue.
//
// A scalable endpoint sends from several interfaces, one for each context. They
// are one peer.

// idBits are those of an identity that are dense.
const idBits = 1<<match.GroupShift - 1

// idSlot is the place of an identity, which is not noIdentity, in tables.
func idSlot(id uint32) int { return int(id&idBits) - 1 }

// identityAt is the identity of a name at a place in tables.
func identityAt(slot int, n names.Name) uint32 {
	return uint32(slot+1) | uint32(n.Key)<<match.GroupShift
}

// noIdentity is the identity of an address that is not in the AV: no message
// comes from it.
const noIdentity = 0

// origin is an interface that an identity sends from, as one of a context's
// endpoints sees it.
type origin struct {
	ep     *Endpoint
	src    hw.Source
	number uint8
}

// reaches reports whether n is a name or alias of the source.
func (o origin) reaches(n names.Name) bool {
	return o.ep.sourceReaches(o.src, address{n, o.number})
}

// present reports whether a source of an identity is known.
func (r *receiving) present(id uint32) bool { return len(r.origins[idSlot(id)]) != 0 }

// reaches reports whether n is a name or alias of an identity that is present.
// The source that was met last knows best.
func (r *receiving) reaches(id uint32, n names.Name) bool {
	all := r.origins[idSlot(id)]
	return len(all) != 0 && all[len(all)-1].reaches(n)
}

// identity returns the identity of a name.
func (r *receiving) identity(n names.Name) uint32 {
	if id, ok := r.ids[n]; ok {
		return id
	}
	for _, other := range r.ports[n.Port] {
		if id := r.ids[other]; r.reaches(id, n) {
			r.setID(n, id)
			return id
		}
	}
	return r.newID(n)
}

// newID gives a name an identity of its own.
func (r *receiving) newID(n names.Name) uint32 {
	if k := len(r.freeIDs); k != 0 {
		slot := idSlot(r.freeIDs[k-1])
		r.freeIDs = r.freeIDs[:k-1]
		r.idNames[slot] = n
		id := identityAt(slot, n)
		r.setID(n, id)
		return id
	}
	r.idNames = append(r.idNames, n)
	r.origins = append(r.origins, nil)
	id := identityAt(len(r.idNames)-1, n)
	r.setID(n, id)
	return id
}

// setID enters a name.
func (r *receiving) setID(n names.Name, id uint32) {
	if _, known := r.ids[n]; !known {
		r.ports[n.Port] = append(r.ports[n.Port], n)
	}
	r.ids[n] = id
	for _, e := range r.eps {
		if slot := idSlot(id); slot < len(e.addrs) {
			e.addrs[slot] = addrUnknown
		}
	}
}

// dropAlias forgets that a name is an alias. An address that names it is
// searched anew.
func (r *receiving) dropAlias(n names.Name) {
	delete(r.ids, n)
	r.dropPort(n)
	clear(r.addrIDs)
}

// name has an address vector name the sources of directed receives from now on, nil: none.
func (r *receiving) name(av *AV) {
	r.av, r.addrIDs, r.Addresses = av, nil, dataplane.Addresses{}
	if av != nil {
		r.Addresses.Generation = av.GenerationWord()
	}
}

// dropPort takes a name out of ports.
func (r *receiving) dropPort(n names.Name) {
	if left := slices.DeleteFunc(r.ports[n.Port], func(o names.Name) bool { return o == n }); len(left) != 0 {
		r.ports[n.Port] = left
	} else {
		delete(r.ports, n.Port)
	}
}

// meet returns the identity of a source whose first message is at hand.
func (r *leasedRx) meet(o origin, n names.Name) uint32 {
	if id := r.ids[n]; id != 0 && r.idNames[idSlot(id)] != n {
		r.dropAlias(n) // of a peer that was there before
	}
	id := r.ids[n]
	if id == 0 {
		id = r.newID(n)
	}
	if at := &r.origins[idSlot(id)]; !slices.Contains(*at, o) {
		*at = append(*at, o)
	}
	for _, other := range r.ports[n.Port] {
		if was := r.ids[other]; was != id && !r.present(was) && o.reaches(other) {
			r.setID(other, id)
			if r.idNames[idSlot(was)] == other {
				r.merge(was, id)
			}
			clear(r.addrIDs)
		}
	}
	return id
}

// merge makes the receives from an alias receives from the peer.
func (r *leasedRx) merge(alias, peer uint32) {
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		eng.Rename(alias, peer)
		for r.rematch(eng, peer) {
		}
	}
}

// rematch delivers one unexpected message of a peer for which a receive was renamed,
// and reports whether there was one. There are unexpected messages only if the peer had
// another socket of this name before.
func (r *leasedRx) rematch(eng *match.Engine, peer uint32) bool {
	for m := range eng.Messages() {
		if m.Source() != peer || m.Claimed() {
			continue
		}
		rv := eng.Arrive(peer, m.Tag())
		if rv == nil {
			continue
		}
		eng.RemoveMessage(m)
		if rv.Kept() {
			r.deliverUnexpectedMulti(eng, rv, m)
			return true
		}
		t := targetIn(rv)
		eng.Release(rv)
		r.deliverUnexpected(eng, t, m)
		return true
	}
	return false
}

// part forgets a source that is gone and, if it was the last of its peer, what
// that answered to: the next that does may be another. Messages of the peer
// that are unexpected are still wanted by all of its names. It reports whether the
// source was the last.
func (r *receiving) part(o origin, id uint32) bool {
	all := &r.origins[idSlot(id)]
	*all = slices.DeleteFunc(*all, func(p origin) bool { return p == o })
	if len(*all) != 0 {
		return false
	}
	own := r.idNames[idSlot(id)]
	for _, eng := range []*match.Engine{r.Tagged, r.Untagged} {
		for m := range eng.Messages() {
			if m.Source() == id {
				return true
			}
		}
	}
	for _, n := range slices.Clone(r.ports[own.Port]) {
		if n != own && r.ids[n] == id {
			r.dropAlias(n)
		}
	}
	return true
}

// leave forgets the sources of an endpoint that is closed.
func (r *receiving) leave(e *Endpoint) {
	for i, all := range r.origins {
		r.origins[i] = slices.DeleteFunc(all, func(o origin) bool { return o.ep == e })
	}
}

// sourceOf turns the source address of a receive with flags into what matching takes.
func (r *receiving) sourceOf(addr fi.Addr, flags uint64) uint32 {
	if addr == fi.AddrUnspec || !r.Directs(flags) {
		return match.AnySource
	}
	if r.av == nil {
		return noIdentity
	}
	if flags&fi.AuthKey != 0 {
		return r.holdersOf(addr)
	}
	if g := r.av.Generation(); g != r.Addresses.Seen {
		r.Addresses.Seen = g
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
		return noIdentity
	}
	id := r.identity(n)
	for uint64(len(r.addrIDs)) <= i {
		r.addrIDs = append(r.addrIDs, 0)
	}
	r.addrIDs[i] = id
	r.Addresses.Set(r.addrIDs)
	return id
}

// holdersOf is what matching takes for all senders under an authorisation key.
func (r *receiving) holdersOf(handle fi.Addr) uint32 {
	number := r.av.KeyNumber(handle) // takes a lock, as few receives name a key
	if number == 0 {
		log.Warnf(log.EPData, "receive from authorisation key %#x: not in the address vector", handle)
		return noIdentity
	}
	return match.Group(number)
}

// Values of Endpoint.addrs below those of addresses, which are addrFirst more.
const (
	addrUnknown = 0 // to be found
	addrNone    = 1 // not in the AV
	addrFirst   = av.ReservedIDs
)

// addrOf is the source address of an identity in the endpoint's AV, as
// completions have it; fi.AddrNotAvail if it is not in it.
func (e *leasedEP) addrOf(id uint32) fi.Addr {
	if g := e.av.Generation(); g != e.addrSeen {
		e.addrSeen = g
		clear(e.addrs)
	}
	slot := idSlot(id)
	for slot >= len(e.addrs) {
		e.addrs = append(e.addrs, addrUnknown)
	}
	a := e.addrs[slot]
	if a >= addrFirst {
		return a - addrFirst
	}
	links := e.linksMade.Load()
	if a == addrNone && links == e.addrLinks {
		return fi.AddrNotAvail
	}
	if links != e.addrLinks {
		e.addrLinks = links // those that had none may have one now
		for i := range e.addrs {
			if e.addrs[i] == addrNone {
				e.addrs[i] = addrUnknown
			}
		}
	}
	a = e.av.Reported(e.findAddr(id))
	if a == fi.AddrNotAvail {
		e.addrs[slot] = addrNone
	} else {
		e.addrs[slot] = a + addrFirst
	}
	return a
}

// findAddr finds a peer's name in the AV, then for its aliases: those that
// receives and transmits have named, and the addresses of this host. Of the
// addresses that only a loopback interface's network stands for, such as
// 127.0.0.2, it knows those that were named.
func (e *leasedEP) findAddr(id uint32) fi.Addr {
	r := e.rx
	own := r.idNames[idSlot(id)]
	if a := e.av.Find(own); a != fi.AddrNotAvail {
		return a
	}
	if !r.reaches(id, names.Any(names.AFInet, own.Port).WithKey(own.Key)) &&
		!r.reaches(id, names.Any(names.AFInet6, own.Port).WithKey(own.Key)) {
		return fi.AddrNotAvail // it has no aliases
	}
	aliases := slices.Clone(r.ports[own.Port])
	for _, l := range *e.links.Load() {
		if l != nil {
			aliases = append(aliases, l.to.Name)
		}
	}
	for _, n := range e.domain.local.All() {
		aliases = append(aliases, n.WithPort(own.Port).WithKey(own.Key))
	}
	for _, n := range aliases {
		if n.Port == own.Port && r.reaches(id, n) {
			if a := e.av.Find(n); a != fi.AddrNotAvail {
				return a
			}
		}
	}
	return fi.AddrNotAvail
}
