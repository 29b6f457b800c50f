package match

// list is a list of nodes through their link 0, for nodes that are in no class.
type list struct {
	head, tail uint32 // first and last node, 0: none
	n          uint32
}

// push appends a node.
func (l *list) push(s *store, n *node, idx uint32) {
	if l.n == 0 {
		l.head = idx
	} else {
		s.At(l.tail).links[0].next = idx
		n.links[0].prev = l.tail
	}
	l.tail = idx
	l.n++
}

// remove takes a node out.
func (l *list) remove(s *store, n *node, idx uint32) {
	at := n.links[0]
	l.n--
	switch {
	case l.n == 0:
		l.head, l.tail = 0, 0
	case idx == l.head:
		l.head = at.next
	case idx == l.tail:
		l.tail = at.prev
	default:
		s.At(at.prev).links[0].next = at.next
		s.At(at.next).links[0].prev = at.prev
	}
}

// next returns the node behind n, or 0 at the end.
func (l *list) next(n *node) uint32 {
	if n.idx == l.tail {
		return 0
	}
	return n.links[0].next
}
