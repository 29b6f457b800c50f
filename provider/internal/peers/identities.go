package peers

import (
	"slices"

	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/names"
)

// An identity is the number that matching knows a peer by. Its lowest 24 bits start
// at 1 and are dense; above them stands the number of the authorisation key under
// which the peer sends, so that a receive can ask for that alone. A peer
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

// Slot is the place of an identity, which is not None, in tables.
func Slot(id uint32) int { return int(id&idBits) - 1 }

// identityAt is the identity of a name at a place in tables.
func identityAt(slot int, n names.Name) uint32 {
	return uint32(slot+1) | uint32(n.Key)<<match.GroupShift
}

// None is the identity of an address that is not in the address vector: no message comes from it.
const None = 0

// Origin is an interface that an identity sends from.
type Origin interface {
	comparable
	// Reaches reports whether a name leads to it.
	Reaches(n names.Name) bool
}

// Identities are those of the peers of one receive context. The holder of its progress lease calls the methods.
type Identities[O Origin] struct {
	// Changed is called when other names than before lead to the identity of a place. Immutable.
	Changed func(slot int)
	// Stale is called when a name leads to another identity than before: what was found by names is to be found anew.
	// Immutable.
	Stale func()

	ids     map[names.Name]uint32
	names   []names.Name            // peers' own, by slot; zero: the identity is given up
	origins [][]O                   // of each identity, by slot
	free    []uint32                // identities that are given up
	kept    int                     // by the last sweep
	ports   map[uint16][]names.Name // keys of ids by their ports
}

// Name is a peer's own name.
func (t *Identities[O]) Name(id uint32) names.Name { return t.names[Slot(id)] }

// Known returns the identity of a name that has one, else None.
func (t *Identities[O]) Known(n names.Name) uint32 { return t.ids[n] }

// AtPort returns the names with a port that lead to identities.
func (t *Identities[O]) AtPort(port uint16) []names.Name { return slices.Clone(t.ports[port]) }

// Present reports whether an interface is known that an identity sends from.
func (t *Identities[O]) Present(id uint32) bool { return len(t.origins[Slot(id)]) != 0 }

// Reaches reports whether n is a name or alias of an identity that is present.
// The origin that was met last knows best.
func (t *Identities[O]) Reaches(id uint32, n names.Name) bool {
	all := t.origins[Slot(id)]
	return len(all) != 0 && all[len(all)-1].Reaches(n)
}

// Of returns the identity of a name.
func (t *Identities[O]) Of(n names.Name) uint32 {
	if id, ok := t.ids[n]; ok {
		return id
	}
	for _, other := range t.ports[n.Port] {
		if id := t.ids[other]; t.Reaches(id, n) {
			t.set(n, id)
			return id
		}
	}
	return t.add(n)
}

// add gives a name an identity of its own.
func (t *Identities[O]) add(n names.Name) uint32 {
	if k := len(t.free); k != 0 {
		slot := Slot(t.free[k-1])
		t.free = t.free[:k-1]
		t.names[slot] = n
		id := identityAt(slot, n)
		t.set(n, id)
		return id
	}
	t.names = append(t.names, n)
	t.origins = append(t.origins, nil)
	id := identityAt(len(t.names)-1, n)
	t.set(n, id)
	return id
}

// set enters a name.
func (t *Identities[O]) set(n names.Name, id uint32) {
	if t.ids == nil {
		t.ids, t.ports = map[names.Name]uint32{}, map[uint16][]names.Name{}
	}
	if _, known := t.ids[n]; !known {
		t.ports[n.Port] = append(t.ports[n.Port], n)
	}
	t.ids[n] = id
	t.Changed(Slot(id))
}

// dropAlias forgets that a name is an alias. An address that names it is searched anew.
func (t *Identities[O]) dropAlias(n names.Name) {
	delete(t.ids, n)
	t.dropPort(n)
	t.Stale()
}

// dropPort takes a name out of ports.
func (t *Identities[O]) dropPort(n names.Name) {
	if left := slices.DeleteFunc(t.ports[n.Port], func(o names.Name) bool { return o == n }); len(left) != 0 {
		t.ports[n.Port] = left
	} else {
		delete(t.ports, n.Port)
	}
}

// Meet returns the identity of an origin whose first message is at hand, and n the peer's own name. merge is called for
// an identity of an alias of the peer, which is given up: what names it names the peer.
func (t *Identities[O]) Meet(o O, n names.Name, merge func(alias, peer uint32)) uint32 {
	if id := t.ids[n]; id != None && t.Name(id) != n {
		t.dropAlias(n) // of a peer that was there before
	}
	id := t.ids[n]
	if id == None {
		id = t.add(n)
	}
	if at := &t.origins[Slot(id)]; !slices.Contains(*at, o) {
		*at = append(*at, o)
	}
	for _, other := range t.ports[n.Port] {
		if was := t.ids[other]; was != id && !t.Present(was) && o.Reaches(other) {
			t.set(other, id)
			if t.Name(was) == other {
				merge(was, id)
			}
			t.Stale()
		}
	}
	return id
}

// Part forgets an origin that is gone and, if it was the last of its peer, what that answered to: the next that does
// may be another. Messages of the peer that are unexpected are still wanted by all of its names: while unexpected
// reports that there are any these stay. It reports whether the origin was the last.
func (t *Identities[O]) Part(o O, id uint32, unexpected func(id uint32) bool) bool {
	all := &t.origins[Slot(id)]
	*all = slices.DeleteFunc(*all, func(p O) bool { return p == o })
	if len(*all) != 0 {
		return false
	}
	if unexpected(id) {
		return true
	}
	own := t.Name(id)
	for _, n := range slices.Clone(t.ports[own.Port]) {
		if n != own && t.ids[n] == id {
			t.dropAlias(n)
		}
	}
	return true
}

// Leave forgets the origins that are gone.
func (t *Identities[O]) Leave(gone func(O) bool) {
	for i, all := range t.origins {
		t.origins[i] = slices.DeleteFunc(all, gone)
	}
}

// slack is how many identities there may be beyond twice those that the last sweep kept.
const slack = 64

// Due reports whether there are many more identities than after the last Sweep.
func (t *Identities[O]) Due() bool { return len(t.names)-len(t.free) >= t.kept*2+slack }

// Sweep gives up the identities that are not known: those of peers that are gone and that nothing names any more. A
// name that comes again gets another. forget is called with the place of each.
func (t *Identities[O]) Sweep(known map[uint32]bool, forget func(slot int)) {
	for n, id := range t.ids {
		if !known[id] {
			delete(t.ids, n)
			t.dropPort(n)
		}
	}
	for i := range t.names {
		id := identityAt(i, t.names[i])
		if known[id] || t.names[i].IsZero() {
			continue
		}
		t.names[i], t.origins[i] = names.Name{}, nil
		t.free = append(t.free, id)
		forget(i)
	}
	t.Stale()
	t.kept = len(t.names) - len(t.free)
}
