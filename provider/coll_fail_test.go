package provider

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
)

// sum is an allreduce of count numbers.
func (s *collSide) sum(g *Group, in, out []byte, count uint64) error {
	return s.ep.Collective(&CollectiveArgs{Kind: collective.AllReduce, Buf: baseOf(in), Result: baseOf(out),
		Count:    count,
		Datatype: fi.Uint64, Op: fi.OpSum, Group: g.Addr(), Context: 5})
}

// outcome waits for a side's next completion.
func (c *circle) outcome(m int) (why fi.Errno) {
	c.t.Helper()
	c.until("completion", func() bool {
		var got [1]cq.Entry
		n, err := c.sides[m].cq.Read(got[:])
		if errors.Is(err, fi.EAVAIL) {
			e, _ := c.sides[m].cq.ReadErr()
			if e.Flags != fi.Collective || e.Context != 5 {
				c.t.Fatalf("error completion %+v", e)
			}
			why = e.Err
			return true
		}
		return n == 1
	})
	return why
}

// TestCollectiveRefused holds the errors of the calls to what the manual pages say.
func TestCollectiveRefused(t *testing.T) {
	b := newBench(t, nil, collHints())
	c := newCircle(t, b, 2)
	s := c.sides[0]
	set := s.set([]int{0, 1})
	t.Cleanup(func() { _ = set.Close() })
	join := func(e *Endpoint, addr fi.Addr, set *AVSet, flags uint64, want fi.Errno, what string) {
		t.Helper()
		_, err := e.Join(addr, set, flags, 0)
		wantErrno(t, err, want, what)
	}
	other := s.set([]int{1})
	join(s.ep, set.Addr(), set, fi.Collective|fi.Read, fi.EBADFLAGS, "flags")
	join(s.ep, set.Addr(), set, fi.Collective|fi.Recv, fi.EBADFLAGS, "one direction")
	join(s.ep, 12345, set, fi.Collective, fi.EINVAL, "an address that is none")
	join(s.ep, other.Addr(), other, fi.Collective, fi.EINVAL, "a set without this endpoint")
	join(c.sides[1].ep, set.Addr(), set, fi.Collective, fi.EINVAL, "a set of another address vector")
	_ = other.Close()
	join(s.ep, other.Addr(), other, fi.Collective, fi.EINVAL, "a closed set")
	plain := b.side(t)
	join(plain.ep, fi.AddrNotAvail, nil, fi.Collective, fi.ENOEQ, "no event queue")
	shared := *b
	shared.domain, _ = b.fabric.OpenDomain(b.info)
	q := openTestEQ(t, b.fabric)
	t.Cleanup(func() {
		wantErrno(t, shared.domain.Close(), fi.Success, "close domain")
		wantErrno(t, q.Close(), fi.Success, "close queue")
	})
	wantErrno(t, shared.domain.BindEQ(q, 0), fi.Success, "bind to the domain")
	join(shared.side(t).ep, fi.AddrNotAvail, nil, fi.Collective, fi.EINVAL, "no set, with the domain's queue")

	g := s.begin([]int{0, 1}, 0)
	in, out := make([]byte, 64), make([]byte, 64)
	wantErrno(t, s.sum(g, in, out, 1), fi.EOPBADSTATE, "before the join is complete")
	c.sides[1].begin([]int{0, 1}, 0)
	c.event(0)
	c.event(1)
	good := CollectiveArgs{Kind: collective.Reduce, Buf: baseOf(in), Result: baseOf(out), Count: 8, Datatype: fi.Uint64,
		Op: fi.OpSum, Group: g.Addr(), Root: s.addrs[0]}
	for _, bad := range []struct {
		what   string
		want   fi.Errno
		change func(*CollectiveArgs)
	}{
		{"flags", fi.EBADFLAGS, func(a *CollectiveArgs) { a.Flags = fi.Inject }},
		{"datatype", fi.EOPNOTSUPP, func(a *CollectiveArgs) { a.Datatype = fi.Void }},
		{"no datatype", fi.EOPNOTSUPP, func(a *CollectiveArgs) { a.Datatype = 99 }},
		{"operation of the datatype", fi.EOPNOTSUPP, func(a *CollectiveArgs) {
			a.Datatype, a.Op = fi.Double,
				fi.OpBAnd
		}},
		{"operation", fi.EOPNOTSUPP, func(a *CollectiveArgs) { a.Op = fi.OpCSwap }},
		{"kind", fi.EOPNOTSUPP, func(a *CollectiveArgs) { a.Kind = collective.Kinds }},
		{"void broadcast", fi.EOPNOTSUPP, func(a *CollectiveArgs) {
			a.Kind, a.Datatype = collective.Broadcast,
				fi.Void
		}},
		{"group", fi.EINVAL, func(a *CollectiveArgs) { a.Group = s.addrs[0] }},
		{"set as group", fi.EINVAL, func(a *CollectiveArgs) { a.Group = set.Addr() }},
		{"root", fi.EINVAL, func(a *CollectiveArgs) { a.Root = 77 }},
		{"no buffer", fi.EINVAL, func(a *CollectiveArgs) { a.Buf = 0 }},
		{"no result", fi.EINVAL, func(a *CollectiveArgs) { a.Result = 0 }},
		{"too long", fi.EMSGSIZE, func(a *CollectiveArgs) { a.Count = 1 << 40 }},
		{"wraps", fi.EMSGSIZE, func(a *CollectiveArgs) { a.Count = 1<<61 + 1 }},
	} {
		a := good
		bad.change(&a)
		wantErrno(t, s.ep.Collective(&a), bad.want, bad.what)
	}
	wantErrno(t, s.ep.Close(), fi.EBUSY, "close an endpoint that is in a group")
}

