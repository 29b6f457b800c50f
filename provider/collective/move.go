package collective

// Algorithms that only move data.

// window is how many messages of an operation that sends directly to all ranks
// are under way at a time in each direction.
const window = 8

// plus is the rank at a distance, around the group.
func (b *builder) plus(d int) int { return ((b.Rank+d)%b.Size + b.Size) % b.Size }

// relative is this rank's number when the root is number 0, and absolute the
// rank of such a number.
func (b *builder) relative() int        { return (b.Rank - b.Root + b.Size) % b.Size }
func (b *builder) absolute(rel int) int { return (rel + b.Root) % b.Size }

// dissemination is the barrier of Hensgen, Finkel, Manber, "Two Algorithms for
// Barrier Synchronization", IJPP 17(1), 1988: in round k each rank notifies the
// one 2^k further on, so after ⌈log₂ n⌉ rounds each has heard of all.
func (b *builder) dissemination() {
	for d := 1; d < b.Size; d *= 2 {
		b.send(b.plus(d), Region{})
		b.recv(b.plus(-d), Region{})
		b.fence()
	}
}

// parent is the distance to the parent of a relative rank in the binomial tree:
// its lowest set bit, for the root the first power of two that is not below
// the group's size. Its children are at all smaller powers of two.
func (b *builder) parent(rel int) int {
	d := 1
	for d < b.Size && rel&d == 0 {
		d *= 2
	}
	return d
}

// binomialBroadcast sends all data down a binomial tree: ⌈log₂ n⌉ steps (Thakur
// et al. 2005, section 4.2).
func (b *builder) binomialBroadcast() {
	rel, r := b.relative(), b.out()
	d := b.parent(rel)
	if rel != 0 {
		b.recv(b.absolute(rel-d), r)
		b.fence()
	}
	for d /= 2; d > 0; d /= 2 {
		if rel+d < b.Size {
			b.send(b.absolute(rel+d), r)
		}
	}
}

// scatterAllGather broadcasts long data: a binomial scatter, then a ring, so
// that each rank sends and receives about twice the data, however many there
// are (Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor
// Collective Communication Library (InterCom)", SHPCC 1994).
func (b *builder) scatterAllGather() {
	rel := b.relative()
	k := b.blocksOf(b.out(), b.Size)
	d := b.parent(rel)
	if rel != 0 {
		b.recv(b.absolute(rel-d), k.of(rel, min(rel+d, b.Size)))
		b.fence()
	}
	for d /= 2; d > 0; d /= 2 {
		if rel+d < b.Size {
			b.send(b.absolute(rel+d), k.of(rel+d, min(rel+2*d, b.Size)))
		}
	}
	b.fence()
	b.ring(rel, k.of)
}

// ring passes blocks around the group until all have all of them. The caller
// has block number own.
func (b *builder) ring(own int, block func(lo, hi int) Region) {
	for i := range b.Size - 1 {
		out, in := (own-i+b.Size)%b.Size, (own-i-1+b.Size)%b.Size
		b.send(b.plus(1), block(out, out+1))
		b.recv(b.plus(-1), block(in, in+1))
		b.fence()
	}
}

// ringAllGather gathers long data around a ring: n-1 steps, in each of which
// every link carries one block (Thakur et al. 2005, section 4.1).
func (b *builder) ringAllGather() {
	s := slices{b.out(), b.Count * b.Elem}
	b.copy(s.of(b.Rank, b.Rank+1), b.in())
	b.ring(b.Rank, s.of)
}

// bruckAllGather gathers short data in ⌈log₂ n⌉ steps for any n: what is there
// doubles with each, in an order that begins at the rank itself and is rotated
// in the end (Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems", TPDS 8(11),
// 1997).
func (b *builder) bruckAllGather() {
	out := slices{b.out(), b.Count * b.Elem}
	t := out
	if b.Rank != 0 {
		t.Region = b.scratch(out.Len)
	}
	b.copy(t.of(0, 1), b.in())
	for d := 1; d < b.Size; d *= 2 {
		n := min(d, b.Size-d)
		b.send(b.plus(-d), t.of(0, n))
		b.recv(b.plus(d), t.of(d, d+n))
		b.fence()
	}
	if b.Rank != 0 {
		b.copy(out.of(b.Rank, b.Size), t.of(0, b.Size-b.Rank))
		b.copy(out.of(0, b.Rank), t.of(b.Size-b.Rank, b.Size))
	}
}

