package exchange

import (
	"testing"
	"time"
)

// TestPause: at a share of the link chunks go in bursts; words go in the pauses, and what the link carries does not
// seem less for these.
func TestPause(t *testing.T) {
	e, now := settle(t, 1, Balanced, 1<<40)
	e.cfg.Percent, e.pooled.rate = 25, e.rate
	sent, bursts, began, free := int64(0), 0, now, now // free: when the link is
	for bursts < 20 {
		for _, a := range drain(e, now) {
			sent += a.Head.Length
		}
		p := e.at(0)
		if p.flying == 0 {
			at, ok := e.Wake()
			if !ok || !e.pausing(now) {
				t.Fatalf("burst %d: nothing is on its way, and no pause ends at a time", bursts)
			}
			e.speak(0)
			if said := drain(e, now); len(said) != 1 || said[0].Kind != SendWord {
				t.Fatalf("burst %d: %v in a pause", bursts, said)
			}
			now = at
			e.Tick(now)
			bursts++
			continue
		}
		free = max(free, p.flight[0].at).Add(time.Duration(float64(p.flight[0].length) / 125e6 * second))
		now = free
		e.OnWord(now, 0, Word{Got: p.flight[0].end})
	}
	share := float64(sent) / 125e6 / now.Sub(began).Seconds()
	if share < 0.24 || share > 0.26 {
		t.Errorf("%.3f of the link is used, at most 25 %%", share)
	}
	if e.rate < 120e6 || e.rate > 130e6 {
		t.Errorf("the link of 125e6 seems to carry %v", e.rate)
	}
	if e.sparing(time.Second) != 4*time.Second {
		t.Error("the link's share is not what is left to it")
	}
}
