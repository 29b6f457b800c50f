package coll

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// TestBehind: no more of a slice is posted while more waits in its stream than leaves soon, but for what is little.
func TestBehind(t *testing.T) {
	m := newMesh(t, onHosts(2), func(cfg *config.Config) { cfg.Sched = config.Yes })
	groups := m.join()
	slow := hw.PathInfo{RTT: 100 * time.Millisecond, Window: 32 << 10, Samples: 1, Waiting: 64 << 10}
	little, fast, none := slow, slow, slow
	little.Waiting, fast.RTT, none.Waiting = streamLeast-1, time.Millisecond, 0
	const slice = 256 << 10
	for name, c := range map[string]struct {
		info  hw.PathInfo
		holds bool
	}{"slow": {slow, true}, "little": {little, false}, "fast": {fast, false}, "none": {none, false}} {
		m.nodes[0].measured, m.nodes[1].measured = c.info, c.info
		in, out := m.fill(2*slice), make([]byte, 2*slice)
		in1, out1 := m.fill(2*slice), make([]byte, 2*slice)
		m.postAllToAll(0, groups[0], in, out, slice)
		m.postAllToAll(1, groups[1], in1, out1, slice)
		for range 100 {
			m.progress()
		}
		if here := bytes.Equal(out[slice:], in1[:slice]); here == c.holds {
			t.Errorf("%s: the slice has arrived: %v", name, here)
		}
		m.nodes[0].measured, m.nodes[1].measured = none, none
		for i := range 2 {
			if s := m.outcome(i); s != 0 {
				t.Errorf("%s: rank %d: %v", name, i, s)
			}
		}
	}
}
