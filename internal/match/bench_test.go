package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A pattern is how the receives of a benchmark name their message.
type pattern struct {
	name   string
	source uint32 // 0: the message's
	ignore uint64
}

var patterns = []pattern{
	{"exact", 0, 0},
	{"anysource", AnySource, 0},
	{"masked", 0, 0xffff_0000_0000_0000},
}

const benchSource = 3

func (p pattern) from() uint32 {
	if p.source == AnySource {
		return AnySource
	}
	return benchSource
}

var depths = []int{10, 100_000}

// orders are the ways in which queued nodes are used up: first in first out, and in random order.
var orders = []struct {
	name   string
	random bool
}{{"fifo", false}, {"random", true}}

// victims returns which of depth queued tags each step replaces.
func victims(depth int, random bool) []uint32 {
	v := make([]uint32, max(depth, 1<<16))
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = uint32(i % depth)
		if random {
			v[i] = rng.Uint32N(uint32(depth))
		}
	}
	return v
}

func newEngine(t testing.TB) *Engine {
	t.Helper()
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// blockSize is how many operations are timed together: long enough for the clock, and short enough that most blocks
// are not interrupted on a busy machine.
const blockSize = 512

// blocks calls run(blockSize) until b.N operations are done and reports, besides the mean, the median and the least
// time per operation of a block.
func blocks(b *testing.B, run func(n int)) {
	times := make([]float64, 0, b.N/blockSize+1)
	b.ResetTimer()
	for done := 0; done < b.N; done += blockSize {
		start := time.Now()
		run(blockSize)
		times = append(times, float64(time.Since(start).Nanoseconds())/blockSize)
	}
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-ns/op")
	b.ReportMetric(times[0], "min-ns/op")
}

// BenchmarkPair is the common case: a receive is posted, its message arrives, the receive is released.
func BenchmarkPair(b *testing.B) {
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			e := newEngine(b)
			var tag uint64
			blocks(b, func(n int) {
				for range n {
					r, _ := e.Post(p.from(), tag, p.ignore)
					r.Buf, r.Len = 1, 2
					r = e.Arrive(benchSource, tag)
					e.Release(r)
					tag++
				}
			})
		})
	}
}

// BenchmarkPairUnexpected is the other order: the message is kept, then a receive takes it.
func BenchmarkPairUnexpected(b *testing.B) {
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			e := newEngine(b)
			r, _ := e.Post(p.from(), 1<<40, p.ignore)
			e.Remove(r)
			e.Release(r)
			var tag uint64
			blocks(b, func(n int) {
				for range n {
					if e.Arrive(benchSource, tag) != nil {
						b.Fatal("matched")
					}
					m := e.Hold(benchSource, tag)
					m.Len = 1
					_, m = e.Post(p.from(), tag, p.ignore)
					e.ReleaseMessage(m)
					tag++
				}
			})
		})
	}
}

// BenchmarkPosted keeps depth receives posted with different tags: a message matches one of them, and its receive is
// posted again.
func BenchmarkPosted(b *testing.B) {
	each(b, func(b *testing.B, p pattern, depth int, random bool) {
		e := newEngine(b)
		v := victims(depth, random)
		for tag := range uint64(depth) {
			e.Post(p.from(), tag, p.ignore)
		}
		i := 0
		blocks(b, func(n int) {
			for range n {
				tag := uint64(v[i])
				r := e.Arrive(benchSource, tag)
				r.Len++
				e.Release(r)
				r, _ = e.Post(p.from(), tag, p.ignore)
				r.Len = tag
				if i++; i == len(v) {
					i = 0
				}
			}
		})
	})
}

// BenchmarkUnexpected keeps depth messages with different tags kept: a receive takes one of them, and its message
// arrives again.
func BenchmarkUnexpected(b *testing.B) {
	each(b, func(b *testing.B, p pattern, depth int, random bool) {
		e := newEngine(b)
		v := victims(depth, random)
		for tag := range uint64(depth) {
			e.Hold(benchSource, tag)
		}
		i := 0
		blocks(b, func(n int) {
			for range n {
				tag := uint64(v[i])
				_, m := e.Post(p.from(), tag, p.ignore)
				m.Len++
				e.ReleaseMessage(m)
				if e.Arrive(benchSource, tag) != nil {
					b.Fatal("matched")
				}
				m = e.Hold(benchSource, tag)
				m.Len = tag
				if i++; i == len(v) {
					i = 0
				}
			}
		})
	})
}

// each runs a benchmark for every pattern, order and depth.
func each(b *testing.B, run func(b *testing.B, p pattern, depth int, random bool)) {
	for _, p := range patterns {
		for _, o := range orders {
			for _, depth := range depths {
				b.Run(fmt.Sprintf("%s/%s/%d", p.name, o.name, depth), func(b *testing.B) {
					run(b, p, depth, o.random)
				})
			}
		}
	}
}

// BenchmarkBurst posts depth receives and then lets their messages arrive in the same order; one operation is one
// receive and its message.
func BenchmarkBurst(b *testing.B) {
	for _, depth := range depths {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			e := newEngine(b)
			blocks(b, func(n int) {
				for done := 0; done < n; done += depth {
					for tag := range uint64(min(depth, n-done)) {
						e.Post(benchSource, tag, 0)
					}
					for tag := range uint64(min(depth, n-done)) {
						e.Release(e.Arrive(benchSource, tag))
					}
				}
			})
		})
	}
}

// BenchmarkSameTag keeps depth receives with one tag and source posted.
func BenchmarkSameTag(b *testing.B) {
	for _, depth := range depths {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			e := newEngine(b)
			for range depth {
				e.Post(benchSource, 1, 0)
			}
			blocks(b, func(n int) {
				for range n {
					e.Release(e.Arrive(benchSource, 1))
					e.Post(benchSource, 1, 0)
				}
			})
		})
	}
}

// BenchmarkMixed has receives posted in four classes; messages match each in turn.
func BenchmarkMixed(b *testing.B) {
	for _, depth := range depths {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			e := newEngine(b)
			post := func(tag uint64) {
				source, ignore := uint32(benchSource), uint64(0)
				if tag&1 != 0 {
					source = AnySource
				}
				if tag&2 != 0 {
					ignore = 1 << 60
				}
				e.Post(source, tag, ignore)
			}
			for tag := range uint64(depth) {
				post(tag)
			}
			tag := uint64(0)
			blocks(b, func(n int) {
				for range n {
					e.Release(e.Arrive(benchSource, tag))
					post(tag)
					if tag++; tag == uint64(depth) {
						tag = 0
					}
				}
			})
		})
	}
}
