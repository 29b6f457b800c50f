package collective

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// kindOf is the operation that each algorithm performs.
var kindOf = [algorithms]Kind{
	Dissemination: Barrier, BinomialBroadcast: Broadcast, ScatterAllGather: Broadcast, PairwiseAllToAll: AllToAll,
	BruckAllToAll: AllToAll, StepAllToAll: AllToAll, LinearAllToAll: AllToAll,
	RecursiveDoubling: AllReduce, Rabenseifner: AllReduce, RingAllGather: AllGather,
	BruckAllGather: AllGather, HalvingReduceScatter: ReduceScatter, PairwiseReduceScatter: ReduceScatter,
	BinomialReduce: Reduce, RabenseifnerReduce: Reduce, BinomialScatter: Scatter, DirectScatter: Scatter,
	BinomialGather: Gather, DirectGather: Gather,
}

// TestModel runs every algorithm in groups of 1 to 17 ranks, with every root,
// on random numbers of elements, among them none and fewer than ranks.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for a := range algorithms {
		for size := 1; size <= 17; size++ {
			for root := range size {
				if !kindOf[a].Rooted() && root != 0 {
					break
				}
				for _, count := range []int{0, 1, r.IntN(size + 1), r.IntN(100)} {
					c := Call{Kind: kindOf[a], Size: size, Root: root, Count: uint64(count), Elem: element}
					if c.Kind == Barrier {
						c.Count, c.Elem = 0, 0
					}
					try(t, r, c, a)
				}
			}
		}
	}
}

// TestVector exchanges pieces of random lengths, many of them empty, in groups of 1 to
// 17 ranks, at random places, in place too. What is between the pieces stays as it is.
func TestVector(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for size := 1; size <= 17; size++ {
		for range 20 {
			tryVector(t, r, size, r.IntN(3) == 0)
		}
	}
}

// scatterPieces gives pieces of the lengths places in a buffer, in random order and with
// gaps, and returns its length.
func scatterPieces(r *rand.Rand, lengths []int) (list []Piece, end int) {
	list = make([]Piece, len(lengths))
	for _, i := range r.Perm(len(lengths)) {
		end += r.IntN(4)
		list[i] = Piece{uint64(end), uint64(lengths[i])}
		end += lengths[i]
	}
	return list, end
}

func tryVector(t *testing.T, r *rand.Rand, size int, inPlace bool) {
	a := []Algorithm{PairwiseAllToAll, BruckAllToAll, StepAllToAll, LinearAllToAll}[r.IntN(4)]
	n := newNet(t, r, size, fmt.Sprintf("vector by %d, in place %v", a, inPlace))
	lengths := make([][]int, size) // of what rank i has for rank j
	for i := range lengths {
		lengths[i] = make([]int, size)
		for j := range lengths[i] {
			if r.IntN(2) == 0 {
				lengths[i][j] = r.IntN(40)
			}
			if inPlace && j < i {
				lengths[i][j] = lengths[j][i]
			}
		}
	}
	in, out, want := make([][]byte, size), make([][]byte, size), make([][]byte, size)
	inAt, outAt := make([][]Piece, size), make([][]Piece, size)
	for i := range size {
		column := make([]int, size)
		for j := range column {
			column[j] = lengths[j][i]
		}
		var ends [2]int
		inAt[i], ends[0] = scatterPieces(r, lengths[i])
		outAt[i], ends[1] = scatterPieces(r, column)
		in[i], out[i] = randomBytes(r, uint64(ends[0])), randomBytes(r, uint64(ends[1]))
		if inPlace {
			in[i], inAt[i] = out[i], outAt[i]
		}
		want[i] = bytes.Clone(out[i])
	}
	for i := range size {
		for j := range size {
			from, to := inAt[i][j], outAt[j][i]
			copy(want[j][to.Off:to.Off+to.Len], bytes.Clone(in[i])[from.Off:from.Off+from.Len])
		}
	}
	given := make([][]byte, size)
	for i := range size {
		p := BuildAllToAllV(a, i, inAt[i], outAt[i])
		given[i] = bytes.Clone(in[i])
		if inPlace {
			p, in[i] = BuildAllToAllV(a, i, nil, outAt[i]), nil
		}
		n.runs[i].Start(p, in[i], out[i], randomBytes(r, p.Scratch), nil)
	}
	n.complete()
	for i := range size {
		if !bytes.Equal(out[i], want[i]) {
			t.Fatalf("%s, %d ranks: rank %d has %x, want %x", n.what, size, i, out[i], want[i])
		}
		if in[i] != nil && !bytes.Equal(in[i], given[i]) {
			t.Fatalf("%s: rank %d's input was changed", n.what, i)
		}
	}
}

// TestChosen does the same with the algorithm that the sizes choose, and says
// that each is chosen somewhere, but for those that only a caller asks for.
func TestChosen(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var met [algorithms]bool
	sizes := []int{1, 2, 3, 5, 7, 8, 13}
	if testing.Short() {
		sizes = []int{1, 2, 5, 8}
	}
	for kind := range Kinds {
		for _, size := range sizes {
			for _, count := range []uint64{0, 3, 500, 2000, 20000, 50000} {
				c := Call{Kind: kind, Size: size, Count: count, Elem: element}
				if kind.Rooted() {
					c.Root = r.IntN(size)
				}
				a := Choose(&c)
				if kindOf[a] != kind {
					t.Fatalf("%+v: algorithm %d is for kind %d", c, a, kindOf[a])
				}
				met[a] = true
				try(t, r, c, a)
			}
		}
	}
	for a, ok := range met {
		if asked := a == int(StepAllToAll) || a == int(LinearAllToAll); ok == asked {
			t.Errorf("algorithm %d: chosen %v", a, ok)
		}
	}
}

