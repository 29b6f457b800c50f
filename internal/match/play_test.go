package match

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/race"
)

// masks returns n different ignore masks that the tags of a player distinguish.
func masks(n int) []uint64 {
	all := make([]uint64, 0, n)
	for i := range uint64(n) {
		all = append(all, i&1|i>>1&1<<1|i>>2&1<<30|i>>3&1<<31|i>>4<<60)
	}
	return all
}

// oneThread leaves a model of one thread out where the race detector, which has nothing to find in it, makes it slow.
func oneThread(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("one thread: nothing for the race detector")
	}
}

// TestModel plays random operations, with few and many sources, tags and masks.
func TestModel(t *testing.T) {
	oneThread(t)
	seeds := 2000
	if testing.Short() {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e, err := New()
		if err != nil {
			t.Fatal(err)
		}
		p := &player{
			t: t, e: e, next: rng.IntN,
			sources: 1 + rng.IntN(4), tags: 1 << rng.IntN(8), masks: masks(1 + rng.IntN(20)),
		}
		e.posted.head = -rng.Uint32N(200) // soon wraps
		e.unexpected.head = 1<<31 - rng.Uint32N(200)
		e.posted.tail, e.unexpected.tail = e.posted.head, e.unexpected.head
		for range 100 + rng.IntN(500) {
			p.step()
		}
		p.complete()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestModelDeep plays with queues long enough for tables and orders to grow, be compacted and shrink.
func TestModelDeep(t *testing.T) {
	oneThread(t)
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &player{
			t: t, e: newEngine(t), next: rng.IntN,
			sources: 3, tags: 1 << (4 + 3*seed), masks: masks(1 + int(seed)*5),
		}
		for range 3 {
			for range 3000 {
				p.post()
				if rng.IntN(8) == 0 {
					p.step()
				}
			}
			p.compare()
			for range 6000 {
				p.arrive()
				if rng.IntN(8) == 0 {
					p.step()
				}
			}
			p.compare()
			for range 6000 {
				p.post()
				p.release()
			}
			for range 2000 {
				p.step()
			}
		}
		p.complete()
	}
}

// TestModelCollisions plays with a secret that gives half of the keys one hash, so that they are far from home and
// the counts of keys that passed overflow.
func TestModelCollisions(t *testing.T) {
	oneThread(t)
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 5))
		e := newEngine(t)
		e.nodes.secret = [2]uint64{rng.Uint64(), 1} // the product is 0 for source 1
		p := &player{t: t, e: e, next: rng.IntN, sources: 2, tags: 1 << 10, masks: masks(1)}
		for range 5 {
			for range 1500 {
				p.post()
			}
			for range 1500 {
				p.step()
			}
			for range 3000 {
				p.arrive()
			}
		}
		p.complete()
	}
}

// TestModelScarce plays while most attempts to get memory fail.
func TestModelScarce(t *testing.T) {
	oneThread(t)
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := &player{
			t: t, e: newEngine(t), next: rng.IntN, scarce: true,
			sources: 3, tags: 1 << (4 + seed%11), masks: masks(1 + int(seed%13)),
		}
		restore := mem.InjectFaults(func(int) error {
			if rng.IntN(8) != 0 {
				return unix.ENOMEM
			}
			return nil
		})
		for range 1500 {
			p.post()
		}
		p.compare()
		for range 2500 {
			p.arrive()
			p.step()
		}
		p.complete()
		restore()
	}
}

// FuzzModel plays operations chosen by the fuzzer.
func FuzzModel(f *testing.F) {
	f.Add([]byte{})
	rng := rand.New(rand.NewPCG(3, 3))
	for range 10 {
		b := make([]byte, 2000)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := New()
		if err != nil {
			t.Fatal(err)
		}
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0]) % n
			data = data[1:]
			return v
		}
		p := &player{t: t, e: e, next: next}
		p.sources, p.tags, p.masks = 1+next(4), 1+next(64), masks(1+next(20))
		for steps := 0; len(data) > 0 && steps < 5000; steps++ {
			p.step()
		}
		p.complete()
	})
}
