package collective

// Algorithms that compute. Their operands are always combined in the order of
// the ranks that they come from, but for the binomial reduction to a root other
// than rank 0 and the reduce-scatters: there the order begins elsewhere, and
// only one rank has the result.

// folded is a group that has been brought down to a power of two of ranks
// (Thakur et al. 2005, section 4.5): of the first 2·rest ranks, each even one
// leaves its data to the odd one above it.
type folded struct {
	n    int // ranks that take part, a power of two
	rest int // pairs
	me   int // this rank's number among them, -1: it has left its data to another
}

func (b *builder) folded() folded {
	f := folded{n: 1}
	for f.n*2 <= b.Size {
		f.n *= 2
	}
	f.rest = b.Size - f.n
	switch {
	case b.Rank >= 2*f.rest:
		f.me = b.Rank - f.rest
	case b.Rank%2 == 1:
		f.me = b.Rank / 2
	default:
		f.me = -1
	}
	return f
}

// rank is the rank of a number.
func (f folded) rank(i int) int {
	if i < f.rest {
		return 2*i + 1
	}
	return i + f.rest
}

// first is the first rank whose data number i has.
func (f folded) first(i int) int {
	if i < f.rest {
		return 2 * i
	}
	return i + f.rest
}

// foldIn leaves in acc what this rank's number begins with; src is its data.
// It reports false for a rank that has left its data to another.
func (b *builder) foldIn(f folded, acc, src, tmp Region) bool {
	switch {
	case f.me < 0:
		b.send(b.Rank+1, src)
		b.fence()
		return false
	case f.me < f.rest:
		b.recv(b.Rank-1, tmp)
		b.fold(acc, tmp, src)
	default:
		b.copy(acc, src)
	}
	return true
}

// foldOut gives the result to the ranks that left their data.
func (b *builder) foldOut(f folded, r Region) {
	switch {
	case f.me < 0:
		b.recv(b.Rank+1, r)
	case f.me < f.rest:
		b.send(b.Rank-1, r)
	}
}

// recursiveDoubling reduces short data at all ranks: in round k each exchanges
// all it has with the rank that differs in bit k, ⌈log₂ n⌉ steps and two more
// if n is no power of two (Thakur et al. 2005, section 4.5).
func (b *builder) recursiveDoubling() {
	f, out := b.folded(), b.out()
	tmp := b.scratch(out.Len)
	if b.foldIn(f, out, b.in(), tmp) {
		for bit := 1; bit < f.n; bit *= 2 {
			peer := f.rank(f.me ^ bit)
			b.send(peer, out)
			b.recv(peer, tmp)
			b.foldFrom(peer, out, tmp)
		}
	}
	b.foldOut(f, out)
}

// span is a range of blocks, lo to hi-1.
type span struct{ lo, hi int }

// halve reduces and scatters acc among the numbers of a folded group: in each
// step two exchange halves of the blocks that both have, nearest ranks first,
// so that operands stay in order. It returns the ranges that this number kept
// after each step, the one it began with first.
func (b *builder) halve(f folded, acc, tmp blocks) []span {
	kept := []span{{0, f.n}}
	for bit := 1; bit < f.n; bit *= 2 {
		peer := f.rank(f.me ^ bit)
		s := kept[len(kept)-1]
		mid := (s.lo + s.hi) / 2
		keep, give := span{s.lo, mid}, span{mid, s.hi}
		if f.me&bit != 0 {
			keep, give = give, keep
		}
		b.send(peer, acc.of(give.lo, give.hi))
		b.recv(peer, tmp.of(keep.lo, keep.hi))
		b.foldFrom(peer, acc.of(keep.lo, keep.hi), tmp.of(keep.lo, keep.hi))
		kept = append(kept, keep)
	}
	return kept
}

// rabenseifner reduces long data at all ranks: a reduce-scatter by recursive
// halving, then an allgather by recursive doubling along the same pairs, so
// that each rank sends about twice the data (Rabenseifner, "Optimization of
// Collective Reduction Operations", ICCS 2004).
func (b *builder) rabenseifner() {
	f, out := b.folded(), b.out()
	tmp := b.scratch(out.Len)
	if b.foldIn(f, out, b.in(), tmp) {
		acc := b.blocksOf(out, f.n)
		kept := b.halve(f, acc, b.blocksOf(tmp, f.n))
		for i := len(kept) - 1; i > 0; i-- {
			peer := f.rank(f.me ^ 1<<(i-1))
			mine, both := kept[i], kept[i-1]
			other := span{mine.hi, both.hi}
			if mine.lo != both.lo {
				other = span{both.lo, mine.lo}
			}
			b.send(peer, acc.of(mine.lo, mine.hi))
			b.recv(peer, acc.of(other.lo, other.hi))
			b.fence()
		}
	}
	b.foldOut(f, out)
}

