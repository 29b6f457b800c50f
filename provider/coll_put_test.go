package provider

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
)

// Lengths in bytes, as package coll has them: slices up to exchangeShort go at once, those from exchangeLong on by an
// engine in chunks of exchangeChunk, and from putHere on they are put between members of one host.
const (
	exchangeShort = 4 << 10
	exchangeLong  = 16 << 10
	exchangeChunk = 64 << 10
	putHere       = 1 << 20
	putPiece      = 256 << 10 // of one put or get
)

// copyForm is a form in which chunks are copied by one side.
type copyForm struct {
	name    string // of FI_WEFT_ALLTOALL_ALGORITHM
	counter int    // of the bytes
}

var (
	byPuts = copyForm{"put", stats.RxExchangePut}
	byGets = copyForm{"get", stats.RxExchangeGot}
)

// circles make sides whose all-to-alls go in the form, on one host and between hosts.
func (f copyForm) circles() map[string]func(t *testing.T, n int, change func(*config.Config)) *circle {
	return map[string]func(t *testing.T, n int, change func(*config.Config)) *circle{
		"shared memory": func(t *testing.T, n int, change func(*config.Config)) *circle {
			return newCircle(t, newBench(t, func(c *config.Config) {
				if c.Sched, c.AllToAll = config.Yes, f.name; change != nil {
					change(c)
				}
			}, collHints()), n)
		},
		"UDP": func(t *testing.T, n int, change func(*config.Config)) *circle {
			return apartCircle(t, n, func(c *config.Config) {
				if c.AllToAll = f.name; change != nil {
					change(c)
				}
			})
		},
	}
}

// bytes is how many bytes a side has copied.
func (f copyForm) bytes(s *collSide) uint64 { return s.counted(f.counter) }

// counted is a side's counter of stats.Rx.
func (s *collSide) counted(counter int) uint64 {
	return atomic.LoadUint64((*uint64)(pointerAt(uint64(leasedOf(s.ep).ep.base.stats.RxLine() + 8*uintptr(counter)))))
}

// TestPut: slices arrive whole that are put, and those above 4 KiB are, but for what goes before the offer is there.
func TestPut(t *testing.T) { byPuts.testCopies(t) }

func (f copyForm) testCopies(t *testing.T) {
	for name, open := range f.circles() {
		for seed := range seedCount(t, 2) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 11))
				c := open(t, 5, nil)
				for _, size := range []int{2, 5} {
					members := r.Perm(5)[:size]
					c.vectors(r, members, c.joinAll(members))
				}
				groups, before := c.joinAll(everyRank(5)), f.bytes(c.sides[1])
				c.allToAll(r, groups, exchangeShort)
				if n := f.bytes(c.sides[1]); n != before {
					t.Errorf("%d bytes of slices of 4 KiB are put", n-before)
				}
				for _, slice := range []int{exchangeShort + 1, 300000, 3 << 20} {
					before := f.bytes(c.sides[1])
					c.allToAll(r, groups, slice)
					all, put := uint64(4*slice), f.bytes(c.sides[1])-before
					if slice > 4*exchangeChunk && put < all/2 || put > all {
						t.Errorf("slices of %d bytes: %d of %d are put", slice, put, all)
					}
				}
				for _, s := range c.sides {
					s.idle()
				}
			})
		}
	}
}

// TestPutAuto: without a variable long slices are put between members of one host, and nothing is over UDP.
func TestPutAuto(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 15))
	for name, open := range byPuts.circles() {
		c := open(t, 3, func(c *config.Config) { c.AllToAll = "auto" })
		groups := c.joinAll(everyRank(3))
		for _, slice := range []int{putHere - 1, putHere} {
			c.allToAll(r, groups, slice)
			if n := byPuts.bytes(c.sides[0]); (n != 0) != (slice == putHere && name != "UDP") {
				t.Errorf("%s: %d bytes of slices of %d are put", name, n, slice)
			}
		}
	}
}

// TestPutElse: where the kernel refuses puts chunks go as messages.
func TestPutElse(t *testing.T) { byPuts.testCopiesElse(t) }

