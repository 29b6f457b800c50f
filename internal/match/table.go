package match

import (
	"math/bits"

	"github.com/weft-fabric/weft/internal/mem"
)

// minGroups is the number of groups of a new table: one page.
const minGroups = 64

// groupSlots is the number of keys that fit in a group.
const groupSlots = 7

// Masks over the bytes of group.tags that are tags.
const (
	tagLow  = 0x00_01_01_01_01_01_01_01
	tagHigh = tagLow << 7
)

// key is what a class compares: the bits of source and tag that count.
type key struct {
	ignore uint64 // tag bits that do not
	source uint32 // all ones, those of the group, or 0 if any source matches
}

// equal reports whether a node has the given source and tag, as far as the class compares.
func (k *key) equal(n *node, source uint32, tag uint64) bool {
	return (n.tag^tag)&^k.ignore == 0 && (n.source^source)&k.source == 0
}

// Fits reports whether a receive from source (AnySource: any) with a tag, of which the bits set in ignore do not count,
// matches a message from a source with a tag. It is what the engine finds by hash.
func Fits(source uint32, tag, ignore uint64, from uint32, with uint64) bool {
	return (tag^with)&^ignore == 0 && (source^from)&sourceBits(source) == 0
}

// slot is one key of a table: the nodes with that key are a list in queue order.
type slot struct {
	head, tail uint32
}

// group is one cache line of a table. Byte i of tags is 0 if slot i is empty, else 8 bits of its key's hash, so that
// all slots are compared at once and, as a rule, no node of another key is touched. Byte 7 counts the keys that found
// this group full and went on to a later one; at 255 it stays.
type group struct {
	tags  uint64
	slots [groupSlots]slot
}

// match returns a mask with bit 7 of byte i set if slot i has the tag of a hash. It may also be set for another slot
// in use, whose tag differs in the lowest bit.
func (g *group) match(hash uint64) uint64 {
	x := g.tags ^ tagOf(hash)*tagLow
	return (x - tagLow) &^ x & tagHigh
}

// vacant returns a mask whose lowest bit is in byte i if slot i is the first empty one, and 0 if there is none.
func (g *group) vacant() uint64 { return (g.tags - tagLow) &^ g.tags & tagHigh }

// passed reports whether keys went past this group to a later one.
func (g *group) passed() bool { return g.tags>>56 != 0 }

// table is a hash table of lists. A key is in the first group on its way that had room; its way starts at the group
// its hash names and goes on to the next. The layout is that of F14 (Bronson and Shi, "Open-sourcing F14 for faster,
// more memory-efficient hash tables", 2019) with comparison in a 64-bit word: a search costs one cache line and
// hardly ever depends on a branch that cannot be foreseen, and removal moves nothing.
//
// A table takes keys up to half of its slots, then it doubles.
type table struct {
	groups mem.Array[group]
	mask   uint32 // groups-1; 0 while nothing is mapped
	used   uint32 // keys in the table
	limit  uint32 // keys up to which there is room
	drains uint32 // times it became empty since it last grew
}

// newTable returns a table with room for n keys; with none it takes no memory.
func newTable(n uint32) (table, error) {
	if n == 0 {
		return table{}, nil
	}
	size := uint32(minGroups)
	for size*groupSlots/2 < n {
		size *= 2
	}
	groups, err := mem.NewArray[group](int(size))
	return table{groups: groups, mask: size - 1, limit: size * groupSlots / 2}, err
}

// none is no place. A place is a slot of a table: 8 * group + slot.
const none = ^uint32(0)

// at returns the slot at a place.
func (t *table) at(place uint32) *slot { return &t.groups.At(place / 8).slots[place%8] }

// tagOf returns the tag of a hash. It has bit 1 set, because match must not take the 0 of an empty slot for a tag.
func tagOf(hash uint64) uint64 { return hash>>56 | 2 }

// home returns the group where the way of a hash starts.
func (t *table) home(hash uint64) *group { return t.groups.At(uint32(hash) & t.mask) }

// find returns the place of a key, or none. The table must have been mapped.
func (t *table) find(s *store, k *key, hash uint64, source uint32, tag uint64) uint32 {
	i := uint32(hash) & t.mask
	for left := t.mask; ; left-- {
		g := t.groups.At(i)
		s.steps++
		for m := g.match(hash); m != 0; m &= m - 1 {
			j := uint32(bits.TrailingZeros64(m)) / 8
			if k.equal(s.At(g.slots[j].head), source, tag) {
				return i*8 + j
			}
		}
		if !g.passed() || left == 0 {
			return none
		}
		i = (i + 1) & t.mask
	}
}

// push appends a node to the list of its key, by link l. There must be room.
func (t *table) push(s *store, k *key, hash uint64, n *node, idx uint32, l uint32) {
	g := t.home(hash)
	m := g.match(hash)
	if j := bits.TrailingZeros64(m) / 8; j < groupSlots {
		if at := &g.slots[j]; k.equal(s.At(at.head), n.source, n.tag) {
			s.append(at, n, idx, l)
			return
		}
	} else if v := g.vacant(); v != 0 && !g.passed() {
		t.put(g, v, hash, slot{idx, idx})
		return
	}
	t.pushAway(s, k, hash, n, idx, l)
}

// pushAway is push where the key may be in a group away from home.
func (t *table) pushAway(s *store, k *key, hash uint64, n *node, idx uint32, l uint32) {
	if place := t.find(s, k, hash, n.source, n.tag); place != none {
		s.append(t.at(place), n, idx, l)
		return
	}
	t.place(hash, slot{idx, idx})
}