// binomialReduce reduces short data up a binomial tree (Thakur et al. 2005,
// section 4.6).
func (b *builder) binomialReduce() {
	rel, r := b.relative(), b.in()
	d := b.parent(rel)
	acc := b.out()
	if d > 1 && rel+1 < b.Size {
		if rel != 0 {
			acc = b.scratch(r.Len)
		}
		tmp := b.scratch(r.Len)
		for i := 1; i < d && rel+i < b.Size; i *= 2 {
			b.recv(b.absolute(rel+i), tmp)
			b.fold(acc, r, tmp)
			r = acc
		}
	}
	switch {
	case rel != 0:
		b.send(b.absolute(rel-d), r)
	case r.Buf == In: // alone
		b.copy(acc, r)
	}
}

// rabenseifnerReduce reduces long data at the root: a reduce-scatter by
// recursive halving, after which each number sends its block to the root
// (Rabenseifner 2004).
func (b *builder) rabenseifnerReduce() {
	f, in := b.folded(), b.in()
	acc := b.out()
	if b.Rank != b.Root {
		acc = b.scratch(in.Len)
	}
	tmp := b.scratch(in.Len)
	k := b.blocksOf(acc, f.n)
	own := span{}
	if b.foldIn(f, acc, in, tmp) {
		kept := b.halve(f, k, b.blocksOf(tmp, f.n))
		own = kept[len(kept)-1]
	}
	if b.Rank != b.Root {
		if f.me >= 0 {
			b.send(b.Root, k.of(own.lo, own.hi))
		}
		return
	}
	for i := range f.n {
		if i == f.me {
			continue
		}
		lo := f.reversed(i)
		b.recv(f.rank(i), k.of(lo, lo+1))
		if i%window == window-1 {
			b.fence()
		}
	}
}

// reversed is the block that number i has after halve: the first bit that was
// compared is the last of the number, and chose the larger half.
func (f folded) reversed(i int) (block int) {
	for bit := 1; bit < f.n; bit *= 2 {
		block *= 2
		if i&bit != 0 {
			block++
		}
	}
	return block
}

// halvingReduceScatter reduces short data by recursive halving: in each step
// two exchange what the other's half of the group will have, farthest ranks
// first (Thakur et al. 2005, section 4.4).
func (b *builder) halvingReduceScatter() {
	f, n := b.folded(), b.Count*b.Elem
	acc, tmp := slices{b.scratch(b.in().Len), n}, slices{b.scratch(b.in().Len), n}
	of := func(s slices, lo, hi int) Region { return s.of(f.first(lo), f.first(hi)) }
	if !b.foldIn(f, acc.Region, b.in(), tmp.Region) {
		b.recv(b.Rank+1, b.out())
		return
	}
	s := span{0, f.n}
	for bit := f.n / 2; bit > 0; bit /= 2 {
		peer := f.rank(f.me ^ bit)
		mid := (s.lo + s.hi) / 2
		keep, give := span{s.lo, mid}, span{mid, s.hi}
		if f.me&bit != 0 {
			keep, give = give, keep
		}
		b.send(peer, of(acc, give.lo, give.hi))
		b.recv(peer, of(tmp, keep.lo, keep.hi))
		b.foldFrom(peer, of(acc, keep.lo, keep.hi), of(tmp, keep.lo, keep.hi))
		s = keep
	}
	if f.me < f.rest {
		b.send(b.Rank-1, acc.of(b.Rank-1, b.Rank))
	}
	b.copy(b.out(), acc.of(b.Rank, b.Rank+1))
}

// pairwiseReduceScatter reduces long data: each rank sends every other its
// slice directly, n-1 steps (Thakur et al. 2005, section 4.4).
func (b *builder) pairwiseReduceScatter() {
	in, out := slices{b.in(), b.Count * b.Elem}, b.out()
	tmp := b.scratch(out.Len)
	acc := in.of(b.Rank, b.Rank+1)
	for i := 1; i < b.Size; i++ {
		to, from := b.plus(i), b.plus(-i)
		b.send(to, in.of(to, to+1))
		b.recv(from, tmp)
		if from < b.Rank {
			b.fold(out, tmp, acc)
		} else {
			b.fold(out, acc, tmp)
		}
		acc = out
	}
	if b.Size == 1 {
		b.copy(out, acc)
	}
}
