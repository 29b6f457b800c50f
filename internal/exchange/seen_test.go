package exchange

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// TestSeen: what is known of paths from elsewhere decides with whom an operation begins, as far as the policy has it
// so, and comes before what is left of the operation before. What is not known changes nothing.
func TestSeen(t *testing.T) {
	const peers, slice = 4, 1 << 20
	queues := [peers]time.Duration{3 * time.Millisecond, 2 * time.Millisecond, 0, time.Millisecond}
	asked := 0
	for policy, want := range map[Policy]int{Greedy: 2, Threshold: 2, Balanced: 2, Adaptive: 0} {
		cfg := DefaultConfig(peers)
		cfg.Policy, cfg.Most, cfg.Short = policy, 1, 1000
		cfg.Seen = func(peer int) (queue, dev time.Duration, ok bool) {
			asked++
			return queues[peer], 0, true
		}
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		all := []int64{slice, slice, slice, slice}
		e.Start(0, all, all)
		if a, _ := e.Next(0); a.Peer != want {
			t.Errorf("%v begins with peer %d, want %d", policy, a.Peer, want)
		}
		e.at(1).queue = 10 * time.Millisecond
		asked = 0
		e.Start(congestion.Time(time.Second), []int64{slice, slice, 0, 1000}, all)
		if e.at(1).queue != queues[1] || asked != 2 {
			t.Errorf("%d paths are asked for, the queue of one is %v", asked, e.at(1).queue)
		}
		e.cfg.Seen = func(int) (queue, dev time.Duration, ok bool) { return time.Hour, 0, false }
		e.Start(congestion.Time(2*time.Second), all, all)
		if e.at(1).queue != queues[1]/2 {
			t.Errorf("a queue of %v, which nothing has shown", e.at(1).queue)
		}
	}
}