// TestSteps holds the number of messages that a rank sends to what the
// algorithms promise.
func TestSteps(t *testing.T) {
	sends := func(c Call, a Algorithm) (most int) {
		for c.Rank = range c.Size {
			n := 0
			for _, s := range BuildWith(&c, a).Steps {
				if s.Op == Send {
					n++
				}
			}
			most = max(most, n)
		}
		return most
	}
	for size := 1; size <= 64; size++ {
		log := 0
		for 1<<log < size {
			log++
		}
		c := Call{Size: size, Count: 8, Elem: 4}
		for a, want := range map[Algorithm]int{
			Dissemination: log, BinomialBroadcast: log, BruckAllToAll: log, BruckAllGather: log, BinomialReduce: 1,
			RecursiveDoubling: log + 1, RingAllGather: size - 1, PairwiseAllToAll: size - 1, BinomialScatter: 2 * log,
			Rabenseifner: 2*log + 1,
		} {
			c.Kind = kindOf[a]
			if n := sends(c, a); n > want {
				t.Errorf("%d ranks, algorithm %d: %d messages, at most %d", size, a, n, want)
			}
		}
	}
}

// TestAtATime holds how many peers a rank of an all-to-all sends to before it waits.
func TestAtATime(t *testing.T) {
	for a, want := range map[Algorithm]int{PairwiseAllToAll: window, StepAllToAll: 1, LinearAllToAll: 16} {
		const size = 17
		pieces := make([]Piece, size)
		for _, p := range []*Plan{
			BuildWith(&Call{Kind: AllToAll, Size: size, Count: 1, Elem: 1}, a),
			BuildAllToAllV(a, 0, pieces, pieces),
		} {
			most, n := 0, 0
			for _, s := range p.Steps {
				switch s.Op {
				case Send:
					n++
				case Fence:
					n = 0
				}
				most = max(most, n)
			}
			if most != want {
				t.Errorf("algorithm %d: %d peers at a time, want %d", a, most, want)
			}
		}
	}
}

// TestDisseminationWaits holds that no rank passes a barrier before all have come.
func TestDisseminationWaits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for size := 2; size <= 17; size++ {
		late := r.IntN(size)
		n := &net{t: t, r: r, what: "barrier", runs: make([]Run, size), over: make([]bool, size),
			sends: map[[2]int][]*message{}, recvs: map[[2]int][][]byte{}}
		for i := range size {
			n.runs[i].Start(Build(&Call{Rank: i, Size: size}), nil, nil, nil, nil)
			if i != late {
				n.advance(i)
			}
		}
		for n.step() {
		}
		for i, over := range n.over {
			if over {
				t.Fatalf("%d ranks: rank %d passed before rank %d came", size, i, late)
			}
		}
		n.advance(late)
		for n.step() {
		}
		for i, over := range n.over {
			if !over {
				t.Fatalf("%d ranks: rank %d did not pass", size, i)
			}
		}
	}
}

// wire is the transport of one rank with a thread of its own.
type wire struct {
	rank int
	to   [][]chan []byte // by sender and receiver
}

func (w wire) Send(to int, data []byte) bool {
	w.to[w.rank][to] <- bytes.Clone(data)
	return true
}

func (w wire) Recv(from int, data []byte) bool {
	copy(data, <-w.to[from][w.rank])
	return true
}

// TestThreads runs ranks on threads of their own, several operations one after
// the other with the same Run.
func TestThreads(t *testing.T) {
	const size, count = 7, 300
	chans := make([][]chan []byte, size)
	for i := range chans {
		chans[i] = make([]chan []byte, size)
		for j := range chans[i] {
			chans[i][j] = make(chan []byte, 64)
		}
	}
	var wg sync.WaitGroup
	for rank := range size {
		wg.Go(func() {
			var run Run
			in, out := make([]byte, count), make([]byte, count)
			for round := range 20 {
				for i := range in {
					in[i] = byte(rank + round + i)
				}
				c := Call{Kind: AllReduce, Rank: rank, Size: size, Count: count, Elem: 1}
				p := BuildWith(&c, []Algorithm{RecursiveDoubling, Rabenseifner}[round%2])
				run.Start(p, in, out, make([]byte, p.Scratch), sum)
				if !run.Advance(wire{rank, chans}) {
					t.Error("not completed")
					return
				}
				for i, v := range out {
					if want := byte(size*(round+i) + size*(size-1)/2); v != want {
						t.Errorf("rank %d, round %d, byte %d: %d, want %d", rank, round, i, v, want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestLengths holds that plans stay inside the buffers that Lengths promises.
func TestLengths(t *testing.T) {
	for a := range algorithms {
		for size := 1; size <= 9; size++ {
			for rank := range size {
				c := Call{Kind: kindOf[a], Rank: rank, Size: size, Root: size / 2, Count: 5, Elem: 8}
				if !c.Kind.Rooted() {
					c.Root = 0
				}
				p := BuildWith(&c, a)
				in, out := c.Lengths()
				limit := [...]uint64{In: in, Out: out, Scratch: p.Scratch}
				for _, s := range p.Steps {
					for _, g := range []Region{s.Dst, s.A, s.B} {
						if g.Off+g.Len > limit[g.Buf] {
							t.Fatalf("%+v by algorithm %d: %+v beyond %d", c, a, g, limit[g.Buf])
						}
					}
				}
			}
		}
	}
}
