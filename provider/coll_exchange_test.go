package provider

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/names"
)

// apartCircle makes sides that reach each other over UDP.
func apartCircle(t testing.TB, n int, change func(*config.Config)) *circle {
	t.Helper()
	b := newBench(t, func(c *config.Config) {
		c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No
		if change != nil {
			change(c)
		}
	}, collHints())
	c := newCircle(t, b, n)
	b.domain.local.Use(func() ([]names.Interface, error) { return nil, nil })
	return c
}

// everyRank is ranks 0 to n-1.
func everyRank(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestExchangeOverUDP: between hosts all-to-alls go by the engine without a variable, with every
// policy and at a share of the link, those of equal slices from 16 KiB on; the report says what came of the last one.
func TestExchangeOverUDP(t *testing.T) {
	for _, policy := range []string{"adaptive", "greedy", "threshold", "balanced"} {
		t.Run(policy, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 4))
			c := apartCircle(t, 4, func(c *config.Config) {
				if c.SchedPolicy = policy; policy == "balanced" {
					c.PercentBW = 50
				}
			})
			members := everyRank(4)
			groups := c.joinAll(members)
			c.vectors(r, members, groups)
			for _, slice := range []int{8 << 10, 16 << 10, 200 << 10} {
				before := groups[1].Report()
				c.allToAll(r, groups, slice)
				rep := groups[1].Report()
				if slice >= exchangeLong && (rep.Out != 3*int64(slice) || rep.Received != rep.In || rep.Chunks < 3) {
					t.Errorf("slices of %d bytes: %+v", slice, rep)
				}
				if slice < exchangeLong && rep != before {
					t.Errorf("slices of %d bytes go by the engine", slice)
				}
			}
		})
	}
}

// postAllToAll posts a side's part of one of slices of so many bytes.
func (c *circle) postAllToAll(side int, g *Group, in, out []byte, slice int) {
	c.t.Helper()
	if err := c.sides[side].ep.Collective(&CollectiveArgs{
		Kind: collective.AllToAll, Buf: baseOf(in), Result: baseOf(out),
		Count: uint64(slice), Datatype: fi.Uint8, Group: g.Addr(), Context: 5,
	}); err != nil {
		c.t.Fatal(err)
	}
}

// allToAll runs one of slices of so many bytes in a group of all sides.
func (c *circle) allToAll(r *rand.Rand, groups []*Group, slice int) {
	c.t.Helper()
	n := len(groups)
	in, out := make([][]byte, n), make([][]byte, n)
	for i := range n {
		in[i], out[i] = randomBytes(r, n*slice), make([]byte, n*slice)
		c.postAllToAll(i, groups[i], in[i], out[i], slice)
	}
	for i := range n {
		if err := c.outcome(i); err != fi.Success {
			c.t.Fatalf("rank %d: %v", i, err)
		}
	}
	for i := range n {
		for j := range n {
			if !bytes.Equal(out[i][j*slice:(j+1)*slice], in[j][i*slice:(i+1)*slice]) {
				c.t.Fatalf("slices of %d bytes: rank %d has the wrong data of rank %d", slice, i, j)
			}
		}
	}
}

