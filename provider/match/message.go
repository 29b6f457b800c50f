package match

// Hold queues a message from source with a tag for which Arrive has just returned nil. The caller sets its user words
// before anything else is done with the engine. It returns nil when there is no memory (see Err).
func (e *Engine) Hold(source uint32, tag uint64) *Message {
	var n *node
	var idx uint32
	if o := &e.held; o.tail-o.head < o.mask && o.live < e.heldLimit { // there is room, without asking closer
		n, idx = e.nodes.Reuse()
	}
	if n == nil {
		if n, idx = e.newMessage(); n == nil {
			return nil
		}
	}
	n.tag, n.source, n.idx = tag, source, idx
	n.state, n.keep = stateHeld, false
	e.held.push(n, idx)
	for c := range e.nClasses % (MaxClasses + 1) {
		cl := &e.classes[c%MaxClasses]
		cl.msgs.push(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), n, idx, c)
	}
	return messageOf(n)
}

// newMessage makes room for one more in the queue and in all classes, and allocates a message.
func (e *Engine) newMessage() (*node, uint32) {
	if err := e.roomToHold(); err != nil {
		e.fail("hold", err)
		return nil, 0
	}
	n, idx := e.nodes.Alloc()
	if n == nil {
		e.fail("hold", e.nodes.Err())
	}
	return n, idx
}

// roomToHold makes sure that one more message fits into all that index it.
func (e *Engine) roomToHold() error {
	for c := range e.nClasses {
		cl := &e.classes[c]
		if err := cl.msgs.room(&e.nodes, &cl.key); err != nil {
			return err
		}
	}
	e.refit()
	return e.held.room(&e.nodes)
}

// refit brings heldLimit and heldGrown up to date.
func (e *Engine) refit() {
	e.heldLimit, e.heldGrown = ^uint32(0), false
	for c := range e.nClasses {
		t := &e.classes[c].msgs
		e.heldLimit = min(e.heldLimit, t.limit)
		e.heldGrown = e.heldGrown || t.grown()
	}
}

// Peek returns the message that Take would, and leaves it in the queue.
func (e *Engine) Peek(source uint32, tag, ignore uint64) *Message {
	if e.held.live == 0 {
		return nil
	}
	cl := e.classOf(source, ignore)
	if cl == nil {
		return e.searchHeld(source, tag, ignore)
	}
	i := cl.msgs.find(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), source, tag)
	if i == none {
		return nil
	}
	return messageOf(e.nodes.At(cl.msgs.at(i).head))
}

// Take takes the held message that arrived first and matches a receive (see Post) out of the queue and returns it;
// it is the caller's until ReleaseMessage. It returns nil if there is none. Claimed messages match nothing.
func (e *Engine) Take(source uint32, tag, ignore uint64) *Message {
	m := e.Peek(source, tag, ignore)
	if m != nil {
		e.RemoveMessage(m)
	}
	return m
}

// searchHeld looks for the first matching message one by one, for a receive that has no class.
func (e *Engine) searchHeld(source uint32, tag, ignore uint64) *Message {
	k := key{ignore, sourceBits(source)}
	for pos := e.held.head; pos != e.held.tail; pos++ {
		if idx := e.held.at(pos); idx != 0 {
			e.nodes.steps++
			if n := e.nodes.At(idx); k.equal(n, source, tag) {
				return messageOf(n)
			}
		}
	}
	return nil
}

// unindex takes a held message out of all classes but one (nil: out of all).
func (e *Engine) unindex(n *node, but *class) {
	for c := range e.nClasses {
		if cl := &e.classes[c]; cl != but {
			cl.msgs.remove(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, c)
		}
	}
}

// unhold takes a message that is in no class any more out of the queue.
func (e *Engine) unhold(n *node) {
	if !e.held.removeOnly() {
		e.held.remove(n.pos)
	}
	if e.held.live == 0 && e.heldGrown {
		e.noneHeld()
	}
	n.state = stateOut
}

// noneHeld lets the classes count that no message is held any more.
func (e *Engine) noneHeld() {
	for c := range e.nClasses {
		if t := &e.classes[c].msgs; t.grown() {
			t.drained()
		}
	}
	e.refit()
}

// RemoveMessage takes a message that is held or claimed out of the queue; it is the caller's until ReleaseMessage. It
// does nothing, and returns false, if the message is neither.
func (e *Engine) RemoveMessage(m *Message) bool {
	switch m.state {
	case stateHeld:
		e.unindex(m.node(), nil)
		e.unhold(m.node())
	case stateClaimed:
		e.claimed.remove(&e.nodes, m.node(), m.idx)
		m.state = stateOut
	default:
		return false
	}
	return true
}

// ReleaseMessage ends a message that is the caller's. Its memory is used again, so no pointer to it may be kept; what
// Payload names is the caller's to free. It panics if the message is still held or claimed, or was released before.
func (e *Engine) ReleaseMessage(m *Message) { e.release(&m.head) }

// Discard removes a held or claimed message, or one that is the caller's already, and releases it.
func (e *Engine) Discard(m *Message) {
	e.RemoveMessage(m)
	e.ReleaseMessage(m)
}
