package provider

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/collective"
)

// circle is a number of sides that know each other, in the same order.
type circle struct {
	t     testing.TB
	sides []*collSide
}

type collSide struct {
	side
	eq     *eq.Queue
	addrs  []fi.Addr
	groups []*Group
	gone   bool
}

func collHints() *fi.Info { return &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Collective} }

func newCircle(t testing.TB, b *bench, n int) *circle {
	t.Helper()
	c := &circle{t: t}
	for range n {
		c.add(b, (*collSide).open)
	}
	c.meet()
	return c
}

// add makes a side with open.
func (c *circle) add(b *bench, open func(*collSide) error) {
	c.t.Helper()
	s := &collSide{side: side{t: c.t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}}
	if err := open(s); err != nil {
		c.t.Fatal(err)
	}
	c.sides = append(c.sides, s)
	b.sides = append(b.sides, &s.side)
	c.t.Cleanup(s.close)
}

// meet has all sides know each other.
func (c *circle) meet() {
	c.t.Helper()
	for _, s := range c.sides {
		for _, o := range c.sides {
			s.know(&o.side)
			s.addrs = append(s.addrs, s.addr[&o.side])
		}
	}
}

func (s *collSide) open() (err error) {
	for _, step := range []func() error{
		func() error { s.av, err = s.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable}); return err },
		func() error {
			s.cq, err = s.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 64}, nil)
			return err
		},
		func() error { s.eq, err = s.bench.fabric.OpenEQ(&fi.EQAttr{}); return err },
		func() error { s.ep, err = s.domain.OpenEndpoint(s.bench.info); return err },
		func() error { return s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv) },
		func() error { return s.ep.BindAV(s.av, 0) },
		func() error { return s.ep.BindEQ(s.eq, 0) },
		func() error { return s.ep.Enable() },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *collSide) close() {
	for _, g := range s.groups {
		if err := g.Close(); err != nil && !errors.Is(err, fi.EBADF) {
			s.t.Errorf("close group: %v", err)
		}
	}
	if s.ep != nil {
		s.side.close()
		if err := s.eq.Close(); err != nil {
			s.t.Errorf("close event queue: %v", err)
		}
	}
}

// progress makes some on all sides that are there.
func (c *circle) progress() {
	for _, s := range c.sides {
		if !s.gone {
			s.ep.Progress()
		}
	}
}

// until makes progress until ok, for 20 s at most.
func (c *circle) until(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			c.t.Fatalf("%s: not within 20 s", what)
		}
		c.progress()
	}
}

