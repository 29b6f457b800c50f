package match

import "math/bits"

// Post finds the unexpected message that arrived first and matches a receive from source (AnySource: any) with a tag,
// of which the bits set in ignore do not count. If there is one it is taken out of the queue and returned: it is the
// caller's until ReleaseMessage. If not, the receive is queued and returned; the caller sets its user words before
// anything else is done with the engine. Both are nil when there is no memory for the receive (see Err).
func (e *Engine) Post(source uint32, tag, ignore uint64) (*Recv, *Message) {
	cl := e.latest()
	if cl.ignore != ignore || cl.source != sourceBits(source) {
		return e.postOther(source, tag, ignore)
	}
	hash := e.nodes.hash(&cl.key, source, tag)
	if cl.msgs.used != 0 {
		return e.postUnexpected(cl, hash, source, tag)
	}
	return e.queue(cl, hash, source, tag), nil
}

// postOther is Post for a receive that is not in the most recent class.
func (e *Engine) postOther(source uint32, tag, ignore uint64) (*Recv, *Message) {
	if e.classOf(source, ignore) != nil {
		return e.Post(source, tag, ignore) // it is in the most recent class now
	}
	if m := e.Take(source, tag, ignore); m != nil {
		return nil, m
	}
	return e.queueExtra(source, tag, ignore), nil
}

// postUnexpected is Post in a class with unexpected messages.
func (e *Engine) postUnexpected(cl *class, hash uint64, source uint32, tag uint64) (*Recv, *Message) {
	n := cl.msgs.pop(&e.nodes, &cl.key, hash, source, tag, cl.no)
	if n == nil {
		return e.queue(cl, hash, source, tag), nil
	}
	if e.nClasses > 1 {
		e.unindex(n, cl)
	}
	e.unhold(n)
	return nil, messageOf(n)
}

// Queue posts a receive like Post, for a caller that knows that no unexpected message matches it, because Take or Post
// has just said so. It returns nil when there is no memory (see Err).
func (e *Engine) Queue(source uint32, tag, ignore uint64) *Recv {
	cl := e.classOf(source, ignore)
	if cl == nil {
		return e.queueExtra(source, tag, ignore)
	}
	return e.queue(cl, e.nodes.hash(&cl.key, source, tag), source, tag)
}

// queue posts a receive in a class.
func (e *Engine) queue(cl *class, hash uint64, source uint32, tag uint64) *Recv {
	n, idx := e.spareRecv(cl)
	if n == nil {
		if n, idx = e.newRecv(cl); n == nil {
			return nil
		}
	}
	return e.enqueue(cl, hash, n, idx, source, tag)
}

// TryQueue is Queue without mapping memory and without a new class: it returns nil, and has done nothing, where that
// is needed. It needs nothing of the runtime.
func (e *Engine) TryQueue(source uint32, tag, ignore uint64) *Recv {
	cl := e.classIn(source, ignore)
	if cl == nil {
		return nil
	}
	n, idx := e.spareRecv(cl)
	if n == nil {
		return nil
	}
	return e.enqueue(cl, e.nodes.hash(&cl.key, source, tag), n, idx, source, tag)
}

// spareRecv allocates a receive where there is room for one more in the queue and in a class, without asking closer.
func (e *Engine) spareRecv(cl *class) (*node, uint32) {
	o, t := &e.posted, &cl.recvs
	if o.tail-o.head < o.mask && t.used < t.limit {
		return e.nodes.TryAlloc()
	}
	return nil, 0
}

// enqueue puts a receive at the end of the queue and into its class, both of which have room.
func (e *Engine) enqueue(cl *class, hash uint64, n *node, idx, source uint32, tag uint64) *Recv {
	n.tag, n.source, n.idx = tag, source, idx
	n.state, n.keep, n.class = statePosted, false, uint8(cl.no)
	e.posted.push(n, idx)
	e.ready |= cl.bit
	cl.recvs.push(&e.nodes, &cl.key, hash, n, idx, 0)
	return recvOf(n)
}

// queueExtra posts a receive that is in no class.
func (e *Engine) queueExtra(source uint32, tag, ignore uint64) *Recv {
	n, idx := e.newRecv(nil)
	if n == nil {
		return nil
	}
	n.tag, n.source, n.idx = tag, source, idx
	n.state, n.keep, n.class = statePosted, false, inList
	e.posted.push(n, idx)
	e.extra.push(&e.nodes, n, idx)
	r := recvOf(n)
	r.ignore = ignore
	return r
}

// newRecv makes room for one more in the queue and in a class (nil: none), and allocates a receive.
func (e *Engine) newRecv(cl *class) (*node, uint32) {
	err := e.posted.room(&e.nodes)
	if err == nil && cl != nil {
		err = cl.recvs.room(&e.nodes, &cl.key)
	}
	if err != nil {
		e.fail("post", err)
		return nil, 0
	}
	n, idx := e.nodes.Alloc()
	if n == nil {
		e.fail("post", e.nodes.Err())
	}
	return n, idx
}

// Arrive returns the posted receive that was posted first and matches a message from source with a tag, or nil. The
// receive is taken out of the queue and is the caller's until Release; a receive that is kept (SetKeep) stays where
// it is until Remove.
func (e *Engine) Arrive(source uint32, tag uint64) *Recv {
	if e.posted.live == 0 { // short enough to be inlined
		return nil
	}
	return e.arrive(source, tag)
}

