package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Range is packet numbers First to Last, both included.
type Range struct {
	First, Last uint64
}

// MaxRanges is how many ranges an Ack holds.
const MaxRanges = 32

// Ack tells what has arrived, and how much more may come.
type Ack struct {
	Delay  time.Duration // from the arrival of the largest number to the sending of this; up to 4.29 s, more is cut
	Limit  uint64        // stream offset up to which the peer may send
	Marked uint32        // packets that came with ECN's congestion experienced, modulo 2^32
	Open   bool          // eager payloads are welcome
	N      int           // ranges, at least 1
	Ranges [MaxRanges]Range
}

const ackHeader = 32

// AckSize returns the size in bytes of an Ack with n ranges.
func AckSize(n int) int { return ackHeader + 4 + 8*(n-1) }

// Put writes the frame into b and returns its size. The ranges are in
// descending order with at least one missing number between any two, and none
// is longer than 2^32; N is at least 1.
func (a *Ack) Put(b []byte) int {
	size := AckSize(a.N)
	_ = b[size-1]
	b[0], b[1], b[2], b[3] = byte(KindAck), byte(a.N), 0, 0
	if a.Open {
		b[2] = 1
	}
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(min(max(a.Delay, 0), math.MaxUint32)))
	le.PutUint64(b[8:], a.Ranges[0].Last)
	le.PutUint64(b[16:], a.Limit)
	le.PutUint32(b[24:], a.Marked)
	le.PutUint32(b[28:], 0)
	le.PutUint32(b[32:], uint32(a.Ranges[0].Last-a.Ranges[0].First))
	at := 36
	for i := 1; i < a.N; i++ {
		le.PutUint32(b[at:], uint32(min(a.Ranges[i-1].First-a.Ranges[i].Last-2, math.MaxUint32)))
		le.PutUint32(b[at+4:], uint32(a.Ranges[i].Last-a.Ranges[i].First))
		at += 8
	}
	return size
}

func (a *Ack) parse(b []byte) ([]byte, error) {
	if len(b) < ackHeader+4 {
		return nil, fmt.Errorf("ack of %d bytes: %w", len(b), ErrMalformed)
	}
	n := int(b[1])
	if n < 1 || n > MaxRanges || len(b) < AckSize(n) {
		return nil, fmt.Errorf("ack of %d ranges in %d bytes: %w", n, len(b), ErrMalformed)
	}
	le := binary.LittleEndian
	a.N, a.Open = n, b[2]&1 != 0
	a.Delay = time.Duration(le.Uint32(b[4:]))
	a.Limit = le.Uint64(b[16:])
	a.Marked = le.Uint32(b[24:])
	last, length := le.Uint64(b[8:]), uint64(le.Uint32(b[32:]))
	if a.Limit >= MaxOffset || last >= MaxNumber || length > last {
		return nil, fmt.Errorf("ack of %d packets up to %d, limit %d: %w", length+1, last, a.Limit, ErrMalformed)
	}
	a.Ranges[0] = Range{last - length, last}
	for i := 1; i < n; i++ {
		gap, length := uint64(le.Uint32(b[28+8*i:])), uint64(le.Uint32(b[32+8*i:]))
		first := a.Ranges[i-1].First
		if gap+2+length > first {
			return nil, fmt.Errorf("ack range %d below 0: %w", i, ErrMalformed)
		}
		last := first - gap - 2
		a.Ranges[i] = Range{last - length, last}
	}
	return b[AckSize(n):], nil
}
