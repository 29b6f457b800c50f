package provider

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/nettest"
	"github.com/weft-fabric/weft/provider/names"
)

// hosts are two hosts, joined by a cable, with as many sides each: those of the first come first.
type hosts struct {
	*circle
	hosts  [2]*nettest.Host
	each   int
	groups []*Group
}

// newHosts makes so many sides on each of two hosts, and a group of them all. Sides of a host share memory, and those
// of two hosts reach each other by UDP.
func newHosts(t *testing.T, each int, change func(*config.Config)) *hosts {
	t.Helper()
	h := &hosts{circle: &circle{t: t}, each: each}
	h.hosts[0], h.hosts[1] = nettest.New(t)
	for _, host := range h.hosts {
		var infos []*fi.Info
		var err error
		host.Do(func() {
			infos, err = GetInfo(fi.Version(1, 20), host.IPv4.String(), "0", fi.Source, collHints())
		})
		if err != nil {
			t.Fatal(err)
		}
		b := openBench(t, infos[0], func(c *config.Config) {
			c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No
			if change != nil {
				change(c)
			}
		})
		b.domain.local.Use(func() ([]names.Interface, error) {
			return []names.Interface{{Name: host.Iface, Index: host.Index, Up: true,
				Prefixes: []netip.Prefix{netip.PrefixFrom(host.IPv4, 24)}}}, nil
		})
		for range each {
			h.add(b, func(s *collSide) (err error) {
				host.Do(func() { err = s.open() })
				return err
			})
		}
	}
	h.meet()
	h.groups = h.joinAll(everyRank(2 * each))
	return h
}

// lost is how many packets between the hosts were found lost.
func (h *hosts) lost() (n uint64) {
	h.t.Helper()
	for _, from := range h.sides[:h.each] {
		for _, to := range h.sides[h.each:] {
			for _, way := range [2][2]*collSide{{from, to}, {to, from}} {
				p, err := way[0].ep.Path(way[0].addr[&way[1].side])
				if err != nil && !errors.Is(err, fi.ENODATA) {
					h.t.Fatal(err)
				}
				n += p.Lost
			}
		}
	}
	return n
}

// slicesWork is an all-to-all of equal slices under way.
type slicesWork struct {
	h       *hosts
	slice   int
	in, out [][]byte
	ended   []bool
}

// newSlices makes one, which begins at no side.
func (h *hosts) newSlices(r *rand.Rand, slice int) *slicesWork {
	n := len(h.sides)
	w := &slicesWork{h: h, slice: slice, ended: make([]bool, n)}
	for range n {
		w.in, w.out = append(w.in, randomBytes(r, n*slice)), append(w.out, make([]byte, n*slice))
	}
	return w
}

// post begins it at some ranks.
func (w *slicesWork) post(ranks ...int) {
	w.h.t.Helper()
	for _, i := range ranks {
		w.h.postAllToAll(i, w.h.groups[i], w.in[i], w.out[i], w.slice)
	}
}

// over reads completions, and reports whether all ranks have ended.
func (w *slicesWork) over() bool {
	w.h.t.Helper()
	over := true
	for i, s := range w.h.sides {
		var got [1]cq.Entry
		switch n, err := s.cq.Read(got[:]); {
		case errors.Is(err, fi.EAVAIL):
			e, _ := s.cq.ReadErr()
			w.h.t.Fatalf("rank %d ends with %v", i, e.Err)
		case n == 1:
			w.ended[i] = true
		}
		over = over && w.ended[i]
	}
	return over
}

// engine is a rank's, while the operation is under way there.
func (w *slicesWork) engine(rank int, see func(*exchange.Engine)) {
	leased := leasedOf(w.h.sides[rank].ep)
	leased.rx.base.acquire()
	defer leased.rx.give()
	if e := leased.collective.Engine(); e != nil {
		see(e)
	}
}

