package provider

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/wire"
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
			if !groups[0].scheduled {
				t.Fatal("a group that spans hosts has no engine")
			}
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

// TestExchangeChosen: the variables say which all-to-alls an engine orders.
func TestExchangeChosen(t *testing.T) {
	for _, c := range []struct {
		sched     config.Tri
		algorithm string
		long      bool // slices of exchangeLong are ordered
		short     bool
	}{
		{config.Auto, "auto", false, false}, {config.Yes, "auto", true, false}, {config.Yes, "message", true, true},
		{config.Yes, "put", true, true}, {config.Yes, "get", true, true},
		{config.No, "put", false, false},
		{config.Yes, "pairwise", false, false}, {config.Yes, "bruck", false, false},
		{config.Yes, "step", false, false}, {config.Yes, "linear", false, false},
		{config.No, "message", false, false},
	} {
		set := func(cfg *config.Config) { cfg.Sched, cfg.AllToAll = c.sched, c.algorithm }
		circle := newCircle(t, newBench(t, set, collHints()), 2)
		groups := circle.joinAll([]int{0, 1})
		if long, short := groups[0].ordered(exchangeLong), groups[0].ordered(1); long != c.long || short != c.short {
			t.Errorf("%v, %s: long slices %v, short ones %v", c.sched, c.algorithm, long, short)
		}
		circle.allToAll(rand.New(rand.NewPCG(1, 5)), groups, 100)
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

// TestExchangeForged: chunks and words that no member has sent are dropped and counted.
func TestExchangeForged(t *testing.T) {
	c := newCircle(t, newBench(t, func(c *config.Config) { c.Sched = config.Yes }, collHints()), 2)
	groups := c.joinAll([]int{0, 1})
	s, g := c.sides[0], groups[0]
	const slice = 20000
	buf, memory := make([]byte, 2*slice), make([]byte, 4*slice)
	out := memory[slice : 3*slice]
	c.postAllToAll(0, g, buf, out, slice)
	s.ep.Progress()
	coll, src := leasedOf(s.ep).collective, g.members[1].src
	o := g.ops[0]
	r := leasedOf(s.ep).rx
	r.acquire()
	own := wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
	self, none, ahead := own, own, own
	self.Rank, none.Rank, ahead.Seq = 0, 1<<20, 1<<30
	first := exchange.Chunk{Total: slice, Length: 64}
	head, payload := make([]byte, 64), bytes.Repeat([]byte{1}, 64)
	for _, h := range []wire.CollChunk{
		{CollStep: own, Part: exchange.Chunk{Total: slice, Offset: 100, Length: 64}},        // not the next
		{CollStep: own, Part: exchange.Chunk{Total: slice, Offset: slice - 10, Length: 64}}, // beyond the end
		{CollStep: own, Part: exchange.Chunk{Total: slice, Length: 10}},                     // with more bytes than it says
		{CollStep: self, Part: first}, {CollStep: ahead, Part: first}, {CollStep: none, Part: first},
	} {
		coll.onStep(src, g.id, h.Put(head), payload)
	}
	coll.onStep(src, g.id+1<<32, (&wire.CollChunk{CollStep: own, Part: first}).Put(head), payload) // of another group
	beyond := wire.CollWord{CollStep: own, Word: exchange.Word{Got: slice + 1, Invite: true}}
	coll.onNote(src, g.id, beyond.Put(head), nil)
	later := own
	later.Seq = 7
	for _, word := range []exchange.Word{{Got: 1}, {Low: 1}, {Have: 1}} { // before it begins
		coll.onNote(src, g.id, (&wire.CollWord{CollStep: later, Word: word}).Put(head), nil)
	}
	if m := &g.members[1]; m.ahead != nil || m.early != 0 {
		t.Error("a word about bytes is kept")
	}
	if g.ops[0] != o || o.status != fi.Success || o.exchange.engine.Report().Received != 0 {
		t.Error("a forged message ended the operation, or its bytes were taken")
	}
	r.give()
	for i, b := range memory {
		if b != 0 {
			t.Fatalf("byte %d was written", i)
		}
	}
	c.postAllToAll(1, groups[1], buf, make([]byte, 2*slice), slice)
	for i := range 2 {
		if err := c.outcome(i); err != fi.Success {
			t.Errorf("rank %d ends with %v", i, err)
		}
	}
}

// TestJoinSettings: members whose variables differ do not join; the error names both values.
func TestJoinSettings(t *testing.T) {
	for _, c := range []struct {
		other wire.CollSettings
		want  string
	}{
		{wire.CollSettings{Algorithm: 2}, "FI_WEFT_ALLTOALL_ALGORITHM is auto here and pairwise there"},
		{wire.CollSettings{Algorithm: 6}, "FI_WEFT_ALLTOALL_ALGORITHM is auto here and put there"},
		{wire.CollSettings{Sched: config.No}, "FI_WEFT_RTT_SCHED_ENABLE is auto here and no there"},
		{wire.CollSettings{Spans: true, First: true}, ""},
		{wire.CollSettings{Relay: true}, "FI_WEFT_ALLTOALL_RELAY is no here and auto there"},
	} {
		var own, read wire.CollSettings
		if !read.Unpack(c.other.Pack()) || read != c.other {
			t.Errorf("%+v is read as %+v", c.other, read)
		}
		said := ""
		if err := own.Differs(&read); err != nil {
			said = err.Error()
		}
		if said != c.want {
			t.Errorf("%+v: %q", c.other, said)
		}
	}
	for _, v := range []uint32{uint32(len(wire.AllToAllNames)), 3 << 8, 1 << 19} {
		if (&wire.CollSettings{}).Unpack(v) {
			t.Errorf("%#x is read", v)
		}
	}
	c := newCircle(t, newBench(t, nil, collHints()), 2)
	g := c.sides[0].begin([]int{0, 1}, 0)
	r := leasedOf(c.sides[0].ep).rx
	r.acquire()
	large := g.settingsOf()
	large.RelaySize++
	if err := (&large).Differs(&large); err != nil {
		t.Error(err)
	}
	g.agree(leasedOf(c.sides[0].ep).collective, 1, &large)
	r.give()
	c.until("error event", func() bool {
		_, _, err := c.sides[0].eq.Read(make([]byte, 64), 0)
		return err == fi.EAVAIL
	})
	if e, err := c.sides[0].eq.ReadErr(0); err != nil || e.Err != fi.EINVAL {
		t.Errorf("the join ends with %+v, %v", e, err)
	}
}

// TestExchangeInvitedEarly: a receiver may invite a member before that has begun the operation, which takes the credit
// then, and after it has ended, when the credit is void. Neither is malformed.
func TestExchangeInvitedEarly(t *testing.T) {
	c := newCircle(t, newBench(t, func(c *config.Config) { c.Sched = config.Yes }, collHints()), 2)
	groups := c.joinAll([]int{0, 1})
	s, g := c.sides[0], groups[0]
	const slice = 300000
	head := make([]byte, 64)
	e := leasedOf(s.ep)
	invite := func(seq uint32) {
		s.ep.rx.acquire()
		defer e.rx.give()
		step := wire.CollStep{Seq: seq, Kind: collective.AllToAll, Rank: 1}
		w := wire.CollWord{CollStep: step, Word: exchange.Word{Invite: true}}
		leasedOf(s.ep).collective.onNote(g.members[1].src, g.id, w.Put(head), nil)
	}
	for seq := range uint32(3) {
		invite(seq)
		if m := &g.members[1]; m.ahead == nil || m.early != earlyOffer {
			t.Errorf("operation %d: the credit is not kept", seq)
		}
		for i := range 2 {
			c.postAllToAll(i, groups[i], make([]byte, 2*slice), make([]byte, 2*slice), slice)
		}
		for i := range 2 {
			if err := c.outcome(i); err != fi.Success {
				t.Errorf("operation %d, rank %d ends with %v", seq, i, err)
			}
		}
		if n := g.Report().Credits; n == 0 || g.members[1].early != 0 {
			t.Errorf("operation %d: %d credits, %d bytes kept", seq, n, g.members[1].early)
		}
		invite(seq)
	}
	if e.malformedHere != 0 {
		t.Errorf("%d messages are counted as malformed", e.malformedHere)
	}
}
