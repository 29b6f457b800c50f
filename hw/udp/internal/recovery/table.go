package recovery

// Limits of the table of packets. It grows by doubling, so an idle connection
// costs little.
const (
	minTable = 32
	maxTable = 4096
)

// table holds what is known of the packet numbers from low up to next. Packets of a train
// that follow one another, and of which each has the content that comes before that of the
// next, are kept as one, a run, until something parts them.
type table struct {
	entries []Packet // by number & mask; of a run only the first is valid
	back    []uint8  // likewise: how far before the number its run begins
	low     uint64   // all below are settled
	next    uint64   // number of the next packet
}

// index returns where what belongs to a number is.
func (t *table) index(number uint64) uint64 { return number & uint64(len(t.entries)-1) }

// run returns the run of which number is one, and its first number.
func (t *table) run(number uint64) (p *Packet, first uint64) {
	first = number - uint64(t.back[t.index(number)])
	return &t.entries[t.index(first)], first
}

// cut has a run begin with number, and returns it.
func (t *table) cut(number uint64) *Packet {
	p, first := t.run(number)
	if first == number {
		return p
	}
	n := uint8(number - first)
	q := &t.entries[t.index(number)]
	*q = *p
	q.Number, q.Offset, q.more = number, p.Offset+uint64(n)*uint64(p.Len), p.more-n
	p.more, p.Asked = n-1, false // the last of them asks
	t.mark(number, q.more)
	return q
}

// mark notes that a run of a number and more begins with the number.
func (t *table) mark(number uint64, more uint8) {
	for k := range uint64(more) + 1 {
		t.back[t.index(number+k)] = uint8(k)
	}
}

// single returns the entry of a number, which is no part of a run afterwards.
func (t *table) single(number uint64) *Packet {
	p := t.cut(number)
	if p.more > 0 {
		t.cut(number + 1)
	}
	return p
}

// grow makes room for n packets after next, and returns false if that is more than there
// can be.
func (t *table) grow(n uint64) bool {
	size := uint64(max(minTable, len(t.entries)))
	for size < t.next+n-t.low {
		size *= 2
	}
	if size > maxTable {
		return false
	}
	if size == uint64(len(t.entries)) {
		return true
	}
	old := *t
	t.entries, t.back = make([]Packet, size), make([]uint8, size)
	for k := t.low; k < t.next; k++ {
		t.entries[t.index(k)], t.back[t.index(k)] = old.entries[old.index(k)], old.back[old.index(k)]
	}
	return true
}

// add keeps p and as many as it says that are like it, under the numbers from next on. There is room.
func (t *table) add(p Packet) {
	p.Number = t.next
	t.entries[t.index(t.next)] = p
	t.mark(t.next, p.more)
	t.next += uint64(p.more) + 1
}
