package congestion

import (
	"testing"
	"time"
)

// feed acknowledges one full window, a unit at a time, with one RTT.
func feed(c Controller, now Time, rtt, srtt, rttvar, base time.Duration, unit int64) Time {
	for left := c.Window() / unit; left > 0; left-- {
		sent := now
		now = now.Add(rtt)
		c.OnAck(now, &Sample{
			RTT: rtt, SRTT: srtt, RTTVAR: rttvar, Base: base, Sent: sent,
			Bytes: unit, Inflight: c.Window(),
		})
	}
	return now
}

// TestAIMD goes through slow start, a cut and the linear part.
func TestAIMD(t *testing.T) {
	const unit = 1000
	cfg := DefaultConfig(unit)
	cfg.Initial, cfg.Max, cfg.Target = 4, 128, 40*us
	c := NewAIMD(cfg)
	if c.Window() != 4*unit {
		t.Fatalf("initial window %d", c.Window())
	}
	now := feed(c, 0, 100*us, 100*us, 10*us, 100*us, unit)
	if c.Window() != 8*unit || c.Inspect().Phase != "slow start" {
		t.Fatalf("after a round of slow start %d, %+v", c.Window(), c.Inspect())
	}
	for range 10 {
		now = feed(c, now, 100*us, 100*us, 10*us, 100*us, unit)
	}
	if c.Window() != 128*unit {
		t.Fatalf("slow start passes the largest window: %d", c.Window())
	}
	// SRTT + 4*RTTVAR = 140 us: 140 is usual, 141 is not.
	c.OnAck(now, &Sample{RTT: 140 * us, SRTT: 100 * us, RTTVAR: 10 * us, Base: 100 * us, Sent: now, Bytes: unit,
		Inflight: 128 * unit})
	if c.Window() != 128*unit {
		t.Fatalf("an RTT of SRTT + 4*RTTVAR cuts to %d", c.Window())
	}
	bad := Sample{RTT: 141 * us, SRTT: 100 * us, RTTVAR: 10 * us, Base: 100 * us, Sent: now, Bytes: unit,
		Inflight: 128 * unit}
	c.OnAck(now, &bad)
	if c.Window() != 64*unit || c.Inspect().Threshold != 64*unit {
		t.Fatalf("after congestion %d, %+v", c.Window(), c.Inspect())
	}
	c.OnAck(now.Add(50*us), &bad)
	if c.Window() != 64*unit {
		t.Fatalf("a packet sent before the cut cuts again: %d", c.Window())
	}
	feed(c, now.Add(100*us), 100*us, 100*us, 10*us, 100*us, unit)
	if c.Window() != 65*unit {
		t.Fatalf("a round of avoidance adds %d bytes, not a unit", c.Window()-64*unit)
	}
}

// TestAIMDLastingQueue: when the average has followed the queue up, the base
// RTT still says.
func TestAIMDLastingQueue(t *testing.T) {
	cfg := DefaultConfig(1000)
	c := NewAIMD(cfg)
	s := Sample{RTT: 2 * time.Millisecond, SRTT: 2 * time.Millisecond, RTTVAR: us, Base: 100 * us, Sent: 1, Bytes: 1000,
		Inflight: 10000}
	c.OnAck(2, &s)
	if c.Window() != 5000 {
		t.Errorf("a standing queue of 20 base RTTs leaves the window at %d", c.Window())
	}
}

// TestAIMDLoss halves on losses and marks, and begins anew on timeouts.
func TestAIMDLoss(t *testing.T) {
	cfg := DefaultConfig(1000)
	cfg.Initial = 64
	c := NewAIMD(cfg)
	c.OnLoss(10, &Loss{Bytes: 1000, Sent: 5})
	c.OnLoss(11, &Loss{Bytes: 1000, Sent: 6})
	if c.Window() != 32000 {
		t.Errorf("two losses of one flight leave %d", c.Window())
	}
	c.OnAck(30, &Sample{Sent: 20, Bytes: 1000, Marked: 1000, Inflight: 32000})
	if c.Window() != 16000 {
		t.Errorf("a mark leaves %d", c.Window())
	}
	c.OnTimeout(40)
	if c.Window() != 1000 || c.Inspect().Threshold != 8000 {
		t.Errorf("a timeout leaves %d, %+v", c.Window(), c.Inspect())
	}
}

// TestAIMDUnused: a window that is not used does not grow.
func TestAIMDUnused(t *testing.T) {
	c := NewAIMD(DefaultConfig(1000))
	for i := range 100 {
		c.OnAck(Time(i*1000), &Sample{RTT: 100, SRTT: 100, Base: 100, Sent: Time(i * 1000), Bytes: 1000})
	}
	if c.Window() != 10000 {
		t.Errorf("an idle flow's window grew to %d", c.Window())
	}
}