// arrive is Arrive where receives are posted.
func (e *Engine) arrive(source uint32, tag uint64) *Recv {
	ready := e.ready
	if ready&(ready-1) != 0 || e.extra.n != 0 {
		return e.arriveMixed(source, tag)
	}
	cl := &e.classes[bits.TrailingZeros32(ready)%MaxClasses]
	n := cl.recvs.pop(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), source, tag, 0)
	if n == nil || n.keep {
		return recvOf(n)
	}
	if cl.recvs.used == 0 {
		e.ready = 0 // cl was the only class
		if cl.recvs.grown() && cl.recvs.drained() {
			e.shrink = true
		}
	}
	if !e.posted.removeOnly() {
		e.posted.remove(n.pos)
	}
	n.state = stateOut
	return recvOf(n)
}

// emptied does what is to be done when the last receive of a class has gone.
func (e *Engine) emptied(cl *class) {
	e.ready &^= cl.bit
	if cl.recvs.grown() && cl.recvs.drained() {
		e.shrink = true
	}
}

// Find returns the receive that Arrive would, and leaves it in the queue.
func (e *Engine) Find(source uint32, tag uint64) *Recv {
	if e.posted.live == 0 {
		return nil
	}
	n, _, _ := e.search(source, tag)
	return recvOf(n)
}

// arriveMixed is Arrive where receives are posted in several classes.
func (e *Engine) arriveMixed(source uint32, tag uint64) *Recv {
	n, place, hash := e.search(source, tag)
	if n == nil || n.keep {
		return recvOf(n)
	}
	if n.class != inList {
		cl := &e.classes[n.class%MaxClasses]
		cl.recvs.removeFirst(&e.nodes, place, hash, 0)
		if cl.recvs.used == 0 {
			e.emptied(cl)
		}
	} else {
		e.extra.remove(&e.nodes, n, n.idx)
	}
	e.posted.remove(n.pos)
	n.state = stateOut
	return recvOf(n)
}

// search returns the matching receive that was posted first, and its place and hash if it is in a class.
func (e *Engine) search(source uint32, tag uint64) (first *node, place uint32, hash uint64) {
	for ready := e.ready; ready != 0; ready &= ready - 1 {
		cl := &e.classes[bits.TrailingZeros32(ready)%MaxClasses]
		h := e.nodes.hash(&cl.key, source, tag)
		i := cl.recvs.find(&e.nodes, &cl.key, h, source, tag)
		if i == none {
			continue
		}
		if n := e.nodes.At(cl.recvs.at(i).head); first == nil || before(n, first) {
			first, place, hash = n, i, h
		}
	}
	if n := e.searchExtra(source, tag, first); n != nil {
		first = n
	}
	return first, place, hash
}

// before reports whether a is ahead of b in the queue that both are in.
func before(a, b *node) bool { return int32(a.pos-b.pos) < 0 }

// searchExtra returns the first matching receive that is in no class and ahead of a given one, which may be nil.
func (e *Engine) searchExtra(source uint32, tag uint64, limit *node) *node {
	for idx := e.extra.head; idx != 0; {
		n := e.nodes.At(idx)
		e.nodes.steps++
		if limit != nil && before(limit, n) {
			return nil
		}
		k := key{recvOf(n).ignore, sourceBits(n.source)}
		if k.equal(n, source, tag) {
			return n
		}
		idx = e.extra.next(n)
	}
	return nil
}

// Cancel takes the receive with a given Context that was posted first out of the queue and returns it; it is the
// caller's until Release. It returns nil if there is none. The search is linear, from the receive posted first.
func (e *Engine) Cancel(context uint64) *Recv {
	for pos := e.posted.head; pos != e.posted.tail; pos++ {
		idx := e.posted.at(pos)
		if idx == 0 {
			continue
		}
		if r := recvOf(e.nodes.At(idx)); r.Context == context {
			e.Remove(r)
			return r
		}
	}
	return nil
}

// Remove takes a posted receive out of the queue; it is the caller's until Release. It does nothing, and returns
// false, if the receive is not posted.
func (e *Engine) Remove(r *Recv) bool {
	if r.state != statePosted {
		return false
	}
	n := r.node()
	if n.class != inList {
		cl := &e.classes[n.class%MaxClasses]
		cl.recvs.remove(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, 0)
		if cl.recvs.used == 0 {
			e.emptied(cl)
		}
	} else {
		e.extra.remove(&e.nodes, n, n.idx)
	}
	e.posted.remove(n.pos)
	n.state = stateOut
	return true
}

// Release ends a receive that is the caller's. Its memory is used again, so no pointer to it may be kept. It panics
// if the receive is still posted or was released before.
func (e *Engine) Release(r *Recv) { e.release(&r.head) }

// Put is Release without its check, for a caller that has just taken the receive out. It needs nothing of the runtime.
func (e *Engine) Put(r *Recv) { e.put(&r.head) }

// Rename makes the posted receives from one source receives from another, at
// their places in the queue. It is linear in the posted receives and reads
// no unexpected message: those that match now are the caller's to find.
func (e *Engine) Rename(from, to uint32) {
	for r := range e.Recvs() {
		if r.source != from && r.source != to {
			continue
		}
		// What joins a list joins its end, so receives that are in it join again, in order.
		if n := r.node(); n.class != inList {
			cl := &e.classes[n.class%MaxClasses]
			cl.recvs.remove(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, 0)
		}
	}
	for r := range e.Recvs() {
		if r.source != from && r.source != to {
			continue
		}
		n := r.node()
		n.source = to
		if n.class != inList {
			cl := &e.classes[n.class%MaxClasses]
			cl.recvs.push(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, 0)
		}
	}
}
