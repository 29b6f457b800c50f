package congestion

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const us = time.Microsecond

// TestEstimatorFormula follows RFC 6298, section 2, by hand.
func TestEstimatorFormula(t *testing.T) {
	cfg := DefaultConfig(1500)
	e := NewEstimator(&cfg)
	if e.RTO() != time.Second {
		t.Errorf("RTO before a sample is %v", e.RTO())
	}
	if got := e.Add(0, 0, 1500); got != 0 || e.Samples() != 0 {
		t.Errorf("an RTT of 0 counts as a sample")
	}
	e.Add(0, 800*us, 0)
	if e.SRTT() != 800*us || e.RTTVAR() != 400*us {
		t.Errorf("first sample: SRTT %v, RTTVAR %v", e.SRTT(), e.RTTVAR())
	}
	e.Add(1000, 1600*us, 0)
	// RTTVAR = 3/4*400 + 1/4*|800-1600|, SRTT = 7/8*800 + 1/8*1600
	if e.SRTT() != 900*us || e.RTTVAR() != 500*us {
		t.Errorf("second sample: SRTT %v, RTTVAR %v", e.SRTT(), e.RTTVAR())
	}
	if e.Min() != 800*us || e.Max() != 1600*us || e.Last() != 1600*us || e.Base() != 800*us {
		t.Errorf("min %v, max %v, last %v, base %v", e.Min(), e.Max(), e.Last(), e.Base())
	}
	if want := max(cfg.MinRTO, 900*us+2000*us); e.RTO() != want {
		t.Errorf("RTO %v, want %v", e.RTO(), want)
	}
}

// TestEstimatorBackoff doubles the RTO up to its bound, until a sample.
func TestEstimatorBackoff(t *testing.T) {
	cfg := DefaultConfig(1500)
	e := NewEstimator(&cfg)
	e.Add(0, 10*time.Millisecond, 0)
	first := e.RTO()
	for i := range 100 {
		e.Backoff()
		if want := min(first<<min(i+1, 20), cfg.MaxRTO); e.RTO() != want {
			t.Fatalf("after %d timeouts RTO %v, want %v", i+1, e.RTO(), want)
		}
	}
	e.Add(0, 10*time.Millisecond, 0)
	if e.RTO() > first {
		t.Errorf("a sample does not end the backoff: %v", e.RTO())
	}
}

// TestEstimatorSize takes a segment's transmission time out: with it large
// segments look congested.
func TestEstimatorSize(t *testing.T) {
	cfg := DefaultConfig(1500)
	cfg.Rate = 1e9
	e := NewEstimator(&cfg)
	if got := e.Add(0, 20*us+1000*us, 1e6); got != 20*us {
		t.Errorf("1 MB over 1 GB/s in 1020 us is a path of %v", got)
	}
	if got := e.Add(0, 5*us, 1e6); got != 1 {
		t.Errorf("faster than the link gives %v", got)
	}
	e.SetRate(0)
	if got := e.Add(0, 20*us, 1e6); got != 20*us {
		t.Errorf("an unknown rate corrects to %v", got)
	}
}

// TestFilter compares with the exact minimum of the window.
func TestFilter(t *testing.T) {
	const window = 1000
	rnd := rand.New(rand.NewPCG(1, 2))
	var f filter
	type sample struct {
		at    Time
		value int64
	}
	var all []sample
	now := Time(0)
	for range 20000 {
		now += Time(rnd.IntN(40))
		s := sample{now, rnd.Int64N(1000)}
		all = append(all, s)
		got := f.add(now, window, s.value)
		// exact over the window, and over three quarters of it
		whole, part := s.value, s.value
		for _, o := range slices.Backward(all) {
			if now.Sub(o.at) > window {
				break
			}
			whole = min(whole, o.value)
			if now.Sub(o.at) <= window/2 {
				part = min(part, o.value)
			}
		}
		if got < whole || got > part {
			t.Fatalf("at %d: %d, but the window has %d and its later half %d", now, got, whole, part)
		}
	}
}