// TestExchangeTruncated: members that do not agree on a count end with FI_ETRUNC, also when one of
// them expects nothing; the group goes on.
func TestExchangeTruncated(t *testing.T) {
	c := apartCircle(t, 3, nil)
	groups := c.joinAll(everyRank(3))
	for _, n := range []struct{ sent, expected uint64 }{{100, 101}, {0, 5}, {5, 0}, {200000, 199999}} {
		bufs := make([][]byte, 6)
		for i := range 3 {
			bufs[i], bufs[i+3] = make([]byte, 1<<20), make([]byte, 1<<20)
			counts, others := []uint64{9, 9, 9}, []uint64{9, 9, 9}
			if i == 0 {
				counts[1] = n.sent
			} else if i == 1 {
				others[0] = n.expected
			}
			displs := []uint64{0, 300000, 600000}
			if err := c.sides[i].ep.AllToAllV(&AllToAllVArgs{
				Buf: baseOf(bufs[i]), Counts: counts, Displs: displs,
				Result: baseOf(bufs[i+3]), ResultCounts: others, ResultDispls: displs,
				Elem: 1, Group: groups[i].Addr(), Context: 5,
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := c.outcome(i); err != fi.ETRUNC && (i == 1 || err != fi.Success) {
				t.Errorf("%d bytes sent, %d expected: rank %d ends with %v", n.sent, n.expected, i, err)
			}
		}
		c.allToAll(rand.New(rand.NewPCG(1, 6)), groups, 50000)
	}
}

// TestExchangeNothing: between members without bytes for each other nothing goes, and one that expects some
// nevertheless is found, before and after the other has completed.
func TestExchangeNothing(t *testing.T) {
	c := apartCircle(t, 3, nil)
	groups := c.joinAll(everyRank(3))
	in, out := make([]byte, 300000), make([]byte, 900000)
	defer runtime.KeepAlive(in)
	defer runtime.KeepAlive(out)
	post := func(i int, counts, others []uint64) {
		t.Helper()
		displs := []uint64{0, 100000, 200000}
		if err := c.sides[i].ep.AllToAllV(&AllToAllVArgs{
			Buf: baseOf(in), Counts: counts, Displs: displs,
			Result: baseOf(out[i*300000:]), ResultCounts: others, ResultDispls: displs,
			Elem: 1, Group: groups[i].Addr(), Context: 5,
		}); err != nil {
			t.Fatal(err)
		}
	}
	none, expects := []uint64{0, 0, 0}, []uint64{5, 0, 0}
	for _, gives := range [][]uint64{none, {70000, 0, 0}} {
		post(1, gives, expects)
		post(0, []uint64{0, 0, 9}, []uint64{0, 0, 9}) // waits for rank 2
		for _, i := range []int{0, 1} {
			if err := c.outcome(i); err != fi.ETRUNC {
				t.Errorf("rank %d ends with %v", i, err)
			}
		}
		post(2, []uint64{9, 0, 0}, []uint64{9, 0, 0})
		if err := c.outcome(2); err != fi.ETRUNC {
			t.Errorf("rank 2 ends with %v", err)
		}

		post(0, []uint64{0, 0, 9}, []uint64{0, 0, 9})
		post(2, []uint64{9, 0, 0}, []uint64{9, 0, 0})
		for _, i := range []int{0, 2} {
			if err := c.outcome(i); err != fi.Success {
				t.Errorf("rank %d, without rank 1, ends with %v", i, err)
			}
		}
		post(1, gives, expects)
		if err := c.outcome(1); err != fi.ETRUNC {
			t.Errorf("rank 1, after the others, ends with %v", err)
		}
	}
	for i := range 3 {
		post(i, none, none)
		if err := c.outcome(i); err != fi.Success || groups[i].Report().Chunks != 0 {
			t.Errorf("without bytes: %v, %d chunks", err, groups[i].Report().Chunks)
		}
	}
	c.allToAll(rand.New(rand.NewPCG(1, 9)), groups, 50000)
}

// TestExchangeKinds: a member that calls another operation fails it at all.
func TestExchangeKinds(t *testing.T) {
	c := apartCircle(t, 2, nil)
	groups := c.joinAll(everyRank(2))
	buf, out := make([]byte, 2<<20), make([]byte, 2<<20)
	c.postAllToAll(0, groups[0], buf, out, 1<<20)
	if err := c.sides[1].sum(groups[1], make([]byte, 80), make([]byte, 80), 10); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := c.outcome(i); err != fi.EINVAL {
			t.Errorf("rank %d ends with %v", i, err)
		}
	}
}

// TestExchangeMemberGone: when a member closes its endpoint, the others' operation ends.
func TestExchangeMemberGone(t *testing.T) {
	c := apartCircle(t, 3, nil)
	groups := c.joinAll(everyRank(3))
	bufs := [][]byte{make([]byte, 6<<20), make([]byte, 6<<20), make([]byte, 6<<20), make([]byte, 6<<20)}
	for i := range 2 {
		c.postAllToAll(i, groups[i], bufs[2*i], bufs[2*i+1], 2<<20)
	}
	for range 100 {
		c.progress()
	}
	if err := groups[2].Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := c.outcome(i); err != fi.ECONNRESET {
			t.Errorf("rank %d ends with %v", i, err)
		}
	}
}
