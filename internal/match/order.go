package match

import "github.com/weft-fabric/weft/internal/mem"

// minOrder is the capacity of a new order: one page of indexes.
const minOrder = 1024

// quietDrains is how many times a structure must become empty before it gives back what it grew to.
const quietDrains = 256

// order is a queue of nodes in which any can be removed: a ring of node indexes in which a removed node leaves a hole
// (0). Positions are free-running and masked on use, and are compared by difference; a node records its own. The
// first position in [head, tail) is never a hole.
//
// Against a list linked through the nodes it costs one store in a dense array on removal instead of stores to two
// other nodes, and a walk reads the nodes independently of each other.
type order struct {
	ring       mem.Array[uint32]
	mask       uint32 // capacity-1; 0 while nothing is mapped
	head, tail uint32
	live       uint32 // nodes in the queue
	drains     uint32 // times it became empty since it last grew
}

// room makes sure that one more node fits.
func (o *order) room(s *store) error {
	if o.mask != 0 && o.tail-o.head <= o.mask {
		return nil
	}
	return o.makeRoom(s)
}

// push appends a node, for which there is room.
func (o *order) push(n *node, idx uint32) {
	*o.ring.At(o.tail & o.mask) = idx
	n.pos = o.tail
	o.tail++
	o.live++
}

// removeOnly takes the only node out of a ring that has not grown, and reports whether it did.
func (o *order) removeOnly() bool {
	if o.live != 1 || o.mask >= minOrder {
		return false
	}
	o.live, o.tail = 0, o.head
	return true
}

// remove takes the node at a position out.
func (o *order) remove(pos uint32) {
	o.live--
	switch {
	case o.live == 0:
		o.tail = o.head
		if o.mask >= minOrder {
			o.drains++
		}
	case pos == o.head:
		o.head++
		for *o.ring.At(o.head & o.mask) == 0 {
			o.head++
		}
	case pos == o.tail-1:
		o.tail--
	default:
		*o.ring.At(pos & o.mask) = 0
	}
}

// at returns the node at a position in [head, tail), or 0 for a hole.
func (o *order) at(pos uint32) uint32 { return *o.ring.At(pos & o.mask) }

// makeRoom closes the holes if they are half of the ring, or if there is no memory; else it moves to a ring of twice
// the size.
func (o *order) makeRoom(s *store) error {
	size := o.mask + 1
	if o.mask != 0 && o.live <= size/2 {
		o.compact(s, &o.ring, o.mask)
		return nil
	}
	if size = size * 2; o.mask == 0 {
		size = minOrder
	}
	ring, err := mem.NewArray[uint32](int(size))
	if err != nil && o.live <= o.mask && o.mask != 0 {
		o.compact(s, &o.ring, o.mask)
		return nil
	}
	if err != nil {
		return err
	}
	o.compact(s, &ring, size-1)
	_ = o.ring.Free() // an address range that could not be unmapped is lost, not wrong
	o.ring, o.mask, o.drains = ring, size-1, 0
	return nil
}

// compact moves all nodes, in order and without holes, to a ring that may be the present one.
func (o *order) compact(s *store, ring *mem.Array[uint32], mask uint32) {
	to := o.head
	for from := o.head; from != o.tail; from++ {
		if idx := o.at(from); idx != 0 {
			*ring.At(to & mask) = idx
			s.At(idx).pos = to
			to++
		}
	}
	o.tail = to
}

// reclaim gives an empty ring back that has grown and has become empty often.
func (o *order) reclaim() {
	if o.drains >= quietDrains {
		o.trim()
	}
}

// trim gives an empty ring back.
func (o *order) trim() {
	if o.live == 0 {
		o.drop()
	}
}

// drop forgets all nodes and gives the ring back. Positions go on from where they were, for a walk in progress.
func (o *order) drop() {
	_ = o.ring.Free() // an address range that could not be unmapped is lost, not wrong
	*o = order{head: o.tail, tail: o.tail}
}
