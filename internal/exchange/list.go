package exchange

// list is peers in order, each at most once, with constant costs. It has room for peers with records.
type list struct {
	known *records
	links []listLink // by slot
	first int32      // slot, -1: empty
	last  int32
	count int
}

// listLink joins a slot to its neighbours, -1 without.
type listLink struct {
	before, after int32
	in            bool
}

// newList returns an empty list.
func newList(known *records) list { return list{known: known, first: -1, last: -1} }

// head is the first peer, below 0: the list is empty.
func (l *list) head() int32 {
	if l.first < 0 {
		return -1
	}
	return l.known.ids[l.first]
}

// holds reports whether a slot is in the list.
func (l *list) holds(s int32) bool { return s >= 0 && int(s) < len(l.links) && l.links[s].in }

// has reports whether a peer is in the list.
func (l *list) has(p int32) bool { return l.holds(l.known.slot(p)) }

// push puts a peer that is not in the list at its end. It has a record.
func (l *list) push(p int32) {
	s := l.known.slot(p)
	for int(s) >= len(l.links) {
		l.links = append(l.links, listLink{})
	}
	l.links[s] = listLink{before: l.last, after: -1, in: true}
	if l.last < 0 {
		l.first = s
	} else {
		l.links[l.last].after = s
	}
	l.last = s
	l.count++
}

// remove takes a peer out, if it is in the list.
func (l *list) remove(p int32) {
	s := l.known.slot(p)
	if !l.holds(s) {
		return
	}
	k := l.links[s]
	if k.before < 0 {
		l.first = k.after
	} else {
		l.links[k.before].after = k.after
	}
	if k.after < 0 {
		l.last = k.before
	} else {
		l.links[k.after].before = k.before
	}
	l.links[s] = listLink{}
	l.count--
}

// renew moves a peer to the end.
func (l *list) renew(p int32) {
	if l.last != l.known.slot(p) {
		l.remove(p)
		l.push(p)
	}
}

// clear empties the list, and has room for so many peers.
func (l *list) clear(room int) {
	if cap(l.links) < room || cap(l.links) > 2*room+keptRecords {
		l.links = make([]listLink, room)
	}
	l.links = l.links[:room]
	clear(l.links)
	l.first, l.last, l.count = -1, -1, 0
}