func (f copyForm) testCopiesElse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	c := f.circles()["shared memory"](t, 3, func(c *config.Config) { c.UseCMA = config.No })
	c.allToAll(r, c.joinAll(everyRank(3)), 200000)
	if n := f.bytes(c.sides[0]); n != 0 {
		t.Errorf("%d bytes are put without cross-memory attach", n)
	}
}

// TestPutRelay: the ends of slices go through other members, the rest as puts.
func TestPutRelay(t *testing.T) { byPuts.testCopiesRelay(t) }

func (f copyForm) testCopiesRelay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	c, groups := relayCircle(t, 5, func(c *config.Config) { c.AllToAll = f.name })
	relayed := uint64(0)
	for range 3 {
		c.allToAll(r, groups, 600<<10+1)
		relayed += groups[0].Report().Relayed
		c.kept()
	}
	if relayed == 0 || f.bytes(c.sides[0]) == 0 {
		t.Errorf("%d bytes went through relays, %d as puts", relayed, f.bytes(c.sides[0]))
	}
}

// TestPutTruncated: members that do not agree on a count end with FI_ETRUNC, and the group goes on.
func TestPutTruncated(t *testing.T) { byPuts.testCopiesTruncated(t) }

func (f copyForm) testCopiesTruncated(t *testing.T) {
	c := f.circles()["UDP"](t, 3, nil)
	groups := c.joinAll(everyRank(3))
	for _, n := range []struct{ sent, expected uint64 }{
		{200000, 199999}, {200000, 100}, {100, 200000}, {0, 200000}, {200000, 0},
	} {
		in, out := make([]byte, 900000), make([]byte, 2700000)
		for i := range 3 {
			counts, others, displs := []uint64{9, 9, 9}, []uint64{9, 9, 9}, []uint64{0, 300000, 600000}
			if i == 0 {
				counts[1] = n.sent
			} else if i == 1 {
				others[0] = n.expected
			}
			if err := c.sides[i].ep.AllToAllV(&AllToAllVArgs{
				Buf: baseOf(in), Counts: counts, Displs: displs,
				Result: baseOf(out[i*900000:]), ResultCounts: others, ResultDispls: displs,
				Elem: 1, Group: groups[i].Addr(), Context: 5,
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := c.outcome(i); err != fi.ETRUNC && (i == 1 || err != fi.Success) {
				t.Errorf("%d bytes sent, %d expected: rank %d ends with %v", n.sent, n.expected, i, err)
			}
		}
		c.allToAll(rand.New(rand.NewPCG(1, 6)), groups, 50000)
	}
}

// TestPutMembersDie has a member leave while puts are under way, at many instants: the operations of the others end
// with fi.ECONNRESET, and no sooner than what they read and offered is out of reach. It is hidden then, so one that
// comes later ends the process.
func TestPutMembersDie(t *testing.T) { byPuts.testCopiesMembersDie(t) }

func (f copyForm) testCopiesMembersDie(t *testing.T) {
	const slice, n = 1 << 20, 3
	for name, open := range f.circles() {
		for steps := range 24 {
			t.Run(fmt.Sprintf("%s/%d", name, steps), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(steps), 14))
				c := open(t, n, nil)
				groups := c.joinAll(everyRank(n))
				bufs := make([][]byte, 2*n)
				for i := range bufs {
					b, err := mem.Map(n*slice, 0)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = mem.Unmap(b) })
					bufs[i] = b
				}
				for i := range n {
					if i != n-1 || steps%6 != 3 { // else it leaves before it begins
						c.postAllToAll(i, groups[i], bufs[2*i], bufs[2*i+1], slice)
					}
				}
				for range steps * steps {
					c.sides[r.IntN(n)].ep.Progress()
				}
				last := groups[n-1]
				if steps%2 == 0 {
					last = groups[0]
				}
				if err := last.Close(); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					if i == n-1 && steps%6 == 3 {
						continue
					}
					switch err := c.outcome(i); err {
					case fi.Success, fi.ECONNRESET, fi.ECANCELED:
					default:
						t.Errorf("rank %d ends with %v", i, err)
					}
					hide(t, bufs[2*i])
					hide(t, bufs[2*i+1])
				}
				for range 200 {
					c.progress()
				}
				for _, s := range c.sides {
					if leasedOf(s.ep).collective.Engine() != nil {
						t.Error("an operation is left")
					}
				}
			})
		}
	}
}
