package congestion

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ProbeHeader is the least size of a probe in bytes; the rest is zero.
const ProbeHeader = 32

// ProbeMessage is what a probe and its echo carry. On the wire, little endian:
//
//	 0  version, 1
//	 1  kind: 1 probe, 2 echo
//	 2  size of the whole message, 16 bits
//	 4  sequence, 32 bits
//	 8  token, 64 bits
//	16  time of arrival at the responder, 64 bits
//	24  time at the responder in nanoseconds, 32 bits
//	28  domain of that time of arrival, 32 bits
type ProbeMessage struct {
	// Echo marks an answer to a probe.
	Echo bool

	// Size is the message's bytes, ProbeHeader to 65535.
	Size int

	// Sequence counts a prober's probes and Token is random: an echo must
	// repeat both, so that only a host that saw the probe can answer it.
	Sequence uint32
	Token    uint64

	// Arrived and Domain are when the probe arrived by the responder's PTP
	// time; see [PTPTime]. They serve one-way delays; the RTT does not need
	// them. Domain 0 is none.
	Arrived int64
	Domain  uint32

	// Residence is how long the responder had the probe (residence time), at most 4 s. It is taken
	// out of the RTT.
	Residence time.Duration
}

// Probes takes the results of the probes that a transport carries. Its functions are
// called under locks of the transport: they must be quick and must not call
// back.
type Probes struct {
	// Echoed takes in an echo that arrived from a peer (the transport's endpoint)
	// at a time of the transport's clock, and returns the round-trip time, 0 for
	// an echo of no probe in flight. Nil: echoes are ignored.
	Echoed func(from any, at Time, m ProbeMessage) time.Duration
	// Clock returns the time that PTP keeps, so long ago; the zero value if the
	// clock is not synchronised. Nil: it never is.
	Clock func(ago time.Duration) PTPTime
}

const (
	probeVersion = 1
	probeKind    = 1
	echoKind     = 2
)

var errProbe = errors.New("not a probe")

// Append appends the message to b.
func (m *ProbeMessage) Append(b []byte) []byte {
	kind := byte(probeKind)
	if m.Echo {
		kind = echoKind
	}
	start := len(b)
	b = append(b, probeVersion, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.Size))
	b = binary.LittleEndian.AppendUint32(b, m.Sequence)
	b = binary.LittleEndian.AppendUint64(b, m.Token)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Arrived))
	b = binary.LittleEndian.AppendUint32(b, uint32(min(max(m.Residence, 0), 1<<32-1)))
	b = binary.LittleEndian.AppendUint32(b, m.Domain)
	for len(b) < start+m.Size {
		b = append(b, 0)
	}
	return b
}

// ParseProbe reads a message from a peer, which must be all of b. Nothing in it
// is trusted.
func ParseProbe(b []byte) (ProbeMessage, error) {
	if len(b) < ProbeHeader {
		return ProbeMessage{}, fmt.Errorf("%w: %d bytes", errProbe, len(b))
	}
	m := ProbeMessage{
		Echo:      b[1] == echoKind,
		Size:      int(binary.LittleEndian.Uint16(b[2:])),
		Sequence:  binary.LittleEndian.Uint32(b[4:]),
		Token:     binary.LittleEndian.Uint64(b[8:]),
		Arrived:   int64(binary.LittleEndian.Uint64(b[16:])),
		Residence: time.Duration(binary.LittleEndian.Uint32(b[24:])),
		Domain:    binary.LittleEndian.Uint32(b[28:]),
	}
	switch {
	case b[0] != probeVersion:
		return ProbeMessage{}, fmt.Errorf("%w: version %d", errProbe, b[0])
	case b[1] != probeKind && b[1] != echoKind:
		return ProbeMessage{}, fmt.Errorf("%w: kind %d", errProbe, b[1])
	case m.Size != len(b):
		return ProbeMessage{}, fmt.Errorf("%w: %d bytes say they are %d", errProbe, len(b), m.Size)
	case m.Arrived < 0:
		return ProbeMessage{}, fmt.Errorf("%w: arrived at %d", errProbe, m.Arrived)
	}
	return m, nil
}

// Reply returns the echo of a probe that arrived at a PTP time, the zero one
// for none, and stayed for so long.
func (m ProbeMessage) Reply(arrived PTPTime, residence time.Duration) ProbeMessage {
	m.Echo, m.Arrived, m.Domain, m.Residence = true, arrived.At, arrived.Domain, residence
	return m
}

// ArrivedAt returns the PTP time of an echo, with the error that this host
// assumes of the responder's clock.
func (m *ProbeMessage) ArrivedAt(assumed time.Duration) PTPTime {
	return PTPTime{Domain: m.Domain, At: m.Arrived, Error: assumed}
}