// pop takes the first node with a key out of the table and returns it, or returns nil if there is none. A node that is
// to be kept is returned and stays.
func (t *table) pop(s *store, k *key, hash uint64, source uint32, tag uint64, l uint32) *node {
	g := t.home(hash)
	m := g.match(hash)
	if m == 0 && !g.passed() {
		return nil
	}
	if j := bits.TrailingZeros64(m) / 8; j < groupSlots {
		at := &g.slots[j]
		if n := s.At(at.head); k.equal(n, source, tag) {
			switch {
			case n.keep:
			case at.head == at.tail:
				g.tags &^= 0xff << (j * 8)
				t.used--
			default:
				at.head = n.links[l%MaxClasses].next
			}
			return n
		}
	}
	return t.popAway(s, k, hash, source, tag, l)
}

// popAway is pop where the key may be in a group away from home.
func (t *table) popAway(s *store, k *key, hash uint64, source uint32, tag uint64, l uint32) *node {
	place := t.find(s, k, hash, source, tag)
	if place == none {
		return nil
	}
	n := s.At(t.at(place).head)
	if !n.keep {
		t.removeFirst(s, place, hash, l)
	}
	return n
}

// put puts the list of a new key into the first vacant slot of a group.
func (t *table) put(g *group, vacant, hash uint64, list slot) {
	j := uint32(bits.TrailingZeros64(vacant)) / 8
	g.tags |= tagOf(hash) << (j * 8)
	g.slots[j] = list
	t.used++
}

// place puts the list of a key that is not in the table into the first group on its way that has room.
func (t *table) place(hash uint64, list slot) {
	for i := uint32(hash) & t.mask; ; i = (i + 1) & t.mask {
		g := t.groups.At(i)
		if v := g.vacant(); v != 0 {
			t.put(g, v, hash, list)
			return
		}
		if g.tags>>56 != 255 {
			g.tags += 1 << 56
		}
	}
}

// removeFirst takes the first node out of the list at a place.
func (t *table) removeFirst(s *store, place uint32, hash uint64, l uint32) {
	at := t.at(place)
	if at.head == at.tail {
		t.erase(place, hash)
		return
	}
	at.head = s.At(at.head).links[l%MaxClasses].next
}

// remove takes n, which is node idx and has the key hash, out of its list.
func (t *table) remove(s *store, k *key, hash uint64, n *node, idx uint32, l uint32) {
	g := t.home(hash)
	if j := bits.TrailingZeros64(g.match(hash)) / 8; j < groupSlots && g.slots[j].head == idx { // nearly always
		if at := &g.slots[j]; at.tail != idx {
			at.head = n.links[l%MaxClasses].next
			return
		}
		g.tags &^= 0xff << (j * 8)
		t.used--
		return
	}
	t.removeAway(s, k, hash, n, idx, l)
}

// removeAway is remove of one that is not the first of the first list of its home group.
func (t *table) removeAway(s *store, k *key, hash uint64, n *node, idx uint32, l uint32) {
	place := t.find(s, k, hash, n.source, n.tag)
	at := t.at(place)
	own := n.links[l%MaxClasses]
	switch idx {
	case at.head:
		t.removeFirst(s, place, hash, l)
	case at.tail:
		at.tail = own.prev
	default:
		s.At(own.prev).links[l%MaxClasses].next = own.next
		s.At(own.next).links[l%MaxClasses].prev = own.prev
	}
}

// erase empties the slot at a place, whose key has a hash.
func (t *table) erase(place uint32, hash uint64) {
	t.groups.At(place / 8).tags &^= 0xff << (place % 8 * 8)
	t.used--
	for i := uint32(hash) & t.mask; i != place/8; i = (i + 1) & t.mask {
		if g := t.groups.At(i); g.tags>>56 != 255 {
			g.tags -= 1 << 56
		}
	}
}

// room makes sure that one more key fits.
func (t *table) room(s *store, k *key) error {
	if t.used < t.limit {
		return nil
	}
	return t.grow(s, k)
}

// grow maps the first groups, or twice as many and moves all keys there, for which it reads the first node of each.
// When there is no memory the table goes on filling, and fails when it is full.
func (t *table) grow(s *store, k *key) error {
	grown, err := newTable(max(1, t.limit+1))
	if err != nil {
		if t.mask != 0 && t.used < (t.mask+1)*groupSlots {
			return nil
		}
		return err
	}
	for i := range uint32(t.groups.Len()) {
		g := t.groups.At(i)
		for j, list := range g.slots {
			if g.tags>>(j*8)&0xff != 0 {
				n := s.At(list.head)
				grown.place(s.hash(k, n.source, n.tag), list)
			}
		}
	}
	_ = t.groups.Free() // an address range that could not be unmapped is lost, not wrong
	*t = grown
	return nil
}

// grown reports whether the table has more than the first groups.
func (t *table) grown() bool { return t.mask >= minGroups }

// drained counts that the last key of a table that has grown has gone, and reports whether that was often enough to
// give memory back.
func (t *table) drained() bool {
	t.drains++
	return t.drains >= quietDrains
}

// reclaim gives the memory of an empty table back that has become empty often.
func (t *table) reclaim() {
	if t.drains >= quietDrains {
		t.trim()
	}
}

// trim gives the memory of an empty table back.
func (t *table) trim() {
	if t.used == 0 {
		t.drop()
	}
}

// drop forgets all keys and gives the memory back.
func (t *table) drop() {
	_ = t.groups.Free() // an address range that could not be unmapped is lost, not wrong
	*t = table{}
}
