package provider

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// vectorWork is one all-to-all of parts, with every member's buffers.
type vectorWork struct {
	args []AllToAllVArgs // by rank
	out  [][]byte
	want [][]byte
	keep [][]byte   // what is given
	gets [][]uint64 // elements by rank and sender
}

// newVectorWork makes a random one of a few of the sizes at which messages travel in
// another way: none, eager, rendezvous, and several pieces.
func newVectorWork(r *rand.Rand, groups []*Group) *vectorWork {
	n := len(groups)
	w := &vectorWork{args: make([]AllToAllVArgs, n), out: make([][]byte, n), want: make([][]byte, n),
		keep: make([][]byte, n)}
	elem, inPlace := uint64(1+r.IntN(9)), r.IntN(4) == 0
	counts := make([][]uint64, n) // of what rank i has for rank j
	for i := range counts {
		counts[i] = make([]uint64, n)
		for j := range counts[i] {
			counts[i][j] = uint64(r.IntN([]int{1, 20, 2000, 40000}[r.IntN(4)]))
			if inPlace && j < i {
				counts[i][j] = counts[j][i]
			}
		}
	}
	for i := range n {
		a := AllToAllVArgs{Elem: elem, Group: groups[i].Addr(), InPlace: inPlace}
		for j := range n {
			a.ResultCounts = append(a.ResultCounts, counts[j][i])
		}
		var end uint64
		a.ResultDispls, end = spread(r, a.ResultCounts)
		w.out[i] = randomBytes(r, int(end*elem))
		w.want[i] = bytes.Clone(w.out[i])
		a.Result, a.Buf = baseOf(w.out[i]), baseOf(w.out[i])
		w.keep[i], a.Counts, a.Displs = bytes.Clone(w.out[i]), a.ResultCounts, a.ResultDispls
		if !inPlace {
			a.Counts = counts[i]
			a.Displs, end = spread(r, a.Counts)
			w.keep[i] = randomBytes(r, int(end*elem))
			a.Buf = baseOf(w.keep[i])
		}
		w.args[i] = a
		w.gets = append(w.gets, slices.Clone(a.ResultCounts))
	}
	for i := range n {
		for j := range n {
			from, to := &w.args[i], &w.args[j]
			copy(w.want[j][to.ResultDispls[i]*elem:], w.keep[i][from.Displs[j]*elem:(from.Displs[j]+counts[i][j])*elem])
		}
		if inPlace {
			w.args[i].Buf, w.args[i].Counts, w.args[i].Displs = 0, nil, nil
		}
	}
	return w
}

// spread gives parts places in random order, with gaps, and returns where the last ends.
func spread(r *rand.Rand, counts []uint64) (displs []uint64, end uint64) {
	displs = make([]uint64, len(counts))
	for _, i := range r.Perm(len(counts)) {
		displs[i] = end
		end += counts[i] + uint64(r.IntN(3))
	}
	return displs, end
}

// TestAllToAllV runs several at a time, over each way that payloads take.
func TestAllToAllV(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"memory":   func(c *config.Config) { c.UseCMA = config.Auto },
		"messages": func(c *config.Config) { c.UseCMA = config.No },
		"closed":   func(c *config.Config) { c.UnexpectedBytes = 1 },
		"ordered":  func(c *config.Config) { c.Sched, c.SchedPolicy = config.Yes, "greedy" },
		"early":    func(c *config.Config) { c.Sched, c.UnexpectedBytes = config.Yes, 1 },
		"put":      func(c *config.Config) { c.Sched, c.AllToAll = config.Yes, "put" },
		"get":      func(c *config.Config) { c.Sched, c.AllToAll = config.Yes, "get" },
		"refused": func(c *config.Config) {
			c.Sched, c.AllToAll, c.UseCMA = config.Yes, "put", config.No
		},
	} {
		for seed := range seedCount(t, 2) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3))
				c := newCircle(t, newBench(t, change, collHints()), 6)
				for size := 1; size <= len(c.sides); size++ {
					members := r.Perm(len(c.sides))[:size]
					c.vectors(r, members, c.joinAll(members))
				}
			})
		}
	}
}

// TestAllToAllVRequest starts one again and again, without the caller's arrays.
func TestAllToAllVRequest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	c := newCircle(t, newBench(t, nil, collHints()), 4)
	members := r.Perm(len(c.sides))
	groups := c.joinAll(members)
	w := newVectorWork(r, groups)
	for w.args[0].InPlace {
		w = newVectorWork(r, groups)
	}
	var requests []*AllToAllVRequest
	for i, m := range members {
		q, err := c.sides[m].ep.AllToAllVInit(&w.args[i])
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, q)
		a := &w.args[i]
		for _, list := range [][]uint64{a.Counts, a.Displs, a.ResultCounts, a.ResultDispls} {
			clear(list) // the caller's again
		}
	}
	first := make([][]byte, len(members))
	for i := range first {
		first[i] = bytes.Clone(w.out[i])
	}
	for range 3 {
		for i := range members {
			copy(w.out[i], first[i])
			if err := requests[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		c.completed(members, len(members))
		for i := range w.out {
			if !bytes.Equal(w.out[i], w.want[i]) {
				t.Fatalf("rank %d has the wrong data", i)
			}
		}
	}
	ep, group := c.sides[members[0]].ep, groups[0].Addr()
	for what, a := range map[string]AllToAllVArgs{
		"elements of 0 bytes": {Group: group}, "no arrays": {Elem: 1, Group: group}, "no group": {Elem: 1},
	} {
		if _, err := ep.AllToAllVInit(&a); !errors.Is(err, fi.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// completed waits for as many operations.
func (c *circle) completed(members []int, left int) {
	c.t.Helper()
	c.until("completions", func() bool {
		var got [8]cq.Entry
		for _, m := range members {
			k, err := c.sides[m].cq.Read(got[:])
			if errors.Is(err, fi.EAVAIL) {
				e, _ := c.sides[m].cq.ReadErr()
				c.t.Fatalf("an operation ends with %v", e.Err)
			}
			left -= max(k, 0)
		}
		return left == 0
	})
}

// vectors runs some in one group and checks them.
func (c *circle) vectors(r *rand.Rand, members []int, groups []*Group) {
	c.t.Helper()
	var works []*vectorWork
	for range 6 {
		works = append(works, newVectorWork(r, groups))
	}
	for _, w := range works {
		for i, m := range members {
			if err := c.sides[m].ep.AllToAllV(&w.args[i]); err != nil {
				c.t.Fatal(err)
			}
			clear(w.args[i].ResultCounts) // the caller's again
		}
	}
	c.completed(members, len(members)*len(works))
	for _, w := range works {
		for i := range w.out {
			if !bytes.Equal(w.out[i], w.want[i]) {
				c.t.Fatalf("%d ranks: rank %d has the wrong data", len(members), i)
			}
		}
	}
	for _, m := range members {
		c.sides[m].idle()
	}
}
