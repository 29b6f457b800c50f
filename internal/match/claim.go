package match

// A claimed message is in the list of claimed messages by its link 0. It is in no class, so its link 1 is free for
// the context of its claim.

func (m *Message) setClaim(context uint64) {
	m.links[1] = link{uint32(context), uint32(context >> 32)}
}

func (m *Message) claim() uint64 {
	return uint64(m.links[1].next) | uint64(m.links[1].prev)<<32
}

// Claim takes an unexpected message out of matching and keeps it for the receive that will ask for it by context. It
// does nothing, and returns false, if the message is not unexpected. It needs nothing of the runtime.
func (e *Engine) Claim(m *Message, context uint64) bool {
	if m.state != stateUnexpected {
		return false
	}
	e.unindex(m.node(), nil)
	e.unhold(m.node())
	m.state = stateClaimed
	e.claimed.push(&e.nodes, m.node(), m.idx)
	m.setClaim(context)
	return true
}

// FindClaimed returns the message that was claimed first with a context and has not been taken, and leaves it
// claimed. It returns nil if there is none. The search is linear in the claimed messages. It needs nothing of the
// runtime.
func (e *Engine) FindClaimed(context uint64) *Message {
	for idx := e.claimed.head; idx != 0; {
		n := e.nodes.At(idx)
		if m := messageOf(n); m.claim() == context {
			return m
		}
		idx = e.claimed.next(n)
	}
	return nil
}

// TakeClaimed takes the message that FindClaimed finds; it is the caller's until ReleaseMessage.
func (e *Engine) TakeClaimed(context uint64) *Message {
	m := e.FindClaimed(context)
	if m != nil {
		e.RemoveMessage(m)
	}
	return m
}
