package coll

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
)

// modelOp is an operation of a mesh's members, and what it leaves in their buffers: a copy of what the others give.
type modelOp struct {
	kind          collective.Kind
	count, root   int
	in, out, want [][]byte
	counts        [][]uint64 // of an alltoallv: bytes from rank to rank
	ends          []int      // by rank: completions
}

// newModelOp makes one of chance.
func newModelOp(m *mesh) *modelOp {
	n := len(m.nodes)
	kinds := []collective.Kind{collective.Barrier, collective.Broadcast, collective.AllToAll, collective.AllGather,
		collective.AllReduce, collective.AllToAllV, collective.AllToAll, collective.AllToAllV}
	o := &modelOp{kind: kinds[m.r.IntN(len(kinds))], root: m.r.IntN(n), ends: make([]int, n)}
	o.count = 8 * m.r.IntN([]int{2, 300, 8000, 20000}[m.r.IntN(4)])
	o.counts = make([][]uint64, n)
	for i := range n {
		o.counts[i] = make([]uint64, n)
		for j := range n {
			o.counts[i][j] = uint64(m.r.IntN(o.count + 1))
		}
		in, out := o.count, o.count
		switch o.kind {
		case collective.AllToAll, collective.AllToAllV:
			in, out = n*o.count, n*o.count
		case collective.AllGather:
			out = n * o.count
		case collective.Barrier:
			in, out = 0, 0
		}
		o.in, o.out = append(o.in, m.fill(in)), append(o.out, m.fill(out))
	}
	for i := range n {
		o.want = append(o.want, o.model(i))
	}
	return o
}

// model is what a rank's result is to be.
func (o *modelOp) model(rank int) []byte {
	want := bytes.Clone(o.out[rank])
	for j, given := range o.in {
		switch o.kind {
		case collective.Broadcast:
			copy(want, o.in[o.root])
		case collective.AllToAll:
			copy(want[j*o.count:], given[rank*o.count:][:o.count])
		case collective.AllToAllV:
			copy(want[j*o.count:], given[rank*o.count:][:o.counts[j][rank]])
		case collective.AllGather:
			copy(want[j*o.count:], given)
		case collective.AllReduce:
			for k := 0; k+8 <= o.count; k += 8 {
				sum := binary.LittleEndian.Uint64(given[k:])
				if j > 0 {
					sum += binary.LittleEndian.Uint64(want[k:])
				}
				binary.LittleEndian.PutUint64(want[k:], sum)
			}
		}
	}
	return want
}

// post posts a rank's part.
func (o *modelOp) post(n *node, g *Group, context uint64) error {
	rank := n.number
	in, out := uintptr(mem.Address(o.in[rank])), uintptr(mem.Address(o.out[rank]))
	if o.kind == collective.AllToAllV {
		a := AllToAllVArgs{Buf: in, Result: out, Elem: 1, Group: g.Addr(), Context: context, Counts: o.counts[rank]}
		for j := range o.counts {
			a.Displs = append(a.Displs, uint64(j*o.count))
			a.ResultCounts = append(a.ResultCounts, o.counts[j][rank])
		}
		a.ResultDispls = a.Displs
		return n.groups.AllToAllV(&a)
	}
	a := CollectiveArgs{Kind: o.kind, Buf: in, Result: out, Count: uint64(o.count), Datatype: fi.Uint8,
		Group: g.Addr(), Root: fi.Addr(o.root), Context: context}
	switch o.kind {
	case collective.AllReduce:
		a.Count, a.Datatype, a.Op = a.Count/8, fi.Uint64, fi.OpSum
	case collective.Broadcast:
		if rank == o.root {
			copy(o.out[rank], o.in[rank])
		}
		a.Buf, a.Result = out, 0
	case collective.Barrier:
		a.Count = 0
	}
	return n.groups.Collective(&a)
}

