package congestion

import (
	"testing"
	"time"
)

// TestRoundTrip takes stamps only if they can be of this round trip.
func TestRoundTrip(t *testing.T) {
	const measured = 50 * us
	for _, c := range []struct {
		name           string
		sent, received Stamp
		want           time.Duration
		source         Source
	}{
		{"no stamps", Stamp{}, Stamp{}, measured, Monotonic},
		{"one stamp", Stamp{1, 1000}, Stamp{}, measured, Monotonic},
		{"two clocks", Stamp{1, 1000}, Stamp{2, 2000}, measured, Monotonic},
		{"good", Stamp{1, 1000}, Stamp{1, 21000}, 20 * us, Hardware},
		{"equal to the host's", Stamp{1, 0}, Stamp{1, 50000}, measured, Hardware},
		{"too long", Stamp{1, 1000}, Stamp{1, 60000}, measured, Monotonic},
		{"backwards", Stamp{1, 2000}, Stamp{1, 1000}, measured, Monotonic},
	} {
		if got, source := RoundTrip(measured, c.sent, c.received); got != c.want || source != c.source {
			t.Errorf("%s: %v by %v", c.name, got, source)
		}
	}
}

// TestOneWay needs clocks of one domain that agree with the RTT.
func TestOneWay(t *testing.T) {
	for _, c := range []struct {
		name          string
		sent, arrived PTPTime
		forth, back   time.Duration
		ok            bool
	}{
		{"synchronised", PTPTime{7, 1000, 100}, PTPTime{7, 4000, 100}, 3 * us, 7 * us, true},
		{"not synchronised", PTPTime{0, 1000, 0}, PTPTime{0, 4000, 0}, 0, 0, false},
		{"two domains", PTPTime{7, 1000, 0}, PTPTime{8, 4000, 0}, 0, 0, false},
		{"early within the error", PTPTime{7, 1000, 100}, PTPTime{7, 850, 100}, 0, 10 * us, true},
		{"early", PTPTime{7, 1000, 10}, PTPTime{7, 900, 10}, 0, 0, false},
		{"late", PTPTime{7, 1000, 10}, PTPTime{7, 12000, 10}, 0, 0, false},
	} {
		forth, back, ok := OneWay(c.sent, c.arrived, 10*us)
		if forth != c.forth || back != c.back || ok != c.ok {
			t.Errorf("%s: %v, %v, %v", c.name, forth, back, ok)
		}
	}
}
