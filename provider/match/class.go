package match

// recycleHeld is the most held messages with which a class gives way to a new one: their indexing is what that costs.
const recycleHeld = minGroups

// class is a way of comparing that receives use, with everything queued indexed by it.
type class struct {
	key
	used  uint32 // Engine.clock when it was last looked up and not the most recent class
	recvs table  // posted receives of this class
	msgs  table  // all held messages
}

// noSource is the key.source of a class that is not in use; it equals that of no receive.
const noSource = 1

// sourceBits returns the key.source of a receive.
func sourceBits(source uint32) uint32 {
	if source == AnySource {
		return 0
	}
	return ^uint32(0)
}

// classOf returns the class of a receive, or inList if there is none to be had.
func (e *Engine) classOf(ignore uint64, source uint32) uint32 {
	k := &e.classes[e.recent%MaxClasses].key
	if k.ignore == ignore && k.source == source {
		return e.recent
	}
	return e.findClass(key{ignore, source})
}

func (e *Engine) findClass(k key) uint32 {
	for c := range e.nClasses {
		if e.classes[c].key == k {
			e.use(c)
			return c
		}
	}
	return e.newClass(k)
}

// use makes c the most recent class.
func (e *Engine) use(c uint32) {
	e.clock++
	e.classes[e.recent%MaxClasses].used = e.clock
	e.recent = c
}

// newClass makes a class for a key, in a place that was never used or in that of the idle class whose last use is
// longest ago, and indexes all held messages in it. It returns inList if there is no place or no memory.
func (e *Engine) newClass(k key) uint32 {
	c := e.nClasses
	if c == MaxClasses {
		if c = e.idleClass(); c == inList {
			return inList
		}
	}
	msgs, err := newTable(e.held.live)
	if err != nil {
		return inList
	}
	cl := &e.classes[c]
	cl.msgs.drop()
	cl.key, cl.msgs = k, msgs
	for pos := e.held.head; pos != e.held.tail; pos++ {
		if idx := e.held.at(pos); idx != 0 {
			n := e.nodes.At(idx)
			cl.msgs.insert(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, idx, c)
		}
	}
	e.nClasses = max(e.nClasses, c+1)
	e.use(c)
	return c
}

// idleClass returns the class to give up for a new one, or inList.
func (e *Engine) idleClass() uint32 {
	if e.held.live > recycleHeld {
		return inList
	}
	best := uint32(inList)
	for c := range uint32(MaxClasses) {
		cl := &e.classes[c]
		if c != e.recent && cl.recvs.used == 0 && (best == inList || int32(cl.used-e.classes[best].used) < 0) {
			best = c
		}
	}
	return best
}
