package provider

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
)

// keptWork is a persistent all-to-all of equal slices.
type keptWork struct {
	c        *circle
	r        *rand.Rand
	slice    int
	args     []AllToAllVArgs
	requests []*AllToAllVRequest
	in, out  [][]byte
}

func newKeptWork(c *circle, r *rand.Rand, groups []*Group, slice int) *keptWork {
	n := len(groups)
	w := &keptWork{c: c, r: r, slice: slice, in: make([][]byte, n), out: make([][]byte, n)}
	counts, displs := make([]uint64, n), make([]uint64, n)
	for i := range n {
		counts[i], displs[i] = uint64(slice), uint64(i*slice)
	}
	for i := range n {
		w.in[i], w.out[i] = make([]byte, n*slice), make([]byte, n*slice)
		w.args = append(w.args, AllToAllVArgs{
			Buf: baseOf(w.in[i]), Counts: counts, Displs: displs,
			Result: baseOf(w.out[i]), ResultCounts: counts, ResultDispls: displs,
			Elem: 1, Group: groups[i].Addr(), Context: 5,
		})
		q, err := c.sides[i].ep.AllToAllVInit(&w.args[i])
		if err != nil {
			c.t.Fatal(err)
		}
		w.requests = append(w.requests, q)
	}
	return w
}

// start begins an operation of new data at some ranks.
func (w *keptWork) start(ranks ...int) {
	w.c.t.Helper()
	for _, i := range ranks {
		copy(w.in[i], randomBytes(w.r, len(w.in[i])))
		if err := w.requests[i].Start(); err != nil {
			w.c.t.Fatal(err)
		}
	}
}

// end waits for the operation and checks the data.
func (w *keptWork) end() {
	w.c.t.Helper()
	for i := range w.in {
		if err := w.c.outcome(i); err != fi.Success {
			w.c.t.Fatalf("rank %d ends with %v", i, err)
		}
	}
	for i := range w.in {
		for j := range w.in {
			if !bytes.Equal(w.out[i][j*w.slice:][:w.slice], w.in[j][i*w.slice:][:w.slice]) {
				w.c.t.Fatalf("rank %d has the wrong data of rank %d", i, j)
			}
		}
	}
}

// registered is how many regions a rank has registered for its peers.
func (w *keptWork) registered(rank int) uint64 {
	return w.c.sides[rank].counted(stats.RxExchangeRegistered)
}

// kept is what a rank's request has registered.
func (w *keptWork) kept(rank int) []keptRegion { return w.requests[rank].args.kept.list }

// tests runs a test in each form, on one host and between hosts.
func (f copyForm) tests(t *testing.T, n, slice int, run func(t *testing.T, w *keptWork, groups []*Group)) {
	for name, open := range f.circles() {
		t.Run(f.name+"/"+name, func(t *testing.T) {
			c := open(t, n, nil)
			groups := c.joinAll(everyRank(n))
			run(t, newKeptWork(c, rand.New(rand.NewPCG(1, 21)), groups, slice), groups)
		})
	}
}

// TestKept: what a persistent all-to-all offers is registered once, until it is freed.
func TestKept(t *testing.T) {
	for _, f := range []copyForm{byPuts, byGets} {
		f.tests(t, 3, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
			var first []keptRegion
			for i := range 4 {
				before, had := f.bytes(w.c.sides[0]), w.registered(0)
				w.start(0, 1, 2)
				w.end()
				if f.bytes(w.c.sides[0]) == before {
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
				if err := w.c.sides[i].ep.AllToAllV(&w.args[i]); err != nil {
					t.Fatal(err)
				}
			}
			if w.end(); w.registered(0) != had+2 {
				t.Errorf("an operation of no request registers %d regions", w.registered(0)-had)
			}
			w.requests[0].Free()
			w.requests[0].Free()
			if err := w.requests[0].Start(); err != fi.EINVAL || len(w.kept(0)) != 0 {
				t.Errorf("a freed request starts with %v, and %d regions are left", err, len(w.kept(0)))
			}
			if err := w.copyTo(f, groups[1], first[0]); !errors.Is(err, hw.ErrKey) {
				t.Errorf("memory of a freed request: %v", err)
			}
		})
	}
}

// copyTo puts to rank 0 of a group, or gets from it, where a region is or was.
func (w *keptWork) copyTo(f copyForm, g *Group, r keptRegion) error {
	path, ok := g.members[0].peer.Ready()
	if !ok {
		w.c.t.Fatal("not connected")
	}
	key, err := path.Over().Memory().UnpackKey(r.region.PackKey(nil))
	if err != nil {
		w.c.t.Fatal(err)
	}
	leased := leasedOf(w.c.sides[1].ep).rx
	leased.acquire()
	ended := false
	done := hw.Completion{Func: func(*hw.Completion) { ended = true }}
	done.Expect(1)
	local := []hw.Segment{{Addr: pointerAt(addressOfBytes(w.in[1])), Len: 8}}
	put := path.Transport().(hw.OneSided).PutZcopy
	if f.name == "get" {
		put = path.Transport().(hw.OneSided).GetZcopy
	}
	status, err := put(local, 0, key, &done)
	leased.give()
	if err != nil || status == hw.Done {
		return err
	}
	w.c.until("the copy's end", func() bool { return ended })
	return done.Err()
}

// TestKeptClosed: what an idle request has registered ends with the endpoint.
func TestKeptClosed(t *testing.T) {
	byPuts.tests(t, 2, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
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
	byPuts.tests(t, 3, 3<<20, func(t *testing.T, w *keptWork, _ []*Group) {
		w.start(0, 1, 2)
		w.end()
		copy(w.out[0], randomBytes(w.r, len(w.out[0])))
		before := bytes.Clone(w.out[0])
		w.start(1, 2)
		for range 2000 {
			w.c.progress()
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
	for _, f := range []copyForm{byPuts, byGets} {
		f.tests(t, 3, 300000, func(t *testing.T, w *keptWork, _ []*Group) {
			w.start(0, 1, 2)
			w.end()
			first := w.kept(0)[0]
			w.start(0, 1)
			other := w.args[2]
			other.Counts = []uint64{1, 1, uint64(w.slice)}
			if err := w.c.sides[2].ep.AllToAllV(&other); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := w.c.outcome(i); err != fi.ETRUNC {
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
	byPuts.tests(t, 2, 300000, func(t *testing.T, w *keptWork, _ []*Group) {
		w.start(0, 1)
		for range 3 {
			w.c.progress()
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
			if err := w.c.sides[0].ep.AllToAllV(&w.args[0]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			if err := w.c.outcome(i % 2); err != fi.Success {
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
	byGets.tests(t, 3, 300000, func(t *testing.T, w *keptWork, groups []*Group) {
		_, path := w.c.sides[0].pathTo(&w.c.sides[1].side)
		plain := path.Endpoint
		path.Endpoint = &refusingEndpoint{plain, plain.(hw.OneSided), 0}
		w.start(0, 1, 2)
		w.end()
		path.Endpoint = plain
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
