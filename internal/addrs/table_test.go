package addrs

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/provider/names"
)

// testName is the i-th of many names on this host.
func testName(i int) names.Name {
	a := i / 65535
	return names.New(netip.AddrFrom4([4]byte{127, byte(a >> 8), byte(a), 1}), uint16(i%65535+1))
}

func TestPackName(t *testing.T) {
	for _, n := range []names.Name{
		testName(7),
		names.New(netip.MustParseAddr("fe80::1"), 65535),
		{Family: names.AFInet6, Port: 1, Scope: 1<<32 - 1, IP: [16]byte{0: 0xfe, 1: 0x80, 15: 9}},
		{Family: names.AFWord, IP: [16]byte{7: 1}},
	} {
		p := pack(n)
		if p.unpack() != n {
			t.Errorf("%v comes back as %v", n, p.unpack())
		}
		if !p.valid() {
			t.Errorf("%v is not valid", n)
		}
	}
	for _, p := range []packed{
		{},
		{uint64(names.AFInet) | 80<<16, 0, 0}, // wildcard
		{uint64(names.AFInet), 0x0100007f, 0}, // no port
		{uint64(names.AFInet) | 80<<16, 1<<32 | 127, 0}, // more than 4 bytes
		{uint64(names.AFInet) | 80<<16 | 1<<32, 127, 0}, // scope
		{77 | 80<<16, 127, 0},
		{uint64(names.AFInet6) | 80<<16, 0, 0},
		{uint64(names.AFWord) | 80<<16, 1, 0}, // port
		{uint64(names.AFWord) | 1<<32, 1, 0},  // scope
		{uint64(names.AFWord), 1, 1},          // more than a word
		{uint64(names.AFWord) | 1<<8, 1, 0},   // key
	} {
		if p.valid() {
			t.Errorf("%x is valid", p)
		}
	}
}

func TestChunkOf(t *testing.T) {
	next := map[int]uint64{}
	for i := range uint64(1 << 12) {
		c, o := chunkOf(i)
		if o != next[c] {
			t.Fatalf("index %d is at %d of chunk %d, want %d", i, o, c, next[c])
		}
		next[c]++
	}
	if c, _ := chunkOf(1<<32 - 1); c != chunkCount-1 {
		t.Fatalf("the last index is in chunk %d of %d", c, chunkCount)
	}
}

func TestMinHeap(t *testing.T) {
	var h minHeap
	var want []uint32
	for range 1000 {
		x := rand.Uint32N(500)
		h.push(x)
		want = append(want, x)
	}
	slices.Sort(want)
	for i, w := range want {
		if got := h.pop(); got != w {
			t.Fatalf("element %d is %d, want %d", i, got, w)
		}
	}
	if len(h) != 0 {
		t.Fatalf("%d elements left", len(h))
	}
}

// model is the table and index together, changed as AV does.
type model struct {
	table table
	index index
}

func newModel() *model {
	m := &model{}
	m.index.init(&m.table, 0)
	return m
}

func (m *model) insert(n packed) uint64 {
	i := m.table.next()
	m.table.set(i, n)
	m.index.add(n, i)
	return i
}

func (m *model) remove(i uint64) {
	n, _ := m.table.load(i)
	m.index.remove(n, i)
	m.table.clear(i)
}

// Random insertions and removals of few names, so that many stand twice,
// against plain maps.
func TestTableAgainstMaps(t *testing.T) {
	m := newModel()
	at := map[uint64]packed{}
	lowest := func(n packed) (uint64, bool) {
		best, ok := uint64(0), false
		for i, o := range at {
			if o == n && (!ok || i < best) {
				best, ok = i, true
			}
		}
		return best, ok
	}
	lowestFree := func() (i uint64) {
		for ; ; i++ {
			if _, set := at[i]; !set {
				return i
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 20000 {
		n := pack(testName(rng.IntN(40)))
		if len(at) < 200 && rng.IntN(2) == 0 {
			want := lowestFree()
			if i := m.insert(n); i != want {
				t.Fatalf("step %d: inserted at %d, want %d", step, i, want)
			}
			at[want] = n
		} else if len(at) > 0 {
			i := rng.Uint64N(m.table.limit)
			if _, set := at[i]; !set {
				continue
			}
			m.remove(i)
			delete(at, i)
		}
		want, wantOK := lowest(n)
		if i, ok := m.index.find(n); ok != wantOK || i != want {
			t.Fatalf("step %d: found %d %v, want %d %v", step, i, ok, want, wantOK)
		}
		if m.table.used != uint64(len(at)) {
			t.Fatalf("step %d: %d used, want %d", step, m.table.used, len(at))
		}
	}
	for i := range m.table.limit + 100 {
		got, ok := m.table.load(i)
		want, wantOK := at[i]
		if ok != wantOK || got != want {
			t.Fatalf("index %d holds %x %v, want %x %v", i, got, ok, want, wantOK)
		}
	}
}

// What is kept on the side stays in proportion to what is in the table.
func TestTableDoesNotGrowByChange(t *testing.T) {
	m := newModel()
	n := pack(testName(1))
	m.insert(n)
	for range 100_000 {
		m.remove(m.insert(n))
		m.remove(m.insert(pack(testName(2))))
	}
	if len(m.table.free) > 10 || len(m.index.hash.Load().slots) > 64 {
		t.Fatalf("%d free indexes kept, %d slots", len(m.table.free), len(m.index.hash.Load().slots))
	}
	if h := m.index.twins[n]; h != nil && len(*h) > 100 {
		t.Fatalf("%d twins kept", len(*h))
	}
	if m.table.limit != 2 {
		t.Fatalf("limit %d", m.table.limit)
	}
}

// A hundred thousand copies of one name are not quadratic.
func TestManyTwins(t *testing.T) {
	m := newModel()
	n := pack(testName(1))
	const count = 100_000
	for range count {
		m.insert(n)
	}
	for i := range uint64(count) {
		if got, ok := m.index.find(n); !ok || got != i {
			t.Fatalf("found %d %v, want %d", got, ok, i)
		}
		m.remove(i)
	}
	if _, ok := m.index.find(n); ok {
		t.Fatal("found after the last was removed")
	}
}

// Readers never miss a name that is always there, never find one that never
// was, and never see a mixture, while a writer changes the rest. The name
// "always" stands at two indexes in turn, so its slot moves.
func TestTableConcurrent(t *testing.T) {
	m := newModel()
	always, never := pack(testName(0)), pack(testName(1<<20))
	m.insert(always)
	valid := map[packed]bool{always: true}
	var others []packed
	for i := 1; i < 100; i++ {
		others = append(others, pack(testName(i)))
		valid[others[i-1]] = true
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				i, ok := m.index.find(always)
				if !ok {
					t.Error("a name that is always there is not found")
					return
				}
				if n, ok := m.table.load(i); ok && !valid[n] {
					t.Errorf("index %d holds a mixture: %x", i, n)
					return
				}
				if _, ok := m.index.find(never); ok {
					t.Error("a name that never was there is found")
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	steps := 200_000
	if testing.Short() {
		steps = 20_000
	}
	first := uint64(0)
	for range steps {
		switch rng.IntN(3) {
		case 0:
			second := m.insert(always)
			m.remove(first)
			first = second
		case 1:
			m.insert(others[rng.IntN(len(others))])
		case 2:
			if i := rng.Uint64N(m.table.limit); i != first {
				if _, set := m.table.load(i); set {
					m.remove(i)
				}
			}
		}
	}
	stop.Store(true)
	wg.Wait()
}
