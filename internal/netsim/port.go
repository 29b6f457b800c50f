package netsim

import (
	"math"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Port is one direction of a host's link, or a path between two hosts, as chunks see it that are flows and not
// packets: it serves the bytes of the chunks that have begun at it, in the order in which they began, at its rate.
type Port struct {
	// Rate is in bytes per second, above 0.
	Rate float64

	// Strangers take Share of the rate for the time On at the beginning of each Period, the first of which begins
	// at Phase: 0 to below 1. With a Period of 0 there are none.
	Share             float64
	On, Period, Phase time.Duration

	free congestion.Time // when what has begun is served
}

// serve takes in a chunk that begins at a time. It returns when the port begins with the chunk, and when it ends.
func (p *Port) serve(at congestion.Time, bytes int64) (begins, ends congestion.Time) {
	begins = max(p.free, at)
	if p.Period == 0 {
		p.free = begins.Add(rounded(float64(bytes) / p.Rate))
	} else {
		p.free = p.until(p.served(begins) + float64(bytes))
	}
	return begins, p.free
}

// rounded is so many seconds, rounded up.
func rounded(seconds float64) time.Duration {
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// periodBytes are the bytes that a port serves in a period, and onBytes those while strangers are on.
func (p *Port) periodBytes() float64 { return p.Rate * (p.Period.Seconds() - p.Share*p.On.Seconds()) }

func (p *Port) onBytes() float64 { return p.Rate * (1 - p.Share) * p.On.Seconds() }

// served is how many bytes the port can serve until a time.
func (p *Port) served(t congestion.Time) float64 {
	d := t.Sub(congestion.Time(p.Phase))
	whole := d / p.Period
	rest := (d - whole*p.Period).Seconds()
	if on := p.On.Seconds(); rest > on {
		return float64(whole)*p.periodBytes() + p.onBytes() + p.Rate*(rest-on)
	}
	return float64(whole)*p.periodBytes() + p.Rate*(1-p.Share)*rest
}

// until is when the port has served so many bytes at the earliest, the inverse of served.
func (p *Port) until(bytes float64) congestion.Time {
	whole := math.Floor(bytes / p.periodBytes())
	rest := bytes - whole*p.periodBytes()
	took := rest / (p.Rate * (1 - p.Share))
	if on := p.onBytes(); rest > on {
		took = p.On.Seconds() + (rest-on)/p.Rate
	}
	return congestion.Time(p.Phase).Add(time.Duration(whole)*p.Period + rounded(took))
}
