package exchange

// list is peers in order, each at most once, with constant costs.
type list struct {
	links []listLink
	first int32 // -1: empty
	last  int32
	count int
}

// listLink joins a peer to its neighbours, -1 without.
type listLink struct {
	before, after int32
	in            bool
}

// newList returns an empty list for peers 0 to n-1.
func newList(n int) list { return list{links: make([]listLink, n), first: -1, last: -1} }

// has reports whether a peer is in the list.
func (l *list) has(p int32) bool { return l.links[p].in }

// push puts a peer that is not in the list at its end.
func (l *list) push(p int32) {
	l.links[p] = listLink{before: l.last, after: -1, in: true}
	if l.last < 0 {
		l.first = p
	} else {
		l.links[l.last].after = p
	}
	l.last = p
	l.count++
}

// remove takes a peer out, if it is in the list.
func (l *list) remove(p int32) {
	k := l.links[p]
	if !k.in {
		return
	}
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
	l.links[p] = listLink{}
	l.count--
}

// renew moves a peer to the end.
func (l *list) renew(p int32) {
	if l.last != p {
		l.remove(p)
		l.push(p)
	}
}

// clear empties the list.
func (l *list) clear() {
	clear(l.links)
	l.first, l.last, l.count = -1, -1, 0
}