// received is the bytes that a rank has received, as many as it expects if it has ended.
func (w *slicesWork) received(rank int) int64 {
	n := int64(w.slice * (len(w.in) - 1))
	w.engine(rank, func(e *exchange.Engine) { n = e.Report().Received })
	return n
}

// check compares what the ranks have of each other, but for those that have not begun.
func (w *slicesWork) check(missing int) {
	w.h.t.Helper()
	for i := range w.in {
		for j := range w.in {
			if i != missing && j != missing && i != j &&
				!bytes.Equal(w.out[i][j*w.slice:][:w.slice], w.in[j][i*w.slice:][:w.slice]) {
				w.h.t.Fatalf("rank %d has the wrong data of rank %d", i, j)
			}
		}
	}
}

// form is a way in which chunks go between hosts, and the policy that orders them.
type form struct{ chunks, policy string }

// forms are all ways under the default policy, and messages under the others.
var forms = []form{
	{"message", "adaptive"}, {"put", "adaptive"}, {"get", "adaptive"},
	{"message", "greedy"}, {"message", "threshold"}, {"message", "balanced"},
}

func (f form) String() string { return f.chunks + "/" + f.policy }

// set has a configuration take a form.
func (f form) set(c *config.Config) { c.AllToAll, c.SchedPolicy = f.chunks, f.policy }

// TestExchangeBadCable: all-to-alls are whole over a cable that loses packets and has them overtake each other.
func TestExchangeBadCable(t *testing.T) {
	for _, loss := range []float64{0.01, 0.1} {
		for _, form := range forms {
			t.Run(fmt.Sprintf("%v/%v", form, loss), func(t *testing.T) {
				h := newHosts(t, 2, form.set)
				for _, host := range h.hosts {
					host.Impair(nettest.Impairment{Loss: loss, Delay: 0.05, Detour: 20000})
				}
				before := h.lost()
				r := rand.New(rand.NewPCG(1, 31))
				rounds := 0
				for ; rounds < 3 || h.lost() == before; rounds++ {
					if rounds == 100 {
						t.Fatal("nothing is lost")
					}
					w := h.newSlices(r, 100_000+rounds)
					w.post(everyRank(4)...)
					h.until("the operation's end", w.over)
					w.check(-1)
				}
				t.Logf("%d operations, %d packets lost", rounds, h.lost()-before)
			})
		}
	}
}

// TestExchangeLate: a member that comes late delays its own pairs only: those of the others are done before it comes.
func TestExchangeLate(t *testing.T) {
	const late = 3
	for i, form := range forms {
		t.Run(form.String(), func(t *testing.T) {
			h := newHosts(t, 2, form.set)
			w := h.newSlices(rand.New(rand.NewPCG(1, 32)), 500_000)
			began := time.Now()
			w.post(0, 1, 2)
			h.until("the others' pairs", func() bool {
				whole := 0
				for i := range late {
					w.engine(i, func(e *exchange.Engine) {
						for j := range late {
							if i != j && e.Whole((j-i-1+late+1)%(late+1)) {
								whole++
							}
						}
					})
				}
				return whole == late*(late-1)
			})
			w.check(late)
			pause := 3 * time.Second
			if i > 0 {
				pause /= 10 // the wait is the same in all forms, under all policies
			}
			for time.Since(began) < pause {
				h.progress()
				if w.over(); w.ended[0] || w.ended[1] || w.ended[2] {
					t.Fatal("an operation ends before all have begun")
				}
			}
			w.post(late)
			h.until("the operation's end", w.over)
			w.check(-1)
		})
	}
}

// TestExchangeUnplugged: an operation in which the cable is taken away and plugged in again goes on after it.
func TestExchangeUnplugged(t *testing.T) {
	const slice = 4 << 20
	for _, form := range forms {
		t.Run(form.String(), func(t *testing.T) {
			h := newHosts(t, 1, form.set)
			r := rand.New(rand.NewPCG(1, 33))
			for _, end := range h.hosts {
				w := h.newSlices(r, slice)
				w.post(0, 1)
				h.until("a quarter", func() bool { return w.received(0) >= slice/4 })
				end.Up(false)
				for pulled := time.Now(); time.Since(pulled) < 300*time.Millisecond; {
					if h.progress(); w.over() {
						t.Fatal("the operation ends without a cable")
					}
				}
				end.Up(true)
				h.until("the operation's end", w.over)
				w.check(-1)
			}
		})
	}
}

