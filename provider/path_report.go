package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
)

// Path is what the transport measures of the path to a peer.
type Path struct {
	// Base is the least round-trip time, Smoothed the smoothed one and Deviation its mean
	// deviation (RFC 6298). Queue is how much longer than Base packets lately were on their
	// way.
	Base, Smoothed, Deviation, Queue time.Duration
	// Rate is the bytes per second that the congestion window lets through.
	Rate float64
	// Samples are the round-trip times taken in, and Lost the packets and probes without an
	// answer.
	Samples, Lost uint64
	// Age is how long ago the last of them was.
	Age time.Duration
}

// Path returns what is measured of the path to a peer. Errors: fi.EINVAL for an address that is
// not in the address vector, fi.ENODATA for a peer that is not connected or of which nothing has
// been measured yet, and fi.EOPNOTSUPP where the transport measures nothing, as on one host.
func (e *Endpoint) Path(addr fi.Addr) (Path, error) {
	l, err := e.base.linkOf(addr)
	if err != nil {
		return Path{}, log.Reject(log.EPData, fi.EINVAL, "path: address %d is not in the address vector", addr)
	}
	defer l.Release()
	p, ok := l.Ready()
	if !ok {
		return Path{}, fi.ENODATA
	}
	r, ok := p.Endpoint.(hw.PathReporter)
	if !ok {
		return Path{}, fi.EOPNOTSUPP
	}
	at, ok := r.Path()
	if !ok || at.Samples == 0 {
		return Path{}, fi.ENODATA
	}
	return Path{
		Base: at.Min, Smoothed: at.RTT, Deviation: at.RTTVar, Queue: at.RTT - at.Min,
		Rate:    float64(at.Window) * float64(time.Second) / float64(max(at.RTT, 1)),
		Samples: at.Samples, Lost: at.Lost, Age: at.Age,
	}, nil
}