// pairwiseAllToAll exchanges each slice directly.
func (b *builder) pairwiseAllToAll(a Algorithm) {
	in, out := slices{b.in(), b.Count * b.Elem}, slices{b.out(), b.Count * b.Elem}
	b.copy(out.of(b.Rank, b.Rank+1), in.of(b.Rank, b.Rank+1))
	of := func(s slices) func(int) Region { return func(peer int) Region { return s.of(peer, peer+1) } }
	b.pairwise(a, of(in), of(out))
}

// pairwise exchanges something with each other rank: in step i with the ranks at
// distance i, so that no rank is the target of all (Thakur et al. 2005,
// section 4.3). Of PairwiseAllToAll window steps are under way at a time, of StepAllToAll one, and of LinearAllToAll
// all.
func (b *builder) pairwise(a Algorithm, in, out func(peer int) Region) {
	width := window
	switch a {
	case StepAllToAll:
		width = 1
	case LinearAllToAll:
		width = b.Size
	}
	for i := 1; i < b.Size; i++ {
		to, from := b.plus(i), b.plus(-i)
		b.recv(from, out(from))
		b.send(to, in(to))
		if i%width == 0 {
			b.fence()
		}
	}
}

// Piece is a part of a caller's buffer, in bytes.
type Piece struct{ Off, Len uint64 }

// BuildAllToAllV makes the plan of an all-to-all in which the piece in[j] of a rank
// becomes out[rank] of rank j. Both have an entry for each rank of the group; what two
// ranks have for each other is of the same length, which may be 0. Pieces of out do
// not overlap. Without in, what is sent is what out holds at first, and each two
// ranks change theirs. The algorithm is StepAllToAll or LinearAllToAll; any other one is taken for PairwiseAllToAll.
func BuildAllToAllV(a Algorithm, rank int, in, out []Piece) *Plan {
	b := &builder{Call: Call{Kind: AllToAllV, Rank: rank, Size: len(out)}}
	given := func(to int) Region { return Region{In, in[to].Off, in[to].Len} }
	got := func(from int) Region { return Region{Out, out[from].Off, out[from].Len} }
	if in == nil {
		given = b.aside(got)
	} else {
		b.copy(got(rank), given(rank))
	}
	b.pairwise(a, given, got)
	return &b.Plan
}

// aside copies what is to be exchanged with other ranks to scratch memory.
func (b *builder) aside(what func(peer int) Region) func(peer int) Region {
	kept := make([]Region, b.Size)
	for i := range kept {
		if r := what(i); i != b.Rank {
			kept[i] = b.scratch(r.Len)
			b.copy(kept[i], r)
		}
	}
	return func(peer int) Region { return kept[peer] }
}

// bruckAllToAll exchanges short slices in ⌈log₂ n⌉ steps (Bruck et al. 1997):
// the slice for the rank at distance i travels by the set bits of i, in the
// company of all that take the same step.
func (b *builder) bruckAllToAll() {
	in, out := slices{b.in(), b.Count * b.Elem}, slices{b.out(), b.Count * b.Elem}
	t := slices{b.scratch(in.Len), in.n}
	half := uint64(b.Size+1) / 2 * in.n
	pack, got := slices{b.scratch(half), in.n}, slices{b.scratch(half), in.n}
	b.copy(t.of(0, b.Size-b.Rank), in.of(b.Rank, b.Size))
	b.copy(t.of(b.Size-b.Rank, b.Size), in.of(0, b.Rank))
	for d := 1; d < b.Size; d *= 2 {
		n := 0
		for i := range b.Size {
			if i&d != 0 {
				b.copy(pack.of(n, n+1), t.of(i, i+1))
				n++
			}
		}
		b.send(b.plus(d), pack.of(0, n))
		b.recv(b.plus(-d), got.of(0, n))
		b.fence()
		n = 0
		for i := range b.Size {
			if i&d != 0 {
				b.copy(t.of(i, i+1), got.of(n, n+1))
				n++
			}
		}
	}
	for i := range b.Size {
		from := b.plus(-i)
		b.copy(out.of(from, from+1), t.of(i, i+1))
	}
}