// set makes a set of sides, by number.
func (s *collSide) set(members []int) *AVSet {
	s.t.Helper()
	set, err := s.av.OpenSet(&fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range members {
		if err := set.Insert(s.addrs[m]); err != nil {
			s.t.Fatal(err)
		}
	}
	return set
}

// begin has a side begin to join a group of sides, through another group or its set.
func (s *collSide) begin(members []int, through fi.Addr) *Group {
	s.t.Helper()
	set := s.set(members)
	defer set.Close()
	if through == 0 {
		through = set.Addr()
	}
	g, err := s.ep.Join(through, set, fi.Collective, 99)
	if err != nil {
		s.t.Fatal(err)
	}
	s.groups = append(s.groups, g)
	g.Notify(0x1234)
	return g
}

// joinAll joins all members, and reads their events.
func (c *circle) joinAll(members []int) []*Group {
	c.t.Helper()
	groups := make([]*Group, len(members))
	for i, m := range members {
		groups[i] = c.sides[m].begin(members, 0)
	}
	for _, m := range members {
		c.event(m)
	}
	return groups
}

// event reads the event that a join is complete.
func (c *circle) event(m int) {
	c.t.Helper()
	var buf [24]byte
	c.until("join event", func() bool {
		number, n, err := c.sides[m].eq.Read(buf[:], 0)
		if errors.Is(err, fi.EAGAIN) {
			return false
		}
		if err != nil || fi.EQEvent(number) != fi.JoinComplete || n != 24 ||
			binary.LittleEndian.Uint64(buf[:]) != 0x1234 || binary.LittleEndian.Uint64(buf[8:]) != 99 {
			c.t.Fatalf("event %d of %d bytes, %v: % x", number, n, err, buf[:])
		}
		return true
	})
}

// work is one operation, with every member's buffers.
type work struct {
	members []int
	groups  []*Group
	call    collective.Call
	dt      fi.Datatype
	op      fi.Op
	in, out [][]byte
	want    [][]byte
	left    int // members that have not completed
}

// args are those of the member of a rank.
func (w *work) args(c *circle, rank int, context uint64) *CollectiveArgs {
	a := &CollectiveArgs{
		Kind: w.call.Kind, Count: w.call.Count, Datatype: w.dt, Op: w.op, Group: w.groups[rank].Addr(),
		Context: context,
		Root:    c.sides[w.members[rank]].addrs[w.members[w.call.Root]],
	}
	a.Buf, a.Result = baseOf(w.in[rank]), baseOf(w.out[rank])
	if w.call.Kind == collective.Broadcast {
		a.Buf, a.Result = a.Result, 0
	}
	return a
}

func baseOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// newWork makes a random operation. Sums are of integers, so that their order
// does not matter.
func newWork(r *rand.Rand, members []int, groups []*Group) *work {
	w := &work{members: members, groups: groups, left: len(members), dt: fi.Uint64, op: fi.OpSum}
	types := []fi.Datatype{fi.Uint8, fi.Int16, fi.Uint32, fi.Int64, fi.Uint64, fi.Int128}
	w.dt = types[r.IntN(len(types))]
	ops := []fi.Op{fi.OpSum, fi.OpMin, fi.OpMax, fi.OpBXor, fi.OpLAnd, fi.OpProd}
	w.op = ops[r.IntN(len(ops))]
	counts := []int{2, 20, 200, 2000, 12000, 50000}
	w.call = collective.Call{
		Kind: collective.Kind(r.IntN(int(collective.Kinds))), Size: len(members), Elem: uint64(w.dt.Size()),
		Count: uint64(r.IntN(counts[r.IntN(len(counts))]+1)) / uint64(w.dt.Size()),
	}
	if w.call.Kind.Rooted() {
		w.call.Root = r.IntN(len(members))
	}
	if w.call.Kind == collective.Barrier {
		w.call.Count = 0
	}
	for i := range members {
		w.call.Rank = i
		reads, writes := w.call.Lengths()
		w.in = append(w.in, randomBytes(r, int(reads)))
		w.out = append(w.out, randomBytes(r, int(writes)))
	}
	w.model()
	return w
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	for i := n &^ 7; i < n; i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}

// model computes what every member gets.
func (w *work) model() {
	n := int(w.call.Count * w.call.Elem)
	var all []byte
	reduce := func() []byte {
		if all == nil {
			all = bytes.Clone(w.in[0])
			for _, b := range w.in[1:] {
				atomics.Combine(w.dt, w.op)(all, all, b)
			}
		}
		return bytes.Clone(all)
	}
	for i := range w.members {
		var b []byte
		root := i == w.call.Root
		switch w.call.Kind {
		case collective.Broadcast:
			b = bytes.Clone(w.out[w.call.Root])
		case collective.AllToAll:
			for _, in := range w.in {
				b = append(b, in[i*n:(i+1)*n]...)
			}
		case collective.AllReduce:
			b = reduce()
		case collective.AllGather:
			b = bytes.Join(w.in, nil)
		case collective.ReduceScatter:
			b = reduce()[i*n : (i+1)*n]
		case collective.Reduce:
			if root {
				b = reduce()
			}
		case collective.Scatter:
			b = w.in[w.call.Root][i*n : (i+1)*n]
		case collective.Gather:
			if root {
				b = bytes.Join(w.in, nil)
			}
		}
		w.want = append(w.want, b)
	}
}

// run posts a program of operations on all members, each at its own pace, and
// checks what they get.
func (c *circle) run(r *rand.Rand, program []*work) {
	c.t.Helper()
	todo := make([][]int, len(c.sides)) // by side: operations in order
	for i, w := range program {
		for _, m := range w.members {
			todo[m] = append(todo[m], i)
		}
	}
	left := 0
	for _, list := range todo {
		left += len(list)
	}
	c.until("all operations", func() bool {
		m := r.IntN(len(c.sides))
		for range r.IntN(6) {
			if len(todo[m]) == 0 {
				break
			}
			i := todo[m][0]
			w := program[i]
			err := c.sides[m].ep.Collective(w.args(c, rankOf(w.members, m), uint64(i+1)))
			if errors.Is(err, fi.EAGAIN) {
				break
			}
			if err != nil {
				c.t.Fatalf("%+v: %v", w.call, err)
			}
			todo[m] = todo[m][1:]
		}
		for _, s := range c.sides {
			left -= c.reap(s, program)
		}
		return left == 0
	})
	for _, w := range program {
		for i := range w.members {
			if !bytes.Equal(w.out[i], w.want[i]) {
				c.t.Fatalf("%+v, datatype %d, operation %d: rank %d has the wrong data", w.call, w.dt, w.op, i)
			}
		}
	}
}

func rankOf(members []int, m int) int {
	for i, o := range members {
		if o == m {
			return i
		}
	}
	return -1
}

// reap reads a side's completions, and returns how many there were.
func (c *circle) reap(s *collSide, program []*work) (n int) {
	var got [8]cq.Entry
	k, err := s.cq.Read(got[:])
	if errors.Is(err, fi.EAVAIL) {
		e, _ := s.cq.ReadErr()
		c.t.Fatalf("operation %d ends with %v", e.Context, e.Err)
	}
	for _, e := range got[:max(k, 0)] {
		if e.Flags != fi.Collective || e.Context == 0 || e.Context > uint64(len(program)) {
			c.t.Fatalf("completion %+v", e)
		}
		program[e.Context-1].left--
		n++
	}
	return n
}

// TestCollectiveModel runs random programs of operations in several groups of
// several sizes at a time.
func TestCollectiveModel(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"memory":   func(c *config.Config) { c.UseCMA = config.Auto },
		"messages": func(c *config.Config) { c.UseCMA = config.No },
		"closed":   func(c *config.Config) { c.UnexpectedBytes = 1 },
	} {
		for seed := range seedCount(t, 3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { collectiveModel(t, change, seed) })
		}
	}
}

