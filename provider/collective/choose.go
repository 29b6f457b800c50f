package collective

// Algorithm is a way to perform an operation. Its comment at the function that
// builds it names the source.
type Algorithm uint8

// Algorithms.
const (
	Dissemination Algorithm = iota
	BinomialBroadcast
	ScatterAllGather
	PairwiseAllToAll
	BruckAllToAll
	StepAllToAll
	LinearAllToAll
	RecursiveDoubling
	Rabenseifner
	RingAllGather
	BruckAllGather
	HalvingReduceScatter
	PairwiseReduceScatter
	BinomialReduce
	RabenseifnerReduce
	BinomialScatter
	DirectScatter
	BinomialGather
	DirectGather
	algorithms
)

// Sizes at which another algorithm is chosen, in bytes. The values are those of
// Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005, where they give one, rounded to
// powers of two.
const (
	longBroadcast     = 16 << 10  // of the data; and at least wideBroadcast ranks
	wideBroadcast     = 8         //
	longAllReduce     = 2 << 10   // of the data
	longReduce        = 2 << 10   // of the data
	longAllGather     = 80 << 10  // of the result
	shortAllToAll     = 256       // of one slice; and at least wideAllToAll ranks
	wideAllToAll      = 8         //
	longReduceScatter = 512 << 10 // of the input
	longSlice         = 32 << 10  // scatter and gather, of one slice
)

// Choose returns the algorithm for a call. All ranks of a call choose the same.
func Choose(c *Call) Algorithm {
	one := c.Count * c.Elem
	all := one * uint64(c.Size)
	switch c.Kind {
	case Broadcast:
		if one >= longBroadcast && c.Size >= wideBroadcast {
			return ScatterAllGather
		}
		return BinomialBroadcast
	case AllToAll:
		if one <= shortAllToAll && c.Size >= wideAllToAll {
			return BruckAllToAll
		}
		return PairwiseAllToAll
	case AllReduce:
		if one > longAllReduce && c.Count >= uint64(c.Size) && c.Size > 2 {
			return Rabenseifner
		}
		return RecursiveDoubling
	case AllGather:
		if all >= longAllGather {
			return RingAllGather
		}
		return BruckAllGather
	case ReduceScatter:
		if all >= longReduceScatter {
			return PairwiseReduceScatter
		}
		return HalvingReduceScatter
	case Reduce:
		if one > longReduce && c.Count >= uint64(c.Size) && c.Size > 2 {
			return RabenseifnerReduce
		}
		return BinomialReduce
	case Scatter:
		if one >= longSlice {
			return DirectScatter
		}
		return BinomialScatter
	case Gather:
		if one >= longSlice {
			return DirectGather
		}
		return BinomialGather
	}
	return Dissemination
}

// Build makes the plan of a call with the algorithm that Choose names.
func Build(c *Call) *Plan { return BuildWith(c, Choose(c)) }

// BuildWith makes the plan of a call with an algorithm of its kind. All ranks
// must take the same.
func BuildWith(c *Call, a Algorithm) *Plan {
	b := &builder{Call: *c}
	switch a {
	case Dissemination:
		b.dissemination()
	case BinomialBroadcast:
		b.binomialBroadcast()
	case ScatterAllGather:
		b.scatterAllGather()
	case PairwiseAllToAll, StepAllToAll, LinearAllToAll:
		b.pairwiseAllToAll(a)
	case BruckAllToAll:
		b.bruckAllToAll()
	case RecursiveDoubling:
		b.recursiveDoubling()
	case Rabenseifner:
		b.rabenseifner()
	case RingAllGather:
		b.ringAllGather()
	case BruckAllGather:
		b.bruckAllGather()
	case HalvingReduceScatter:
		b.halvingReduceScatter()
	case PairwiseReduceScatter:
		b.pairwiseReduceScatter()
	case BinomialReduce:
		b.binomialReduce()
	case RabenseifnerReduce:
		b.rabenseifnerReduce()
	case BinomialScatter:
		b.binomialScatter()
	case DirectScatter:
		b.directScatter()
	case BinomialGather:
		b.binomialGather()
	case DirectGather:
		b.directGather()
	}
	return &b.Plan
}