// arcs calls f for the pieces of slices lo to hi-1 in the order that begins at
// the root, as they lie in a buffer that begins at rank 0: one, or two where
// the end of the buffer is between them. at is the first slice's place in the
// order.
func (b *builder) arcs(s slices, lo, hi int, f func(at int, r Region)) {
	turn := b.Size - b.Root // the relative number of rank 0
	if lo < turn && hi > turn {
		f(lo, s.of(b.absolute(lo), b.Size))
		f(turn, s.of(0, hi-turn))
		return
	}
	first := b.absolute(lo)
	f(lo, s.of(first, first+hi-lo))
}

// binomialScatter sends slices down a binomial tree, each rank those of its
// subtree: ⌈log₂ n⌉ steps (Thakur et al. 2005). The root sends from the
// caller's buffer, so what it sends may be in two pieces.
func (b *builder) binomialScatter() {
	rel, n := b.relative(), b.Count*b.Elem
	d := b.parent(rel)
	subtree := min(d, b.Size-rel)
	if rel == 0 {
		in := slices{b.in(), n}
		for d /= 2; d > 0; d /= 2 {
			if d < b.Size {
				b.arcs(in, d, min(2*d, b.Size), func(_ int, r Region) { b.send(b.absolute(d), r) })
			}
		}
		b.copy(b.out(), in.of(b.Rank, b.Rank+1))
		return
	}
	t := slices{b.out(), n}
	if subtree > 1 {
		t.Region = b.scratch(uint64(subtree) * n)
	}
	if rel == d { // the parent is the root
		b.arcs(slices{n: n}, rel, rel+subtree, func(at int, r Region) {
			b.recv(b.Root, t.of(at-rel, at-rel+int(r.Len/max(n, 1))))
		})
	} else {
		b.recv(b.absolute(rel-d), t.of(0, subtree))
	}
	b.fence()
	for d /= 2; d > 0; d /= 2 {
		if rel+d < b.Size {
			b.send(b.absolute(rel+d), t.of(d, min(2*d, subtree)))
		}
	}
	if subtree > 1 {
		b.copy(b.out(), t.of(0, 1))
	}
}

// binomialGather is binomialScatter backwards.
func (b *builder) binomialGather() {
	rel, n := b.relative(), b.Count*b.Elem
	d := b.parent(rel)
	subtree := min(d, b.Size-rel)
	if rel == 0 {
		out := slices{b.out(), n}
		b.copy(out.of(b.Rank, b.Rank+1), b.in())
		for i := 1; i < b.Size; i *= 2 {
			b.arcs(out, i, min(2*i, b.Size), func(_ int, r Region) { b.recv(b.absolute(i), r) })
		}
		return
	}
	t := slices{b.in(), n}
	if subtree > 1 {
		t.Region = b.scratch(uint64(subtree) * n)
		b.copy(t.of(0, 1), b.in())
	}
	for i := 1; i < d && rel+i < b.Size; i *= 2 {
		b.recv(b.absolute(rel+i), t.of(i, min(2*i, subtree)))
	}
	b.fence()
	if rel == d {
		b.arcs(slices{n: n}, rel, rel+subtree, func(at int, r Region) {
			b.send(b.Root, t.of(at-rel, at-rel+int(r.Len/max(n, 1))))
		})
	} else {
		b.send(b.absolute(rel-d), t.of(0, subtree))
	}
}

// directScatter sends each long slice straight to its rank: no slice is copied
// on the way.
func (b *builder) directScatter() {
	if b.Rank != b.Root {
		b.recv(b.Root, b.out())
		return
	}
	in := slices{b.in(), b.Count * b.Elem}
	for i := 1; i < b.Size; i++ {
		to := b.plus(i)
		b.send(to, in.of(to, to+1))
		if i%window == 0 {
			b.fence()
		}
	}
	b.copy(b.out(), in.of(b.Rank, b.Rank+1))
}

// directGather is directScatter backwards.
func (b *builder) directGather() {
	if b.Rank != b.Root {
		b.send(b.Root, b.in())
		return
	}
	out := slices{b.out(), b.Count * b.Elem}
	b.copy(out.of(b.Rank, b.Rank+1), b.in())
	for i := 1; i < b.Size; i++ {
		from := b.plus(i)
		b.recv(from, out.of(from, from+1))
		if i%window == 0 {
			b.fence()
		}
	}
}
