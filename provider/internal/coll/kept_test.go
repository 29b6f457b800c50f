package coll

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
)

// keptWork is a persistent all-to-all of equal slices.
type keptWork struct {
	m        *mesh
	slice    int
	args     []AllToAllVArgs
	requests []*AllToAllVRequest
	in, out  [][]byte
}

func newKeptWork(m *mesh, groups []*Group, slice int) *keptWork {
	n := len(groups)
	w := &keptWork{m: m, slice: slice, in: make([][]byte, n), out: make([][]byte, n)}
	counts, displs := make([]uint64, n), make([]uint64, n)
	for i := range n {
		counts[i], displs[i] = uint64(slice), uint64(i*slice)
	}
	for i := range n {
		w.in[i], w.out[i] = make([]byte, n*slice), make([]byte, n*slice)
		w.args = append(w.args, AllToAllVArgs{
			Buf: uintptr(mem.Address(w.in[i])), Counts: counts, Displs: displs,
			Result: uintptr(mem.Address(w.out[i])), ResultCounts: counts, ResultDispls: displs,
			Elem: 1, Group: groups[i].Addr(), Context: 5,
		})
		q, err := m.nodes[i].groups.AllToAllVInit(&w.args[i])
		if err != nil {
			m.t.Fatal(err)
		}
		w.requests = append(w.requests, q)
	}
	return w
}

// start begins an operation of new data at some ranks.
func (w *keptWork) start(ranks ...int) {
	w.m.t.Helper()
	for _, i := range ranks {
		copy(w.in[i], w.m.fill(len(w.in[i])))
		if err := w.requests[i].Start(); err != nil {
			w.m.t.Fatal(err)
		}
	}
}

// end waits for the operation and checks the data.
func (w *keptWork) end() {
	w.m.t.Helper()
	for i := range w.in {
		if err := w.m.outcome(i); err != fi.Success {
			w.m.t.Fatalf("rank %d ends with %v", i, err)
		}
	}
	w.m.compare(w.in, w.out, w.slice)
}

// registered is how many regions a rank has registered for its peers.
func (w *keptWork) registered(rank int) uint64 {
	return w.m.nodes[rank].counts[stats.RxExchangeRegistered]
}

// kept is what a rank's request has registered.
func (w *keptWork) kept(rank int) []keptRegion { return w.requests[rank].args.kept.list }

// meshForm is a form in which chunks are copied by one side.
type meshForm struct {
	name    string // of FI_WEFT_ALLTOALL_ALGORITHM
	counter int    // of the bytes
}

var (
	meshPuts = meshForm{"put", stats.RxExchangePut}
	meshGets = meshForm{"get", stats.RxExchangeGot}
)

// set has a configuration take the form.
func (f meshForm) set(c *config.Config) { c.Sched, c.AllToAll = config.Yes, f.name }

// bytes is how many bytes a node has copied.
func (f meshForm) bytes(n *node) uint64 { return n.counts[f.counter] }

// tests runs a test in the form, on one host, between hosts and by devices between them.
func (f meshForm) tests(t *testing.T, n, slice int, run func(t *testing.T, w *keptWork, groups []*Group)) {
	for name, hosts := range map[string][]int{"one host": onHost(n), "hosts": onHosts(n), "devices": onHosts(n)} {
		t.Run(f.name+"/"+name, func(t *testing.T) {
			m := newMesh(t, hosts, f.set)
			if name == "devices" {
				m.devices()
			}
			groups := m.join()
			run(t, newKeptWork(m, groups, slice), groups)
		})
	}
}

// TestKept: what a persistent all-to-all offers is registered once, until it is freed.
func TestKept(t *testing.T) {
	for _, f := range []meshForm{meshPuts, meshGets} {
		f.tests(t, 3, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
			var first []keptRegion
			for i := range 4 {
				before, had := f.bytes(w.m.nodes[0]), w.registered(0)
				w.start(0, 1, 2)
				w.end()
				if f.bytes(w.m.nodes[0]) == before {
					t.Error("nothing is copied")
				}
				if n := w.registered(0) - had; i == 0 && n != 2 || i > 0 && n != 0 {
					t.Errorf("start %d registers %d regions", i+1, n)
				}
				if i == 0 {
					first = slices.Clone(w.kept(0))
				} else if !slices.Equal(w.kept(0), first) {
					t.Error("an operation registers anew")
				}
			}
			if len(first) != 2 || first[0].region == nil || first[1].region == nil {
				t.Fatalf("registered: %v", first)
			}
			had := w.registered(0)
			for i := range 3 { // one that is not persistent registers each time
				if err := w.m.nodes[i].groups.AllToAllV(&w.args[i]); err != nil {
					t.Fatal(err)
				}
			}
			if w.end(); w.registered(0) != had+2 {
				t.Errorf("an operation of no request registers %d regions", w.registered(0)-had)
			}
			w.requests[0].Free()
			w.requests[0].Free()
			if err := w.requests[0].Start(); !errors.Is(err, fi.EINVAL) || len(w.kept(0)) != 0 {
				t.Errorf("a freed request starts with %v, and %d regions are left", err, len(w.kept(0)))
			}
			if err := w.copyTo(f, groups[1], first[0]); !errors.Is(err, hw.ErrKey) {
				t.Errorf("memory of a freed request: %v", err)
			}
		})
	}
}