// TestModel runs operations of chance in a group whose members are on some hosts, at each member's own pace, in all
// forms of chunks, also where devices lead from host to host. Each operation completes once at each member, and leaves
// there what the model says. Of some programs a member is lost in the middle: then each operation ends at the others
// with what the model says or with fi.ECONNRESET, and nothing of it is kept.
func TestModel(t *testing.T) {
	for _, form := range []string{"auto", "message", "put", "get", "pairwise", "put device", "get device"} {
		seeds := uint64(12)
		if testing.Short() {
			seeds = 4
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", form, seed), func(t *testing.T) { runModel(t, form, seed) })
		}
	}
}

func runModel(t *testing.T, form string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 42))
	hosts := make([]int, 2+r.IntN(5))
	for i := range hosts {
		hosts[i] = r.IntN(len(hosts))
	}
	form, over, _ := strings.Cut(form, " ")
	m := newMesh(t, hosts, func(c *config.Config) {
		c.AllToAll, c.Sched = form, config.Yes
		if seed%3 == 1 {
			c.UseCMA = config.No
		}
		if seed%4 == 2 {
			c.UnexpectedBytes = 4 << 10
		}
	})
	if m.r, m.full = r, 7; over != "" {
		m.devices()
	}
	for _, n := range m.nodes {
		n.groups.UseRelays()
	}
	groups := m.join()
	ops := make([]*modelOp, 24)
	for i := range ops {
		ops[i] = newModelOp(m)
	}
	lost, at := -1, r.IntN(1500)
	if seed%2 == 1 {
		lost = r.IntN(len(hosts))
	}
	posted, left := make([]int, len(hosts)), len(ops)*len(hosts)
	failed := make([]bool, len(hosts))
	for steps := 0; left > 0; steps++ {
		if steps == 400_000 {
			t.Fatalf("%d hosts: %d operations do not end", len(hosts), left)
		}
		if steps == at && lost >= 0 {
			left -= len(ops)
			for _, o := range ops {
				left += o.ends[lost]
			}
			m.nodes[lost].die()
		}
		n := m.nodes[r.IntN(len(hosts))]
		if n.gone {
			continue
		}
		if i := posted[n.number]; i < len(ops) && r.IntN(20) == 0 {
			if err := ops[i].post(n, groups[n.number], uint64(i)); err == nil {
				posted[n.number]++
			} else if !errors.Is(err, fi.EAGAIN) {
				t.Fatal(err)
			}
		}
		n.step()
		for _, e := range n.ended {
			o := ops[e.context]
			o.ends[n.number]++
			left--
			switch {
			case o.ends[n.number] != 1:
				t.Fatalf("operation %d completes %d times at rank %d", e.context, o.ends[n.number], n.number)
			case e.status == fi.ECONNRESET && lost >= 0 && m.nodes[lost].gone:
				failed[n.number] = true
			case e.status != fi.Success:
				t.Fatalf("operation %d, of kind %d, ends with %v at rank %d", e.context, o.kind, e.status, n.number)
			case !bytes.Equal(o.out[n.number], o.want[n.number]):
				t.Fatalf("operation %d, of kind %d: rank %d has the wrong data", e.context, o.kind, n.number)
			}
		}
		n.ended = n.ended[:0]
	}
	for range 2000 {
		m.progress()
	}
	for i, n := range m.nodes {
		if n.gone {
			continue
		}
		if n.malformed != 0 {
			t.Errorf("rank %d finds %d messages malformed", i, n.malformed)
		}
		if n.idle(); n.groups.RelayPlaces() != 0 || len(n.flying) != 0 {
			t.Errorf("rank %d: %d places of relays are in use, %d copies under way",
				i, n.groups.RelayPlaces(), len(n.flying))
		}
	}
	for _, r := range m.keys {
		if !r.n.gone {
			t.Errorf("%d bytes of rank %d stay registered", r.of.Len, r.n.number)
		}
	}
}
