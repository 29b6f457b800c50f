package match

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
)

// TestGroupMatch compares the comparison of all slots at once with that of each.
func TestGroupMatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200000 {
		var g group
		g.tags = uint64(rng.Uint32N(3)) << 56
		for i := range groupSlots {
			if rng.IntN(2) == 0 {
				g.tags |= tagOf(uint64(rng.Uint32N(6))<<56) << (8 * i)
			}
		}
		hash := uint64(rng.Uint32N(6)) << 56
		m, vacant := g.match(hash), 8
		for i := range groupSlots {
			tag, hit := g.tags>>(8*i)&0xff, m>>(8*i+7)&1 != 0
			if tag == tagOf(hash) && !hit || tag == 0 && hit || tag^tagOf(hash) > 1 && hit {
				t.Fatalf("tags %#x, tag %#x: slot %d, match %v", g.tags, tagOf(hash), i, hit)
			}
			if tag == 0 && vacant == 8 {
				vacant = i
			}
		}
		if got := bits.TrailingZeros64(g.vacant()) / 8; got != vacant {
			t.Fatalf("tags %#x: slot %d is said to be the first vacant one, want %d", g.tags, got, vacant)
		}
	}
	for hash := range uint64(256) {
		if tag := tagOf(hash << 56); tag < 2 || tag > 255 {
			t.Errorf("tag of %#x is %d", hash, tag)
		}
	}
}

// TestFullTable fills a table that cannot grow to the last slot, and searches for what is not there.
func TestFullTable(t *testing.T) {
	e := newEngine(t)
	mustPost(t, e, 1, 0, 0)
	for e.nodes.Mapped() < 1<<17 { // nodes enough
		n, idx := e.nodes.Alloc()
		if n == nil {
			t.Fatal(e.nodes.Err())
		}
		n.idx = idx
	}
	restore := mem.InjectFaults(func(int) error { return unix.ENOMEM })
	defer restore()
	const slots = minGroups * groupSlots
	for tag := range uint64(slots - 1) {
		mustPost(t, e, 1, 1+tag, 0)
	}
	if r, m := e.Post(1, 1<<40, 0); r != nil || m != nil {
		t.Errorf("Post into a full table: %v, %v", r, m)
	}
	// Every group has been passed by now, or nearly; only the number of groups ends a search.
	for i := range e.classes[0].recvs.groups.Slice() {
		e.classes[0].recvs.groups.At(uint32(i)).tags |= 255 << 56
	}
	for tag := range uint64(100) {
		if r := e.Arrive(1, 1<<40+tag); r != nil {
			t.Fatalf("arrival matched %v", r)
		}
	}
	for tag := range uint64(slots) {
		if r := e.Arrive(1, tag); r == nil || r.Tag() != tag {
			t.Fatalf("tag %d: matched %v", tag, r)
		}
	}
}

// TestSpread checks that keys that differ little are spread well, whatever the secret: few are away from home.
func TestSpread(t *testing.T) {
	keys := map[string]func(i uint64) (uint32, uint64){
		"tags":       func(i uint64) (uint32, uint64) { return 1, i },
		"high tags":  func(i uint64) (uint32, uint64) { return 1, i << 48 },
		"sources":    func(i uint64) (uint32, uint64) { return uint32(i), 0 },
		"both":       func(i uint64) (uint32, uint64) { return uint32(i & 0xff), i >> 8 },
		"high, both": func(i uint64) (uint32, uint64) { return uint32(i) & 0xff << 24, i >> 8 << 52 },
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		secret := [2]uint64{rng.Uint64(), rng.Uint64()}
		for name, of := range keys {
			if away := away(t, secret, of); away > spreadKeys/40 { // a random hash leaves 1 in 80 away
				t.Errorf("%s, secret %#x: %d of %d keys are away from home", name, secret, away, spreadKeys)
			}
		}
	}
}

// spreadKeys is how many keys TestSpread puts into a table of 1024 groups, just short of doubling it.
const spreadKeys = 3584

// away returns how many keys of a series do not get into the group where their way starts.
func away(t *testing.T, secret [2]uint64, of func(i uint64) (uint32, uint64)) int {
	tab, err := newTable(spreadKeys)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.drop()
	s := store{secret: secret}
	n := 0
	for i := range uint64(spreadKeys) {
		source, tag := of(i)
		hash := s.hash(&key{0, ^uint32(0)}, source, tag)
		if tab.home(hash).vacant() == 0 {
			n++
		}
		tab.place(hash, slot{1, 1})
	}
	return n
}

// TestFits compares Fits with the rules that the model has.
func TestFits(t *testing.T) {
	sources := []uint32{AnySource, Group(0), Group(3), 0, 1, 3<<GroupShift | 1, 3<<GroupShift | 2}
	tags := []uint64{0, 1, 2, 1 << 63}
	for _, source := range sources {
		for _, from := range sources[3:] {
			for _, tag := range tags {
				for _, with := range tags {
					for _, ignore := range []uint64{0, 1, 3, 1 << 63, ^uint64(0)} {
						want := matches(source, tag, ignore, from, with)
						if got := Fits(source, tag, ignore, from, with); got != want {
							t.Errorf("%#x, %#x but %#x, from %#x with %#x: %v", source, tag, ignore, from, with, got)
						}
					}
				}
			}
		}
	}
}
