package coll

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
)

// TestDelayed: no more of a slice is posted while more waits in its stream than leaves soon, but for what is little.
// In the end all of it goes, whatever waits.
func TestDelayed(t *testing.T) {
	m := newMesh(t, onHosts(2), func(cfg *config.Config) { cfg.Sched = config.Yes })
	groups := m.join()
	slow := hw.PathInfo{RTT: 100 * time.Millisecond, Window: 32 << 10, Samples: 1}
	fast := slow
	fast.RTT = time.Millisecond
	const slice, much = 256 << 10, 64 << 10
	for name, c := range map[string]struct {
		info    hw.PathInfo
		waiting int64
		busy    bool // another thread is at the stream
		delays  bool
	}{
		"slow": {slow, much, false, true}, "little": {slow, streamLeast - 1, false, false},
		"fast": {fast, much, false, false}, "none": {slow, 0, false, false}, "not known": {slow, much, true, false},
	} {
		for _, n := range m.nodes[:2] {
			n.measured, n.unsent, n.streamBusy = c.info, c.waiting, c.busy
		}
		in, out := m.fill(2*slice), make([]byte, 2*slice)
		in1, out1 := m.fill(2*slice), make([]byte, 2*slice)
		m.postAllToAll(0, groups[0], in, out, slice)
		m.postAllToAll(1, groups[1], in1, out1, slice)
		for range 100 {
			m.progress()
		}
		if here := bytes.Equal(out[slice:], in1[:slice]); here == c.delays {
			t.Errorf("%s: the slice has arrived: %v", name, here)
		}
		for n := 0; n < 1000 && !bytes.Equal(out[slice:], in1[:slice]); n++ {
			for _, node := range m.nodes {
				node.now = node.now.Add(streamLongest)
			}
			m.progress()
		}
		if !bytes.Equal(out[slice:], in1[:slice]) {
			t.Errorf("%s: the slice has not arrived in the end", name)
		}
		for i := range 2 {
			m.nodes[i].unsent = 0
			if s := m.outcome(i); s != 0 {
				t.Errorf("%s: rank %d: %v", name, i, s)
			}
		}
	}
}

// TestDelayedSeldomPumped: where the application polls rarely, as much may wait as leaves until it has polled twice.
func TestDelayedSeldomPumped(t *testing.T) {
	var s streams
	now := congestion.Time(time.Second)
	for range 10 {
		now = now.Add(200 * time.Millisecond)
		s.pump(now)
	}
	if s.gap != 200*time.Millisecond {
		t.Errorf("pumped each %v, want 200 ms", s.gap)
	}
	for range 100 {
		now = now.Add(time.Microsecond)
		s.pump(now)
	}
	if s.gap > time.Millisecond {
		t.Errorf("pumped each %v, want less than 1 ms", s.gap)
	}
}

// TestDelayedPause: the time between two operations is none between two pumps, though nothing is pumped then.
func TestDelayedPause(t *testing.T) {
	m := newMesh(t, onHosts(2), func(cfg *config.Config) { cfg.Sched = config.Yes })
	groups := m.join()
	const slice = 64 << 10
	for i, g := range groups {
		m.postAllToAll(i, g, m.fill(2*slice), make([]byte, 2*slice), slice)
	}
	for i := range groups {
		if s := m.outcome(i); s != 0 {
			t.Fatalf("rank %d: %v", i, s)
		}
		if at := m.nodes[i].protocol.ordered.streams.pumped; at != 0 {
			t.Errorf("rank %d: nothing is under way, and it was pumped at %d", i, at)
		}
	}
}
