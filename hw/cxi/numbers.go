package cxi

// numbers are ids that are given out. One that is given back rests as long as possible.
type numbers struct {
	first, count uint32 // of free: a ring
	free         []uint32
	// owner is the command that has an id, noOp: none.
	owner []uint32
	base  uint32 // the least id
}

func newNumbers(base, count uint32) numbers {
	n := numbers{count: count, free: make([]uint32, count), owner: make([]uint32, count), base: base}
	for k := range n.free {
		n.free[k], n.owner[k] = base+uint32(k), noOp
	}
	return n
}

// take gives out an id. False: there is none.
func (n *numbers) take(owner uint32) (uint32, bool) {
	if n.count == 0 {
		return 0, false
	}
	id := n.free[n.first]
	n.first = (n.first + 1) % uint32(len(n.free))
	n.count--
	n.owner[id-n.base] = owner
	return id, true
}

// put takes back an id.
func (n *numbers) put(id uint32) {
	n.owner[id-n.base] = noOp
	n.free[(n.first+n.count)%uint32(len(n.free))] = id
	n.count++
}

// find is the command that has an id, noOp: none.
func (n *numbers) find(id uint32) uint32 {
	if id -= n.base; id < uint32(len(n.owner)) {
		return n.owner[id]
	}
	return noOp
}