func collectiveModel(t *testing.T, change func(*config.Config), seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCircle(t, newBench(t, change, collHints()), 9)
	var program []*work
	for _, size := range []int{1, 2, 3, 4, 5, 7, 8, 9} {
		members := r.Perm(len(c.sides))[:size]
		groups := c.joinAll(members)
		for range 12 {
			program = append(program, newWork(r, members, groups))
		}
	}
	r.Shuffle(len(program), func(i, j int) { program[i], program[j] = program[j], program[i] })
	c.run(r, program)
	for _, s := range c.sides {
		s.idle()
	}
}

// idle fails the test if an endpoint keeps anything of operations that have ended.
func (s *collSide) idle() {
	s.t.Helper()
	if err := leasedOf(s.ep).collective.Idle(); err != nil {
		s.t.Errorf("left: %v", err)
	}
	if leasedOf(s.ep).rx.matching.UnexpectedBytes != 0 {
		s.t.Errorf("%d bytes are kept", leasedOf(s.ep).rx.matching.UnexpectedBytes)
	}
}

// TestCollectiveAhead lets a root run ahead of the others until its window is
// closed: nothing is lost, and what is kept is bounded.
func TestCollectiveAhead(t *testing.T) {
	const bound = 64 << 10
	c := newCircle(t, newBench(t, func(c *config.Config) { c.UnexpectedBytes = bound }, collHints()), 2)
	groups := c.joinAll([]int{0, 1})
	const n, size = 5000, 256
	data := pattern(size, 3)
	posted, completed := 0, 0
	var got [64]cq.Entry
	c.until("the root to be delayed", func() bool {
		err := c.sides[0].ep.Collective(&CollectiveArgs{Kind: collective.Broadcast, Buf: baseOf(data), Count: size,
			Datatype: fi.Uint8, Group: groups[0].Addr(), Root: c.sides[0].addrs[0]})
		if err == nil {
			posted++
		} else if !errors.Is(err, fi.EAGAIN) {
			t.Fatal(err)
		}
		k, _ := c.sides[0].cq.Read(got[:])
		completed += max(k, 0)
		if kept := leasedOf(c.sides[1].ep).rx.matching.UnexpectedBytes; kept > bound+size+512 {
			t.Fatalf("%d bytes are kept, at most %d", kept, bound)
		}
		return errors.Is(err, fi.EAGAIN) || posted == n
	})
	if posted == n {
		t.Fatalf("the root was never delayed")
	}
	buf := make([]byte, size)
	received := 0
	for i := range posted {
		c.until("room", func() bool {
			err := c.sides[1].ep.Collective(&CollectiveArgs{Kind: collective.Broadcast, Buf: baseOf(buf), Count: size,
				Datatype: fi.Uint8, Group: groups[1].Addr(), Root: c.sides[1].addrs[0]})
			return err == nil
		})
		c.until(fmt.Sprintf("broadcast %d", i), func() bool {
			k, _ := c.sides[1].cq.Read(got[:])
			received += max(k, 0)
			return received == i+1
		})
		if !bytes.Equal(buf, data) {
			t.Fatalf("broadcast %d: wrong data", i)
		}
		clear(buf)
	}
	c.until("the root's completions", func() bool {
		k, _ := c.sides[0].cq.Read(got[:])
		completed += max(k, 0)
		return completed == posted
	})
	c.sides[0].idle()
	c.sides[1].idle()
}