// TestMembersDisagree has members call with other lengths and other kinds: all of
// them get an error, and the next operation works.
func TestMembersDisagree(t *testing.T) {
	c := newCircle(t, newBench(t, nil, collHints()), 5)
	all := []int{0, 1, 2, 3, 4}
	groups := c.joinAll(all)
	in, out := make([]byte, 1<<20), make([]byte, 1<<20)
	for _, counts := range [][2]uint64{{4, 5}, {4, 100000}, {100000, 4}, {100000, 100001}} {
		for m, s := range c.sides {
			if err := s.sum(groups[m], in, out, counts[m/4]); err != nil {
				t.Fatal(err)
			}
		}
		for m := range c.sides {
			if why := c.outcome(m); why != fi.ETRUNC && why != fi.ECANCELED {
				t.Errorf("counts %v: rank %d: %v", counts, m, why)
			}
		}
	}
	for m, s := range c.sides {
		a := CollectiveArgs{Kind: collective.Barrier, Group: groups[m].Addr(), Context: 5}
		if m == 2 {
			a = CollectiveArgs{Kind: collective.AllGather, Buf: baseOf(in), Result: baseOf(out), Count: 1,
				Datatype: fi.Uint8,
				Group:    groups[m].Addr(), Context: 5}
		}
		if err := s.ep.Collective(&a); err != nil {
			t.Fatal(err)
		}
	}
	for m := range c.sides {
		if why := c.outcome(m); why != fi.EINVAL {
			t.Errorf("kinds: rank %d: %v", m, why)
		}
	}
	for m, s := range c.sides {
		binary.LittleEndian.PutUint64(in, 3)
		if err := s.sum(groups[m], in, out, 1); err != nil {
			t.Fatal(err)
		}
	}
	for m := range c.sides {
		if why := c.outcome(m); why != fi.Success {
			t.Errorf("afterwards: rank %d: %v", m, why)
		}
	}
	for range 100 {
		c.progress()
	}
	for _, s := range c.sides {
		s.idle()
	}
}