// copyTo puts to rank 0 of a group, or gets from it, where a region is or was.
func (w *keptWork) copyTo(f meshForm, g *Group, r keptRegion) error {
	p, _ := g.members[0].peer.Ready()
	key, err := p.Over().Memory().UnpackKey(r.region.PackKey(nil))
	if err != nil {
		w.m.t.Fatal(err)
	}
	done := hw.Completion{Func: func(*hw.Completion) {}}
	done.Expect(1)
	copies := p.Transport().(hw.OneSided).PutZcopy
	if f == meshGets {
		copies = p.Transport().(hw.OneSided).GetZcopy
	}
	local := []hw.Segment{segmentOf(w.in[1][:8])}
	if local[0].Memory, err = p.Over().Memory().Register(
		hw.Region{Addr: local[0].Addr, Len: 8, Access: hw.LocalWrite}); err != nil {
		w.m.t.Fatal(err)
	}
	defer func() { _ = local[0].Memory.Close() }()
	if status, err := copies(local, 0, key, &done); err != nil || status == hw.Done {
		return err
	}
	n := w.m.nodes[1]
	w.m.until("the copy's end", func() bool { return len(n.flying) == 0 })
	return done.Err()
}

// TestKeptClosed: what an idle request has registered ends with the endpoint.
func TestKeptClosed(t *testing.T) {
	meshPuts.tests(t, 2, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
		w.start(0, 1)
		w.end()
		if len(w.kept(0)) == 0 {
			t.Fatal("nothing is registered")
		}
		c := groups[0].c
		c.close()
		if n := len(w.kept(0)); n != 0 {
			t.Errorf("%d regions are left", n)
		}
		w.requests[0].Free()
		if err := w.requests[0].Start(); fi.ErrnoOf(err) != fi.EINVAL || len(c.persistent) != 0 {
			t.Errorf("start after that: %v; %d requests are kept", err, len(c.persistent))
		}
	})
}

// TestKeptLate: no member puts into memory that stays registered before its owner has started the operation.
func TestKeptLate(t *testing.T) {
	meshPuts.tests(t, 3, 3<<20, func(t *testing.T, w *keptWork, _ []*Group) {
		w.start(0, 1, 2)
		w.end()
		copy(w.out[0], w.m.fill(len(w.out[0])))
		before := bytes.Clone(w.out[0])
		w.start(1, 2)
		for range 2000 {
			w.m.progress()
		}
		if !bytes.Equal(w.out[0], before) {
			t.Error("a member writes before the operation begins")
		}
		w.start(0)
		w.end()
	})
}

// TestKeptFails: an operation that fails takes back what is registered, and the next one registers it again.
func TestKeptFails(t *testing.T) {
	for _, f := range []meshForm{meshPuts, meshGets} {
		f.tests(t, 3, 300000, func(t *testing.T, w *keptWork, _ []*Group) {
			w.start(0, 1, 2)
			w.end()
			first := w.kept(0)[0]
			w.start(0, 1)
			other := w.args[2]
			other.Counts = []uint64{1, 1, uint64(w.slice)}
			if err := w.m.nodes[2].groups.AllToAllV(&other); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := w.m.outcome(i); err != fi.ETRUNC {
					t.Errorf("rank %d ends with %v", i, err)
				}
			}
			if n := len(w.kept(0)) + len(w.kept(1)); n != 0 {
				t.Errorf("%d regions are left", n)
			}
			w.start(0, 1, 2)
			w.end()
			if now := w.kept(0)[0]; now.region == nil || now == first {
				t.Error("the region of before the failure is used")
			}
		})
	}
}

// TestKeptFreedEarly: memory of a request that is freed while it is under way is taken back when the operation has
// completed, and one that is started twice has it in one of the operations only.
func TestKeptFreedEarly(t *testing.T) {
	meshPuts.tests(t, 2, 300000, func(t *testing.T, w *keptWork, _ []*Group) {
		w.start(0, 1)
		for range 3 {
			w.m.progress()
		}
		w.requests[0].Free()
		w.end()
		if n := len(w.kept(0)); n != 0 {
			t.Errorf("%d regions are left", n)
		}
		for range 2 {
			if err := w.requests[1].Start(); err != nil {
				t.Fatal(err)
			}
			if err := w.m.nodes[0].groups.AllToAllV(&w.args[0]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			if err := w.m.outcome(i % 2); err != fi.Success {
				t.Errorf("rank %d ends with %v", i%2, err)
			}
		}
		w.requests[1].Free()
		if n := len(w.kept(1)); n != 0 {
			t.Errorf("%d regions are left", n)
		}
	})
}

// TestKeptRefused: what a receiver cannot get is offered anew by the next operation.
func TestKeptRefused(t *testing.T) {
	meshGets.tests(t, 3, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
		w.m.nodes[0].refuses, w.m.nodes[0].refused = 0, w.m.nodes[1]
		w.start(0, 1, 2)
		w.end()
		w.m.nodes[0].refuses = -1
		if k := w.kept(1); len(k) != 2 || (k[0].region == nil) == (k[1].region == nil) {
			t.Errorf("registered: %v", k)
		}
		w.start(0, 1, 2)
		w.end()
		if k := w.kept(1); k[0].region == nil || k[1].region == nil {
			t.Errorf("registered: %v", k)
		}
	})
}
