package match

// recycleMost is the most unexpected messages with which a class gives way to a new one: their indexing is what that
// costs.
const recycleMost = minGroups

// class is a way of comparing that receives use, with everything queued indexed by it.
type class struct {
	key
	no    uint32 // its place in Engine.classes, and the link of its lists of messages; immutable
	bit   uint32 // 1<<no, its bit in Engine.ready; immutable
	used  uint32 // Engine.clock when it was last used and not the most recent class
	recvs table  // posted receives of this class
	msgs  table  // all unexpected messages
}

// noSource is the key.source of a class that is not in use; it equals that of no receive.
const noSource = 1

// sourceBits returns the key.source of a receive.
func sourceBits(source uint32) uint32 {
	switch {
	case source == AnySource:
		return 0
	case source&inGroup == inGroup:
		return ^uint32(inGroup)
	}
	return ^uint32(0)
}

// classOf returns the class of a receive and makes it the most recent one. It returns nil if there is none to be had.
func (e *Engine) classOf(source uint32, ignore uint64) *class {
	if cl := e.classIn(source, ignore); cl != nil {
		return cl
	}
	return e.newClass(key{ignore, sourceBits(source)})
}

// classIn is classOf for a class that is in use; nil if there is none for such receives.
func (e *Engine) classIn(source uint32, ignore uint64) *class {
	k := key{ignore, sourceBits(source)}
	if cl := e.latest(); cl.key == k {
		return cl
	}
	for c := range e.inUse() {
		if cl := &e.classes[c]; cl.key == k {
			return e.use(cl)
		}
	}
	return nil
}

// inUse returns the classes that are in use, by their numbers.
func (e *Engine) inUse() []class { return e.classes[:min(e.nClasses, MaxClasses)] }

// latest returns the most recent class.
func (e *Engine) latest() *class { return &e.classes[e.recent%MaxClasses] }

// use makes a class the most recent one.
func (e *Engine) use(cl *class) *class {
	e.clock++
	e.latest().used = e.clock
	e.recent = cl.no
	return cl
}

// newClass makes a class for a key, in a place that was never used or in that of the idle class whose last use is
// longest ago, and indexes all unexpected messages in it. It returns nil if there is no place or no memory.
func (e *Engine) newClass(k key) *class {
	var cl *class
	if e.nClasses < MaxClasses {
		cl = &e.classes[e.nClasses]
	} else if cl = e.idleClass(); cl == nil {
		return nil
	}
	msgs, err := newTable(e.unexpected.live)
	if err != nil {
		return nil
	}
	cl.msgs.drop()
	cl.key, cl.msgs = k, msgs
	for pos := e.unexpected.head; pos != e.unexpected.tail; pos++ {
		if idx := e.unexpected.at(pos); idx != 0 {
			n := e.nodes.At(idx)
			cl.msgs.push(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, idx, cl.no)
		}
	}
	e.nClasses = max(e.nClasses, cl.no+1)
	e.refit()
	return e.use(cl)
}

// idleClass returns the class to give up for a new one, or nil.
func (e *Engine) idleClass() *class {
	if e.unexpected.live > recycleMost {
		return nil
	}
	var best *class
	for c := range e.classes {
		cl := &e.classes[c]
		if cl != e.latest() && cl.recvs.used == 0 && (best == nil || int32(cl.used-best.used) < 0) {
			best = cl
		}
	}
	return best
}
