package provider

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// BenchmarkCollectives has four members of one thread sum numbers, and exchange slices by a plan and by an engine, over
// shared memory and UDP: what an operation costs all of them, and what it allocates.
func BenchmarkCollectives(b *testing.B) {
	const n = 4
	for _, over := range []struct {
		name string
		open func(change func(*config.Config)) *circle
	}{
		{"memory", func(change func(*config.Config)) *circle {
			return newCircle(b, newBench(b, change, collHints()), n)
		}},
		{"udp", func(change func(*config.Config)) *circle { return apartCircle(b, n, change) }},
	} {
		for _, form := range []struct {
			algorithm string
			slice     int // 0: a sum
		}{{"auto", 0}, {"pairwise", 1000}, {"pairwise", 64 << 10}, {"message", 256 << 10}, {"put", 256 << 10}} {
			b.Run(fmt.Sprintf("%s/%s/%d", over.name, form.algorithm, form.slice), func(b *testing.B) {
				c := over.open(func(c *config.Config) {
					if c.AllToAll = form.algorithm; form.algorithm != "auto" && form.algorithm != "pairwise" {
						c.Sched = config.Yes
					}
				})
				groups := c.joinAll(everyRank(n))
				in, out := make([]byte, n*max(form.slice, 64)), make([][]byte, n)
				for i := range n {
					out[i] = make([]byte, len(in))
				}
				b.ReportAllocs()
				for b.Loop() {
					for i, s := range c.sides {
						if form.slice != 0 {
							c.postAllToAll(i, groups[i], in, out[i], form.slice)
						} else if err := s.sum(groups[i], in, out[i], 8); err != nil {
							b.Fatal(err)
						}
					}
					for i := range n {
						if err := c.outcome(i); err != fi.Success {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
