package peers

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/names"
)

// origin is an interface of a peer: a number, and whether each address leads to its port.
type origin struct {
	number int
	port   uint16
	every  bool
	own    names.Name
}

func (o origin) Reaches(n names.Name) bool { return n == o.own || o.every && n.Port == o.port }

func nameAt(addr string, port uint16) names.Name { return names.New(netip.MustParseAddr(addr), port) }

// table is identities and what they call.
type table struct {
	Identities[origin]
	changed []int
	stale   int
	merged  [][2]uint32
	kept    bool // messages are unexpected
}

func newTable() *table {
	t := &table{}
	t.Changed = func(slot int) { t.changed = append(t.changed, slot) }
	t.Stale = func() { t.stale++ }
	return t
}

func (t *table) meet(o origin) uint32 {
	return t.Meet(o, o.own, func(alias, peer uint32) { t.merged = append(t.merged, [2]uint32{alias, peer}) })
}

func (t *table) part(o origin, id uint32) bool {
	return t.Part(o, id, func(uint32) bool { return t.kept })
}

// TestIdentities: identities are dense from 1 on, one for each name, and another under each key.
func TestIdentities(t *testing.T) {
	s := newTable()
	one, two := nameAt("10.0.0.1", 7), nameAt("10.0.0.2", 7)
	if s.Known(one) != None || s.Of(one) != 1 || s.Of(two) != 2 || s.Of(one) != 1 || s.Known(two) != 2 {
		t.Error("not dense, or not the same again")
	}
	keyed := s.Of(one.WithKey(3))
	if keyed != 3|3<<match.GroupShift || Slot(keyed) != 2 || s.Name(keyed) != one.WithKey(3) {
		t.Errorf("under a key: %#x, slot %d", keyed, Slot(keyed))
	}
	if s.Present(1) || s.Reaches(1, one) {
		t.Error("present before it was met")
	}
	if list := s.AtPort(7); len(list) != 3 || list[0] != one {
		t.Errorf("at the port: %v", list)
	}
	if !slices.Equal(s.changed, []int{0, 1, 2}) {
		t.Errorf("changed: %v", s.changed)
	}
}

// TestAliases: names that lead to a peer which is there are its aliases, whichever came first, until it is gone.
func TestAliases(t *testing.T) {
	s := newTable()
	own, early, late := nameAt("10.0.0.1", 7), nameAt("10.0.0.2", 7), nameAt("10.0.0.3", 7)
	was := s.Of(early)
	o := origin{number: 1, port: 7, every: true, own: own}
	id := s.meet(o)
	if s.Of(own) != id || s.Of(late) != id || s.Of(early) != id || id == was {
		t.Errorf("identity %d: %d, %d, %d", id, s.Of(own), s.Of(late), s.Of(early))
	}
	if len(s.merged) != 1 || s.merged[0] != [2]uint32{was, id} || s.stale == 0 {
		t.Errorf("merged %v, stale %d times", s.merged, s.stale)
	}
	if other := s.Of(nameAt("10.0.0.1", 8)); other == id {
		t.Error("another port is an alias")
	}
	second := o
	second.number = 2
	if s.meet(second) != id || s.part(o, id) {
		t.Error("a second interface is another peer, or the first was the last")
	}
	s.kept = true
	if !s.part(second, id) || s.Known(late) != id {
		t.Error("aliases are gone while messages are unexpected")
	}
	s.kept = false
	s.meet(o)
	if !s.part(o, id) || s.Known(late) != None || s.Known(own) != id || s.Present(id) {
		t.Error("aliases stay after the peer, or its own name does not")
	}
}

// TestSuccessor: an alias may become another peer's own name.
func TestSuccessor(t *testing.T) {
	s := newTable()
	own, alias := nameAt("10.0.0.1", 7), nameAt("10.0.0.2", 7)
	first := origin{number: 1, port: 7, every: true, own: own}
	id := s.meet(first)
	s.Of(alias)
	s.Leave(func(o origin) bool { return o == first })
	next := s.meet(origin{number: 2, own: alias})
	if next == id || s.Known(alias) != next || s.Known(own) != id {
		t.Errorf("first %d, next %d, alias %d", id, next, s.Known(alias))
	}
}

// TestSweep: identities that nothing knows are given up and used again, the others stay.
func TestSweep(t *testing.T) {
	s := newTable()
	known := map[uint32]bool{}
	for port := uint16(1); port <= 200; port++ {
		if due := s.Due(); due != (port > slack) {
			t.Fatalf("due with %d: %v", port-1, due)
		}
		if id := s.Of(nameAt("10.0.0.1", port)); port%10 == 0 {
			known[id] = true
		}
	}
	forgotten := map[int]bool{}
	s.Sweep(known, func(slot int) { forgotten[slot] = true })
	if len(forgotten) != 180 || s.Due() || s.Known(nameAt("10.0.0.1", 10)) != 10 ||
		s.Known(nameAt("10.0.0.1", 11)) != None {
		t.Errorf("%d forgotten, due %v", len(forgotten), s.Due())
	}
	if len(s.AtPort(11)) != 0 || len(s.AtPort(10)) != 1 {
		t.Error("names at ports are not those of identities")
	}
	if id := s.Of(nameAt("10.0.0.2", 11)); !forgotten[Slot(id)] || s.Name(id) != nameAt("10.0.0.2", 11) {
		t.Errorf("a new name has identity %d", id)
	}
}