// TestExchangeAway: an operation in which hosts lose their processors for 100 ms goes on after it.
func TestExchangeAway(t *testing.T) {
	const slice, away = 2 << 20, 100 * time.Millisecond
	for _, form := range forms {
		t.Run(form.String(), func(t *testing.T) {
			h := newHosts(t, 2, form.set)
			w := h.newSlices(rand.New(rand.NewPCG(1, 34)), slice)
			w.post(everyRank(4)...)
			var until [2]time.Time // a host has no processor
			absences := 0
			for end := time.Now().Add(time.Minute); !w.over(); {
				now := time.Now()
				if now.After(end) {
					t.Fatal("not within a minute")
				}
				// Hosts take turns, as the first rank of the one has another eighth.
				host := absences % 2
				if w.received(host*h.each)*8 > int64(absences+1)*3*slice {
					until[host] = now.Add(away)
					absences++
				}
				for i, s := range h.sides {
					if !now.Before(until[i/h.each]) {
						s.ep.Progress()
					}
				}
			}
			if w.check(-1); absences < 6 {
				t.Errorf("hosts were away %d times only", absences)
			}
		})
	}
}

// TestExchangeBothWays: in a group of members on the same host and on another one, the slices of each pair go its way:
// over shared memory within a host, where they are put, and over the cable between hosts.
func TestExchangeBothWays(t *testing.T) {
	const slice, each = putHere, 3
	h := newHosts(t, each, nil)
	r := rand.New(rand.NewPCG(1, 35))
	for range 3 {
		var lo, come, gone [2]uint64
		for i, host := range h.hosts {
			lo[i], _ = host.Carried("lo")
			come[i], gone[i] = host.Carried(host.Iface)
		}
		var put [2 * each]uint64
		for i, s := range h.sides {
			put[i] = byPuts.bytes(s)
		}
		w := h.newSlices(r, slice)
		w.post(everyRank(2 * each)...)
		h.until("the operation's end", w.over)
		w.check(-1)
		for i, s := range h.sides {
			// The first chunks may go before the offers are there.
			if n := byPuts.bytes(s) - put[i]; n < slice/2*(each-1) || n > slice*(each-1) {
				t.Errorf("rank %d has put %d bytes, and has %d for its host's others", i, n, slice*(each-1))
			}
		}
		for i, host := range h.hosts {
			loNow, _ := host.Carried("lo")
			comeNow, goneNow := host.Carried(host.Iface)
			const between = slice * each * each
			for _, n := range []uint64{comeNow - come[i], goneNow - gone[i]} {
				if n < between || n > 2*between { // packets may be sent again
					t.Errorf("host %s: %d bytes over the cable, of %d for the other host", host.Name, n, between)
				}
			}
			if n := loNow - lo[i]; n > slice/10 {
				t.Errorf("host %s: %d bytes over its loopback interface", host.Name, n)
			}
		}
	}
}

// TestRowProbes: probes keep what is measured of a path new where nothing else goes.
func TestRowProbes(t *testing.T) {
	const fresh = 200 * time.Millisecond // what an operation begins with is no older
	h := newHosts(t, 1, func(c *config.Config) { c.Probe, c.ProbeInterval = true, 20*time.Millisecond })
	for end := time.Now().Add(3 * fresh); time.Now().Before(end); {
		h.progress()
	}
	h.until("a round trip", func() bool {
		p, err := h.sides[0].ep.Path(h.sides[0].addrs[1])
		return err == nil && p.Age < fresh
	})
}
