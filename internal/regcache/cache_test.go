package regcache

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
)

// fakeDomain registers without a device, at most room regions.
type fakeDomain struct {
	hw.MemoryDomain
	room, open, made int
}

type fakeMemory struct {
	hw.Memory
	d *fakeDomain
	r hw.Region
}

func (d *fakeDomain) Register(r hw.Region) (hw.Memory, error) {
	if d.open == d.room {
		return nil, hw.ErrNoResource
	}
	d.open++
	d.made++
	return &fakeMemory{d: d, r: r}, nil
}

func (m *fakeMemory) Region() hw.Region { return m.r }

func (m *fakeMemory) Close() error {
	m.d.open--
	return nil
}

// fakeWatch reports what the test puts into it.
type fakeWatch struct {
	list    []Range
	stays   bool // all memory does
	asked   int  // calls of Changes
	fixed   bool // all memory that Cover refuses is
	lost    bool
	refuse  bool
	covered map[uint64]bool // pages
	during  func()          // called by Cover
}

func (w *fakeWatch) Cover(start, end uint64) error {
	if w.refuse {
		return errors.New("refused")
	}
	for p := start; p < end; p += pageSize {
		w.covered[p] = true
	}
	if w.during != nil {
		w.during()
	}
	return nil
}

func (w *fakeWatch) Uncover(start, end uint64) {
	for p := start; p < end; p += pageSize {
		delete(w.covered, p)
	}
}

func (w *fakeWatch) Quiet(seen uint64) bool { return seen == uint64(len(w.list)) && !w.lost }

func (w *fakeWatch) Stays(uint64, uint64) bool { return w.stays }

func (w *fakeWatch) Fixed(uint64, uint64) bool { return w.fixed }

func (w *fakeWatch) Changes(seen *uint64, to []Range) ([]Range, bool) {
	w.asked++
	to = append(to, w.list[*seen:]...)
	*seen = uint64(len(w.list))
	known := !w.lost
	w.lost = false
	return to, known
}

func setUp(c Config) (*Cache, *fakeDomain, *fakeWatch) {
	d, w := &fakeDomain{room: 1 << 30}, &fakeWatch{covered: map[uint64]bool{}}
	c.Watch = w
	if c.Private == nil {
		c.Private = func(Range) bool { return true }
	}
	return New(d, c), d, w
}

func at(page uint64) unsafe.Pointer { return mem.Pointer(page * pageSize) }

func get(t *testing.T, c *Cache, addr unsafe.Pointer, n int, access hw.Access) *Entry {
	t.Helper()
	e, err := c.Get(addr, n, access)
	if err != nil {
		t.Fatal(err)
	}
	r := e.Memory().Region()
	if r.Access&access != access || uintptr(r.Addr) > uintptr(addr) ||
		uintptr(r.Addr)+uintptr(r.Len) < uintptr(addr)+uintptr(n) ||
		r.Base != uint64(uintptr(r.Addr)) {
		t.Fatalf("region %+v for %d bytes at %p", r, n, addr)
	}
	return e
}

func TestKept(t *testing.T) {
	c, d, _ := setUp(Config{})
	e := get(t, c, at(10), 100, hw.RemoteRead)
	c.Put(e)
	if again := get(t, c, mem.Pointer(10*pageSize+50), 1000, hw.RemoteRead); again != e {
		t.Error("the registration is not found again")
	}
	wider := get(t, c, at(10), 100, hw.RemoteRead|hw.LocalWrite)
	if wider == e {
		t.Error("a registration without the right to write is found for one that writes")
	}
	c.Put(e)
	c.Put(wider)
	longer := get(t, c, at(9), int(3*pageSize), hw.RemoteRead)
	c.Put(longer)
	if s := c.Stats(); s.Hits != 1 || s.Misses != 3 || d.made != 3 {
		t.Errorf("%+v, %d registrations", s, d.made)
	}
	c.Close()
	if d.open != 0 {
		t.Errorf("%d registrations are left", d.open)
	}
}

func TestChanged(t *testing.T) {
	c, d, w := setUp(Config{})
	idle, busy, other := get(t, c, at(10), 1, hw.RemoteRead), get(t, c, at(11), 1, hw.RemoteRead),
		get(t, c, at(12), 1, hw.RemoteRead)
	c.Put(idle)
	c.Put(other)
	w.list = append(w.list, Range{10*pageSize + 1, 12 * pageSize})
	if e := get(t, c, at(11), 1, hw.RemoteRead); e == busy {
		t.Error("a registration of memory that has changed is found")
	}
	if d.open != 3 { // busy, its successor, other
		t.Errorf("%d registrations", d.open)
	}
	c.Put(busy)
	if d.open != 2 {
		t.Error("a registration that was in use when its memory changed is not closed by its last Put")
	}
	if get(t, c, at(12), 1, hw.RemoteRead) != other {
		t.Error("the neighbour was dropped")
	}
	w.lost = true
	if get(t, c, at(12), 1, hw.RemoteRead) == other {
		t.Error("a registration is found when everything may have changed")
	}
}

