package match

// Hold queues a message from source with a tag for which Arrive has just returned nil. The caller sets its user words
// before anything else is done with the engine. It returns nil when there is no memory (see Err).
func (e *Engine) Hold(source uint32, tag uint64) *Message {
	n, idx := e.spareMessage()
	if n == nil {
		if n, idx = e.newMessage(); n == nil {
			return nil
		}
	}
	return e.keep(n, idx, source, tag)
}

// TryHold is Hold without mapping memory: it returns nil, and has done nothing, where that is needed. It needs nothing
// of the runtime.
func (e *Engine) TryHold(source uint32, tag uint64) *Message {
	n, idx := e.spareMessage()
	if n == nil {
		return nil
	}
	return e.keep(n, idx, source, tag)
}

// spareMessage allocates a message where there is room for one more in the queue and in all classes, without asking
// closer.
func (e *Engine) spareMessage() (*node, uint32) {
	if o := &e.unexpected; o.tail-o.head < o.mask && o.live < e.unexpectedLimit {
		return e.nodes.TryAlloc()
	}
	return nil, 0
}

// keep puts a message at the end of the queue and into all classes, which have room.
func (e *Engine) keep(n *node, idx, source uint32, tag uint64) *Message {
	n.tag, n.source, n.idx = tag, source, idx
	n.state, n.keep = stateUnexpected, false
	e.unexpected.push(n, idx)
	for c := range e.inUse() {
		cl := &e.classes[c]
		cl.msgs.push(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), n, idx, uint32(c))
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
	return e.unexpected.room(&e.nodes)
}

// refit brings unexpectedLimit and unexpectedGrown up to date.
func (e *Engine) refit() {
	e.unexpectedLimit, e.unexpectedGrown = ^uint32(0), false
	for c := range e.nClasses {
		t := &e.classes[c].msgs
		e.unexpectedLimit = min(e.unexpectedLimit, t.limit)
		e.unexpectedGrown = e.unexpectedGrown || t.grown()
	}
}

// Peek returns the message that Take would, and leaves it in the queue.
func (e *Engine) Peek(source uint32, tag, ignore uint64) *Message {
	m, known := e.TryPeek(source, tag, ignore)
	if known {
		return m
	}
	if e.classOf(source, ignore) == nil {
		return e.searchUnexpected(source, tag, ignore)
	}
	m, _ = e.TryPeek(source, tag, ignore)
	return m
}

// TryPeek is Peek without a new class: known is false where the receive is of none that is in use. It needs nothing of
// the runtime.
func (e *Engine) TryPeek(source uint32, tag, ignore uint64) (m *Message, known bool) {
	if e.unexpected.live == 0 {
		return nil, true
	}
	cl := e.classIn(source, ignore)
	if cl == nil {
		return nil, false
	}
	i := cl.msgs.find(&e.nodes, &cl.key, e.nodes.hash(&cl.key, source, tag), source, tag)
	if i == none {
		return nil, true
	}
	return messageOf(e.nodes.At(cl.msgs.at(i).head)), true
}

// Take takes the unexpected message that arrived first and matches a receive (see Post) out of the queue and returns
// it; it is the caller's until ReleaseMessage. It returns nil if there is none. Claimed messages match nothing.
func (e *Engine) Take(source uint32, tag, ignore uint64) *Message {
	m := e.Peek(source, tag, ignore)
	if m != nil {
		e.RemoveMessage(m)
	}
	return m
}

// searchUnexpected finds the first matching message one by one, for a receive that has no class.
func (e *Engine) searchUnexpected(source uint32, tag, ignore uint64) *Message {
	k := key{ignore, sourceBits(source)}
	for pos := e.unexpected.head; pos != e.unexpected.tail; pos++ {
		if idx := e.unexpected.at(pos); idx != 0 {
			e.nodes.steps++
			if n := e.nodes.At(idx); k.equal(n, source, tag) {
				return messageOf(n)
			}
		}
	}
	return nil
}

// unindex takes an unexpected message out of all classes but one (nil: out of all).
func (e *Engine) unindex(n *node, but *class) {
	for c := range e.inUse() {
		if cl := &e.classes[c]; cl != but {
			cl.msgs.remove(&e.nodes, &cl.key, e.nodes.hash(&cl.key, n.source, n.tag), n, n.idx, uint32(c))
		}
	}
}

// unhold takes a message that is in no class any more out of the queue.
func (e *Engine) unhold(n *node) {
	if !e.unexpected.removeOnly() {
		e.unexpected.remove(n.pos)
	}
	if e.unexpected.live == 0 && e.unexpectedGrown {
		e.noneUnexpected()
	}
	n.state = stateOut
}

// noneUnexpected lets the classes count that no message is unexpected any more.
func (e *Engine) noneUnexpected() {
	for c := range e.inUse() {
		if t := &e.classes[c].msgs; t.grown() && t.drained() {
			e.shrink = true
		}
	}
}

// RemoveMessage takes a message that is unexpected or claimed out of the queue; it is the caller's until
// ReleaseMessage. It does nothing, and returns false, if the message is neither.
func (e *Engine) RemoveMessage(m *Message) bool {
	switch m.state {
	case stateUnexpected:
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
// Payload names is the caller's to free. It panics if the message is still unexpected or claimed, or was released
// before.
func (e *Engine) ReleaseMessage(m *Message) { e.release(&m.head) }

// PutMessage is ReleaseMessage without its check, for a caller that has just taken the message out. It needs nothing of
// the runtime.
func (e *Engine) PutMessage(m *Message) { e.put(&m.head) }

// Discard removes an unexpected or claimed message, or one that is the caller's already, and releases it.
func (e *Engine) Discard(m *Message) {
	e.RemoveMessage(m)
	e.ReleaseMessage(m)
}