// TestGroupFail has one member fail an operation that the others have begun or begin later: all get the error, and
// the next operation works.
func TestGroupFail(t *testing.T) {
	c := newCircle(t, newBench(t, nil, collHints()), 4)
	groups := c.joinAll([]int{0, 1, 2, 3})
	in, out := make([]byte, 1<<20), make([]byte, 1<<20)
	wantErrno(t, groups[0].Fail(fi.Success, 5), fi.EINVAL, "without an error")
	for round, count := range []uint64{1, 1, 50000, 50000} {
		for m, s := range c.sides {
			post := func() error { return s.sum(groups[m], in, out, count) }
			if m == 2 {
				post = func() error { return groups[m].Fail(fi.EPROTO, 5) }
			}
			if err := post(); err != nil {
				t.Fatal(err)
			}
			for i := 0; round%2 == 0 && i < 20; i++ {
				c.progress()
			}
		}
		for m := range c.sides {
			if why := c.outcome(m); why != fi.EPROTO {
				t.Errorf("round %d: rank %d: %v", round, m, why)
			}
		}
	}
	for m, s := range c.sides {
		if err := s.sum(groups[m], in, out, 1); err != nil {
			t.Fatal(err)
		}
	}
	for m := range c.sides {
		if why := c.outcome(m); why != fi.Success {
			t.Errorf("afterwards: rank %d: %v", m, why)
		}
	}
}

// TestMemberLeaves has one member leave without taking part: the operations of
// the others end, those under way and those that begin later.
func TestMemberLeaves(t *testing.T) {
	for _, count := range []uint64{1, 50000} {
		c := newCircle(t, newBench(t, nil, collHints()), 4)
		groups := c.joinAll([]int{0, 1, 2, 3})
		in, out := make([]byte, 1<<20), make([]byte, 1<<20)
		for m, s := range c.sides[:3] {
			if err := s.sum(groups[m], in, out, count); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			c.progress()
		}
		if err := groups[3].Close(); err != nil {
			t.Fatal(err)
		}
		for m := range 3 {
			if why := c.outcome(m); why == fi.Success {
				t.Errorf("rank %d: success", m)
			}
		}
		for m, s := range c.sides[:3] {
			if err := s.sum(groups[m], in, out, count); err != nil {
				t.Fatal(err)
			}
		}
		for m := range 3 {
			if why := c.outcome(m); why == fi.Success {
				t.Errorf("rank %d: success afterwards", m)
			}
		}
		for range 100 {
			c.progress()
		}
		for _, s := range c.sides {
			s.idle()
		}
	}
}

// TestLeaveCancels closes a group with operations under way.
func TestLeaveCancels(t *testing.T) {
	c := newCircle(t, newBench(t, nil, collHints()), 2)
	groups := c.joinAll([]int{0, 1})
	in, out := make([]byte, 1<<20), make([]byte, 1<<20)
	for range 3 {
		if err := c.sides[0].sum(groups[0], in, out, 50000); err != nil {
			t.Fatal(err)
		}
	}
	if err := groups[0].Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if why := c.outcome(0); why != fi.ECANCELED {
			t.Errorf("ends with %v", why)
		}
	}
	if err := c.sides[1].sum(groups[1], in, out, 50000); err != nil {
		t.Fatal(err)
	}
	if why := c.outcome(1); why == fi.Success {
		t.Error("the other's succeeds")
	}
	wantErrno(t, c.sides[0].sum(groups[0], in, out, 1), fi.EINVAL, "post to a group that was left")
}