// TestQuiet: a registration is found without a question to the kernel if its addresses stay with their owner and
// nothing has changed, and only then.
func TestQuiet(t *testing.T) {
	for _, stays := range []bool{false, true} {
		c, _, w := setUp(Config{})
		w.stays = stays
		e := get(t, c, at(10), 1, hw.RemoteRead)
		c.Put(e)
		w.asked = 0
		for range 10 {
			c.Put(get(t, c, at(10), 1, hw.RemoteRead))
		}
		if (w.asked == 0) != stays {
			t.Errorf("addresses stay: %v; %d questions", stays, w.asked)
		}
		n := testing.AllocsPerRun(10, func() {
			if e, err := c.Get(at(10), 1, hw.RemoteRead); err == nil {
				c.Put(e)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations for what is found", n)
		}
		w.list = append(w.list, Range{20 * pageSize, 21 * pageSize})
		if w.asked = 0; get(t, c, at(10), 1, hw.RemoteRead) != e || w.asked != 1 {
			t.Errorf("another change: %d questions", w.asked)
		}
		w.list = append(w.list, Range{10 * pageSize, 11 * pageSize})
		if get(t, c, at(10), 1, hw.RemoteRead) == e {
			t.Error("a registration of memory that has changed is found")
		}
	}
}

// TestFixed: what cannot be watched is kept if it stays where it is anyway, and its pages are private.
func TestFixed(t *testing.T) {
	for _, private := range []bool{false, true} {
		c, d, w := setUp(Config{Private: func(Range) bool { return private }})
		w.refuse, w.fixed, w.stays = true, true, true
		for range 3 {
			c.Put(get(t, c, at(10), 1, hw.RemoteRead))
		}
		if want := map[bool]int{false: 3, true: 1}[private]; d.made != want {
			t.Errorf("private: %v; %d registrations", private, d.made)
		}
		if c.Close(); d.open != 0 {
			t.Errorf("%d registrations are left", d.open)
		}
	}
}

// TestFind compares what is found among many overlapping registrations with a search of all.
func TestFind(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c, _, _ := setUp(Config{})
	for range 3000 {
		start := rng.Uint64N(200) * pageSize
		want := Range{start, start + pageSize*(1+rng.Uint64N(1+rng.Uint64N(30)))}
		access := hw.Access(rng.IntN(2)) * hw.LocalWrite
		fits := func(e *Entry) bool { return e.at.has(want) && e.access&access == access }
		there := slices.ContainsFunc(c.kept, fits)
		e := c.find(want, access)
		if (e != nil) != there || e != nil && (!fits(e) || !e.kept) {
			t.Fatalf("%+v for %+v with %#x, which is there: %v", e, want, access, there)
		}
		switch {
		case rng.IntN(3) == 0:
			c.Put(get(t, c, mem.Pointer(want.Start), int(want.End-want.Start), access))
		case rng.IntN(5) == 0 && len(c.kept) > 0:
			c.evict(c.kept[rng.IntN(len(c.kept))])
		}
	}
}

// TestChangedMeanwhile: memory that changes while it is registered is
// registered for one use.
func TestChangedMeanwhile(t *testing.T) {
	c, d, w := setUp(Config{})
	w.during = func() { w.list = append(w.list, Range{0, 100 * pageSize}) }
	e := get(t, c, at(10), 1, hw.RemoteRead)
	w.during = nil
	if len(w.covered) != 0 {
		t.Error("it is still watched")
	}
	c.Put(e)
	if d.open != 0 || c.Stats().Passing != 1 {
		t.Errorf("%d registrations, %+v", d.open, c.Stats())
	}
}

func TestNotKept(t *testing.T) {
	for name, set := range map[string]func(*Cache, *fakeWatch){
		"no watch": func(c *Cache, _ *fakeWatch) { c.cfg.Watch = nil },
		"refused":  func(_ *Cache, w *fakeWatch) { w.refuse = true },
		"shared":   func(c *Cache, _ *fakeWatch) { c.cfg.Private = func(Range) bool { return false } },
	} {
		c, d, w := setUp(Config{})
		set(c, w)
		for range 2 {
			c.Put(get(t, c, at(10), 1, hw.RemoteRead))
		}
		if d.made != 2 || d.open != 0 || c.Stats().Passing != 2 || len(w.covered) != 0 {
			t.Errorf("%s: %d made, %d open, %+v", name, d.made, d.open, c.Stats())
		}
	}
}

func TestLimits(t *testing.T) {
	c, d, w := setUp(Config{MaxEntries: 3, MaxBytes: 4 * pageSize})
	first := get(t, c, at(0), 1, hw.RemoteRead)
	c.Put(first)
	for n := range uint64(3) {
		c.Put(get(t, c, at(10+n), 1, hw.RemoteRead))
	}
	if d.open != 3 || w.covered[0] {
		t.Errorf("%d kept of at most 3", d.open)
	}
	c.Put(get(t, c, at(20), int(3*pageSize), hw.RemoteRead))
	if d.open != 2 || c.bytes != 4*pageSize {
		t.Errorf("%d kept, %d bytes", d.open, c.bytes)
	}
	d.room = 2
	e := get(t, c, at(30), 1, hw.RemoteRead) // makes room
	if d.made != 6 || d.open > 2 {
		t.Errorf("%d made, %d open", d.made, d.open)
	}
	f := get(t, c, at(31), 1, hw.RemoteRead)
	if _, err := c.Get(at(32), 1, hw.RemoteRead); !errors.Is(err, hw.ErrNoResource) {
		t.Errorf("without room: %v", err)
	}
	c.Put(e)
	c.Put(f)
	if _, err := c.Get(at(1), 0, 0); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("no bytes: %v", err)
	}
}

// TestWatchedWhileMade: what makes room for a registration, or has changed meanwhile, leaves all of its pages watched.
func TestWatchedWhileMade(t *testing.T) {
	c, d, w := setUp(Config{})
	d.room = 1
	c.Put(get(t, c, at(10), int(2*pageSize), hw.RemoteRead))
	e := get(t, c, at(11), int(2*pageSize), hw.RemoteRead)
	if d.made != 2 || w.covered[10*pageSize] || !w.covered[11*pageSize] || !w.covered[12*pageSize] {
		t.Errorf("%d made, watched: %v", d.made, w.covered)
	}
	c.Put(e)
}

// TestModel compares a cache with a list of what it may know, and what is
// watched with what it keeps.
func TestModel(t *testing.T) {
	for _, stays := range []bool{false, true} {
		testModel(t, stays)
	}
}

func testModel(t *testing.T, stays bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	c, d, w := setUp(Config{MaxEntries: 8, MaxBytes: 20 * pageSize})
	w.stays = stays
	born := map[*Entry]int{} // change count at its making
	var kept []*Entry
	for range 3000 {
		switch rng.IntN(5) {
		case 0, 1:
			n := 1 + rng.IntN(4*int(pageSize))
			access := hw.RemoteRead
			if rng.IntN(3) == 0 {
				access |= hw.LocalWrite
			}
			e := get(t, c, mem.Pointer(rng.Uint64N(20*pageSize)), n, access)
			made, known := born[e]
			if !known {
				made = len(w.list)
				born[e] = made
			}
			if slices.ContainsFunc(w.list[made:], e.at.overlaps) {
				t.Fatal("memory has changed since it was registered")
			}
			kept = append(kept, e)
		case 2, 3:
			if len(kept) > 0 {
				k := rng.IntN(len(kept))
				c.Put(kept[k])
				kept = slices.Delete(kept, k, k+1)
			}
		case 4:
			if rng.IntN(10) == 0 {
				start := rng.Uint64N(20) * pageSize
				w.list = append(w.list, Range{start, start + pageSize*(1+rng.Uint64N(3))})
			}
		}
		pages := map[uint64]bool{}
		for _, e := range c.kept {
			for p := e.at.Start; p < e.at.End; p += pageSize {
				pages[p] = true
			}
		}
		for p := range pages {
			if !w.covered[p] {
				t.Fatalf("page %#x is kept and not watched", p)
			}
		}
		if len(pages) != len(w.covered) {
			t.Fatalf("%d pages kept, %d watched", len(pages), len(w.covered))
		}
	}
	for _, e := range kept {
		c.Put(e)
	}
	c.Close()
	if d.open != 0 || len(w.covered) != 0 || c.bytes != 0 {
		t.Errorf("%d open, %d watched, %d bytes", d.open, len(w.covered), c.bytes)
	}
}
