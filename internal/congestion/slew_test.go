package congestion

import (
	"fmt"
	"testing"
	"time"
)

// set has the receiver's clock run faster by so many parts of a million from now on.
func (w *ways) set(faster float64) {
	w.later += time.Duration(float64(w.now) * (w.faster - faster) / 1e6)
	w.faster = faster
}

// TestOnewaySlewed: a queue on the way there that stands is none of the way back while a clock is set by its rate, but
// for the time in which that is found, nor once the clock has its own rate again.
func TestOnewaySlewed(t *testing.T) {
	const queue, most = 5 * ms, 150 * us
	for _, faster := range []float64{-83_333, -50_000, -1000, 1000, 50_000, 83_333} {
		t.Run(fmt.Sprint(faster), func(t *testing.T) {
			w := &ways{now: Time(time.Second), faster: -100}
			w.sample(0, 0)
			for n := range 60_000 { // 6 s
				switch n {
				case 10_000:
					w.set(faster)
				case 40_000:
					w.set(-100)
				}
				there := queue + time.Duration(n*7919%1000)*us // varies by a millisecond
				got := w.sample(there, 0)
				finding := n >= 10_000 && w.now.Sub(Time(2*time.Second)) < (slewRow+1)*slewBlock+10*ms
				if got > most && !finding {
					t.Fatalf("after %v %v of a queue on the way there are said to be of the way back", w.now, got)
				}
			}
		})
	}
}

// TestOnewaySlewedShort: a slew that is over before it can be found, of less than slewBlock, hides a queue on the way
// there until the flow's next drain, which shows both leasts by the clocks as they are, and without a drain for
// onewayWindow and a quarter at most. At most so much is hidden as the clocks have drifted apart.
func TestOnewaySlewedShort(t *testing.T) {
	const queue, most = 30 * ms, 150 * us
	const length = slewBlock - 50*ms
	for _, faster := range []float64{-83_333, -5000} {
		for _, drains := range []bool{true, false} {
			t.Run(fmt.Sprint(faster, drains), func(t *testing.T) {
				w := &ways{now: Time(time.Second), faster: 20}
				w.sample(0, 0)
				over := length + onewayWindow*5/4
				if drains {
					over = length + drainLeast + ms
				}
				begun, hidden := Time(2*time.Second), time.Duration(0)
				for w.now < Time(5*time.Second) {
					switch at := w.now.Sub(begun); {
					case at >= 0 && w.faster == 20 && at < length:
						w.set(20 + faster)
					case at >= length && w.faster != 20:
						w.set(20)
					}
					there := queue
					if drains && w.now%Time(drainLeast) < Time(ms) {
						there = 0
					}
					got := w.sample(there, 0)
					if at := w.now.Sub(begun); got > most && (at < 0 || at > over) {
						t.Fatalf("%v after it has begun %v of a queue are said to be of the way back", at, got)
					}
					hidden = max(hidden, got)
				}
				if drift := time.Duration(-faster * float64(length) / 1e6); hidden > drift+most || hidden < drift/4 {
					t.Errorf("%v are hidden, the clocks have drifted apart by %v", hidden, drift)
				}
			})
		}
	}
}

// TestOnewayNotSlewed: queues that come and go make no clock seem to be set, so those of the way back are known.
func TestOnewayNotSlewed(t *testing.T) {
	w := &ways{now: Time(time.Second), faster: 100}
	for n := range 60_000 {
		there, back := time.Duration(n%20_000/5_000)*5*ms, time.Duration(0)
		if n%20_000 >= 15_000 {
			there, back = 0, 5*ms
		}
		if n%5_000 < 10 {
			there, back = 0, 0
		}
		if got := w.sample(there, back); got < back-150*us || got > back+150*us {
			t.Fatalf("after %v: %v of %v are said to be of the way back", w.now, got, back)
		}
	}
}