// TestPartners joins the same set several times, groups of groups, and a group
// whose members come at different times, and has each speak for itself.
func TestPartners(t *testing.T) {
	c := newCircle(t, newBench(t, nil, collHints()), 3)
	all := []int{0, 1, 2}
	var groups [][]*Group
	for range 3 { // begun by all before any is complete
		var of []*Group
		for m := range c.sides {
			of = append(of, c.sides[m].begin(all, 0))
		}
		groups = append(groups, of)
	}
	for range 3 {
		for m := range c.sides {
			c.event(m)
		}
	}
	for i := range 2 { // through the first two, which differ, in different orders
		var of []*Group
		for m := range c.sides {
			of = append(of, c.sides[m].begin(all, groups[(i+m)%2][m].Addr()))
		}
		groups = append(groups, of)
	}
	for range 2 {
		for m := range c.sides {
			c.event(m)
		}
	}
	groups[3][1], groups[4][1] = groups[4][1], groups[3][1]
	var ins, outs [][][]byte
	for k := range groups {
		ins, outs = append(ins, nil), append(outs, nil)
		for m := range c.sides {
			ins[k] = append(ins[k], binary.LittleEndian.AppendUint64(nil, uint64(1000*k+m)))
			outs[k] = append(outs[k], make([]byte, 8))
		}
	}
	for m, s := range c.sides {
		for i := range groups {
			k := (i + m) % len(groups) // the groups in another order at each
			if err := s.sum(groups[k][m], ins[k][m], outs[k][m], 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range groups {
		for m := range c.sides {
			if why := c.outcome(m); why != fi.Success {
				t.Fatal(why)
			}
		}
	}
	for k := range groups {
		for m := range c.sides {
			if v := binary.LittleEndian.Uint64(outs[k][m]); v != uint64(3000*k+3) {
				t.Errorf("group %d, rank %d: %d", k, m, v)
			}
		}
	}
}

// TestMembersDie has the copies of an operation fail because of a member that is gone: whatever is under way then, the
// others end with fi.ECONNRESET, and no sooner than no member can read their memory any more.
func TestMembersDie(t *testing.T) {
	const slice = 100000
	for name, die := range map[string]func(c *circle, groups []*Group, buffers [][]byte){
		// rank 0 fails while rank 1 has its offer, and takes its memory back when it may
		"a third one": func(c *circle, groups []*Group, buffers [][]byte) {
			if err := groups[2].Close(); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				c.sides[0].ep.Progress()
			}
			if n, err := c.sides[0].cq.Read(make([]cq.Entry, 1)); !errors.Is(err, fi.EAGAIN) {
				t.Errorf("rank 0 has %d entries (%v), while rank 1 may read its memory", n, err)
			}
			if why := c.outcome(0); why != fi.ECONNRESET {
				t.Errorf("rank 0: %v", why)
			}
			hide(t, buffers[0])
			if why := c.outcome(1); why != fi.ECONNRESET {
				t.Errorf("rank 1: %v", why)
			}
		},
		// rank 0 takes its memory back at once, and rank 1 has its offer and its word of that
		"the owner": func(c *circle, groups []*Group, buffers [][]byte) {
			if err := groups[0].Close(); err != nil {
				t.Fatal(err)
			}
			if why := c.outcome(0); why != fi.ECANCELED {
				t.Errorf("rank 0: %v", why)
			}
			hide(t, buffers[0])
			if why := c.outcome(1); why != fi.ECONNRESET {
				t.Errorf("rank 1: %v", why)
			}
		},
		// rank 0 is there, and its memory is not
		"no member": func(c *circle, groups []*Group, buffers [][]byte) {
			hide(t, buffers[0])
			for m := range 2 {
				if why := c.outcome(m); why != fi.EIO {
					t.Errorf("rank %d: %v", m, why)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircle(t, newBench(t, nil, collHints()), 3)
			groups := c.joinAll([]int{0, 1, 2})
			buffers, out := make([][]byte, 2), make([]byte, 6*slice)
			defer runtime.KeepAlive(out) // named by number only
			for m := 1; m >= 0; m-- {
				in, err := mem.Map(3*slice, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = mem.Unmap(in) })
				buffers[m] = in
				c.postAllToAll(m, groups[m], in, out[m*3*slice:], slice)
			}
			for range 10 {
				c.sides[0].ep.Progress() // rank 1 has offers that it has not handled
			}
			die(c, groups, buffers)
			for range 100 {
				c.progress()
			}
			for _, s := range c.sides[:2] {
				s.idle()
			}
		})
	}
}

// hide makes memory such that reading it fails.
func hide(t *testing.T, b []byte) {
	t.Helper()
	if err := unix.Mprotect(b, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
}
