package coll

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

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
		m := newMesh(t, onHost(2), set)
		groups := m.join()
		w := &groups[0].ways
		if long, short := w.ordered(exchangeLong), w.ordered(1); long != c.long || short != c.short {
			t.Errorf("%v, %s: long slices %v, short ones %v", c.sched, c.algorithm, long, short)
		}
		m.allToAll(groups, 100)
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
	m := newMesh(t, onHost(2), nil)
	g := m.nodes[0].begin()
	own := g.settingsOf()
	if err := (&own).Differs(&own); err != nil {
		t.Error(err)
	}
}

// TestJoinUnlike: a join of members of which one has other variables ends at all of them, whichever joins first, last,
// or when another's has ended.
func TestJoinUnlike(t *testing.T) {
	for seed := range uint64(300) {
		n := 2 + int(seed%3)
		ends := &cleanups{TB: t}
		m := newMesh(ends, onHost(n), nil)
		m.r, m.full = rand.New(rand.NewPCG(seed, 3)), int(seed/3%2)*2
		switch unlike := &m.nodes[m.r.IntN(n)].cfg; seed % 2 {
		case 0:
			unlike.AllToAll = "put"
		default:
			unlike.RelaySize++
		}
		var groups []*Group
		over := func() bool {
			return !slices.ContainsFunc(groups, func(g *Group) bool { return g.state.Load() == groupJoining })
		}
		for _, i := range m.r.Perm(n) {
			groups = append(groups, m.nodes[i].begin())
			for range m.r.IntN(3) * 20 {
				m.progress()
			}
		}
		m.until("the ends of the joins", over)
		for _, g := range groups {
			node := m.nodes[g.rank]
			if _, _, err := node.events.Read(make([]byte, 64), 0); !errors.Is(err, fi.EAVAIL) {
				t.Errorf("seed %d, member %d: no error event: %v", seed, g.rank, err)
			}
			if e, err := node.events.ReadErr(0); err != nil || e.Err != fi.EINVAL {
				t.Errorf("seed %d, member %d: the join ends with %+v, %v", seed, g.rank, e, err)
			}
		}
		if ends.end(); t.Failed() {
			return
		}
	}
}

// TestExchangeInvitedEarly: a receiver may invite a member before that has begun the operation, which takes the credit
// then, and after it has ended, when the credit is void. Neither is malformed.
func TestExchangeInvitedEarly(t *testing.T) {
	c := newMesh(t, onHost(2), func(c *config.Config) { c.Sched = config.Yes })
	groups := c.join()
	n, g := c.nodes[0], groups[0]
	const slice = 300000
	head := make([]byte, 64)
	invite := func(seq uint32) {
		step := wire.CollStep{Seq: seq, Kind: collective.AllToAll, Rank: 1}
		w := wire.CollWord{CollStep: step, Word: exchange.Word{Invite: true}}
		n.protocol.onNote(g.members[1].src, g.id, w.Put(head), nil)
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
		if got := g.Report().Credits; got == 0 || g.members[1].early != 0 {
			t.Errorf("operation %d: %d credits, %d bytes kept", seq, got, g.members[1].early)
		}
		invite(seq)
	}
	if n.malformed != 0 {
		t.Errorf("%d messages are counted as malformed", n.malformed)
	}
}

// TestGetJoining: a member that has joined begins while another one has not, which keeps what may be fetched.
func TestGetJoining(t *testing.T) {
	const slice = 100000
	m := newMesh(t, onHosts(2), func(c *config.Config) { c.AllToAll = "get" })
	groups := m.join()
	late := groups[0]
	late.ways.gets = false
	late.state.Store(groupJoining)
	in, out := [][]byte{m.fill(2 * slice), m.fill(2 * slice)}, [][]byte{make([]byte, 2*slice), make([]byte, 2*slice)}
	m.postAllToAll(1, groups[1], in[1], out[1], slice)
	m.until("an offer and a grant", func() bool {
		h := late.members[1].ahead
		return h != nil && h.next != nil && h.next.kind == earlyGrant
	})
	late.ways.gets = true
	late.state.Store(groupJoined)
	m.postAllToAll(0, late, in[0], out[0], slice)
	for i := range 2 {
		if err := m.outcome(i); err != fi.Success {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	m.compare(in, out, slice)
	if n := m.nodes[0].counts[stats.RxExchangeGot]; n != slice {
		t.Errorf("%d of %d bytes are got", n, slice)
	}
}
