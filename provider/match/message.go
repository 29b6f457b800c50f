package match

// Hold queues a message from source with a tag for which Arrive has just returned nil. The caller sets its user words
// before anything else is done with the engine. It returns nil when there is no memory (see Err).
func (e *Engine) Hold(source uint32, tag uint64) *Message {
	if err := e.roomToHold(); err != nil {
		e.fail("hold", err)
		return nil
	}
	n, idx := e.nodes.Alloc()
	if n == nil {
		e.fail("hold", e.nodes.Grow())
		return nil
	}
	n.tag, n.source, n.idx, n.state = tag, source, idx, stateHeld
	e.held.push(n, idx)
	for c := range e.nClasses % (MaxClasses + 1) {
		cl := &e.classes[c%MaxClasses]
		cl.msgs.insert(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), n, idx, c)
	}
	return messageOf(n)
}

// roomToHold makes sure that one more message fits into all that index it.
func (e *Engine) roomToHold() error {
	for c := range e.nClasses {
		if err := e.classes[c%MaxClasses].msgs.room(&e.nodes, &e.classes[c%MaxClasses].key); err != nil {
			return err
		}
	}
	return e.held.room(&e.nodes)
}

// Peek returns the message that Take would, and leaves it in the queue.
func (e *Engine) Peek(source uint32, tag, ignore uint64) *Message {
	if e.held.live == 0 {
		return nil
	}
	c := e.classOf(ignore, sourceBits(source))
	if c == inList {
		return e.searchHeld(source, tag, ignore)
	}
	cl := &e.classes[c%MaxClasses]
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
			if n := e.nodes.At(idx); k.equal(n, source, tag) {
				return messageOf(n)
			}
		}
	}
	return nil
}

// takeFirst takes the first message in place i of class c out of the queue.
func (e *Engine) takeFirst(c, i uint32, hash uint64) *Message {
	t := &e.classes[c%MaxClasses].msgs
	n := e.nodes.At(t.at(i).head)
	t.removeFirst(&e.nodes, i, hash, c)
	e.unhold(n, c)
	return messageOf(n)
}

// unhold takes a held message out of the queue and out of all classes but one, which has let go of it already
// (inList: none has).
func (e *Engine) unhold(n *node, but uint32) {
	for c := range e.nClasses {
		if c != but {
			cl := &e.classes[c%MaxClasses]
			cl.msgs.remove(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, c)
		}
	}
	e.held.remove(n.pos)
	n.state = stateOut
}

// RemoveMessage takes a message that is held or claimed out of the queue; it is the caller's until ReleaseMessage. It
// does nothing, and returns false, if the message is neither.
func (e *Engine) RemoveMessage(m *Message) bool {
	switch m.state {
	case stateHeld:
		e.unhold(m.node(), inList)
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
