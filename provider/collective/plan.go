package collective

// Kind is a collective operation, with the numbers of enum fi_collective_op.
type Kind uint8

// Kinds. Call.Count says what is counted.
const (
	Barrier       Kind = iota // no rank ends before all have begun
	Broadcast                 // the root's data goes to all
	AllToAll                  // slice j of rank i becomes slice i of rank j
	AllReduce                 // all get the reduction of all data
	AllGather                 // all get the concatenation of all data
	ReduceScatter             // rank i gets slice i of the reduction
	Reduce                    // the root gets the reduction
	Scatter                   // rank i gets slice i of the root's data
	Gather                    // the root gets the concatenation
	Kinds                     // how many libfabric has
)

// AllToAllV is the operation that enum fi_collective_op does not have: an all-to-all
// whose slices have lengths and places of their own ([BuildAllToAllV]).
const AllToAllV = Kinds

// Reduces reports whether the operation computes.
func (k Kind) Reduces() bool { return k == AllReduce || k == ReduceScatter || k == Reduce }

// Rooted reports whether one rank is the source or the destination of all data.
func (k Kind) Rooted() bool { return k == Broadcast || k == Reduce || k == Scatter || k == Gather }

// Call is one rank's view of an operation.
type Call struct {
	Kind Kind
	Rank int // of the caller, 0 to Size-1
	Size int // ranks in the group, 1 and more
	Root int // of a rooted operation, else 0
	// Count is in elements: of all data for Broadcast, AllReduce and Reduce,
	// of one slice for the others, 0 for Barrier.
	Count uint64
	Elem  uint64 // bytes of an element
}

// Lengths are the bytes that a caller must provide: what is read, and what is
// written. The data of a broadcast is in the second at every rank.
func (c *Call) Lengths() (in, out uint64) {
	one := c.Count * c.Elem
	all := one * uint64(c.Size)
	root := c.Rank == c.Root
	switch c.Kind {
	case Broadcast:
		return 0, one
	case AllToAll:
		return all, all
	case AllReduce:
		return one, one
	case AllGather:
		return one, all
	case ReduceScatter:
		return all, one
	case Reduce:
		return one, only(root, one)
	case Scatter:
		return only(root, all), one
	case Gather:
		return one, only(root, all)
	}
	return 0, 0
}

func only(ok bool, n uint64) uint64 {
	if ok {
		return n
	}
	return 0
}

// Buffer is one of the three that a plan works on.
type Buffer uint8

const (
	// In is what the caller gives. It is not written.
	In Buffer = iota
	// Out is what the caller gets.
	Out
	// Scratch is Plan.Scratch bytes that have no other user.
	Scratch
)

// Region is a piece of a buffer, in bytes.
type Region struct {
	Buf      Buffer
	Off, Len uint64
}

// part is bytes lo to hi-1 of r.
func (r Region) part(lo, hi uint64) Region { return Region{r.Buf, r.Off + lo, hi - lo} }

// Op is what a step does.
type Op uint8

const (
	// Send sends A to Peer.
	Send Op = iota
	// Recv receives A from Peer.
	Recv
	// Fence waits for the transfers before it.
	Fence
	// Copy stores A at Dst. It waits as Fence does.
	Copy
	// Fold stores A op B at Dst, which may be A or B. It waits as Fence does.
	Fold
)

// Step is one entry of a plan.
type Step struct {
	Op        Op
	Peer      int32
	Dst, A, B Region
}

// Plan is what one rank does. It is not changed once it is built.
type Plan struct {
	Steps   []Step
	Scratch uint64 // bytes
}

// builder makes a plan.
type builder struct {
	Plan
	Call
}

func (b *builder) send(to int, r Region) {
	b.Steps = append(b.Steps, Step{Op: Send, Peer: int32(to), A: r})
}

func (b *builder) recv(from int, r Region) {
	b.Steps = append(b.Steps, Step{Op: Recv, Peer: int32(from), A: r})
}

func (b *builder) fence() { b.Steps = append(b.Steps, Step{Op: Fence}) }

func (b *builder) copy(dst, src Region) {
	if dst.Len != 0 {
		b.Steps = append(b.Steps, Step{Op: Copy, Dst: dst, A: src})
	}
}

// fold stores x op y at dst.
func (b *builder) fold(dst, x, y Region) {
	b.Steps = append(b.Steps, Step{Op: Fold, Dst: dst, A: x, B: y})
}

// foldFrom stores at acc the combination of acc and what a peer sent, in the
// order of their ranks.
func (b *builder) foldFrom(peer int, acc, got Region) {
	if peer < b.Rank {
		b.fold(acc, got, acc)
	} else {
		b.fold(acc, acc, got)
	}
}

// scratch reserves n bytes, aligned for any element.
func (b *builder) scratch(n uint64) Region {
	r := Region{Scratch, b.Scratch, n}
	b.Scratch += (n + 63) &^ 63
	return r
}

// in and out are the buffers as [Call.Lengths] gives them.
func (b *builder) in() Region  { n, _ := b.Lengths(); return Region{In, 0, n} }
func (b *builder) out() Region { _, n := b.Lengths(); return Region{Out, 0, n} }

// slices are n equal blocks that fill a region.
type slices struct {
	Region
	n uint64 // bytes of one
}

// of returns blocks lo to hi-1.
func (s slices) of(lo, hi int) Region { return s.part(uint64(lo)*s.n, uint64(hi)*s.n) }

// blocks cut a region of count elements into n blocks of nearly equal size.
type blocks struct {
	Region
	count, elem uint64
	n           uint64
}

func (b *builder) blocksOf(r Region, n int) blocks { return blocks{r, b.Count, b.Elem, uint64(n)} }

// at is where block i begins, in bytes.
func (k blocks) at(i int) uint64 {
	q, rest := k.count/k.n, k.count%k.n
	return (uint64(i)*q + min(uint64(i), rest)) * k.elem
}

// of returns blocks lo to hi-1.
func (k blocks) of(lo, hi int) Region { return k.part(k.at(lo), k.at(hi)) }
