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

// Ack is what has arrived, and how much more may come.
type Ack struct {
	Arrived uint32        // when the largest number arrived, in ns of the receiver's monotonic clock, modulo 2^32
	Delay   time.Duration // from the arrival of the largest number to the sending of this; up to 4.29 s, more is cut
	Limit   uint64        // stream offset up to which the peer may send, 0: as before
	Marked  uint32        // packets that came with ECN's congestion experienced, modulo 2^32
	Open    bool          // eager payloads are welcome
	N       int           // ranges, at least 1
	Ranges  [MaxRanges]Range
}

// An Ack is
//
//	0   KindAck
//	1   5 bits: N - 1; then ackOpen, ackMarked, ackLimit
//	2   length of the first range, less 1
//	4   Delay in ns
//	8   the largest number
//	12  Arrived
//	16  Limit, if not 0
//	    of each other range: 4 bytes missing numbers before it, less 1; 4 bytes length, less 1
//	    Marked, if not 0
const (
	// LimitSize is what a Limit adds to the size of an Ack in bytes.
	LimitSize = 4

	ackHeader = 16
	ackRanges = 0x1f
	ackOpen   = 0x20
	ackMarked = 0x40
	ackLimit  = 0x80
)

// mostFirst is the greatest length, less 1, of the first range. What is before it was in earlier frames.
const mostFirst = math.MaxUint16

// Size is the size of the frame in bytes.
func (a *Ack) Size() int {
	n := ackHeader + 8*(a.N-1)
	for _, there := range [...]bool{a.Limit != 0, a.Marked != 0} {
		if there {
			n += 4
		}
	}
	return n
}

// Put writes the frame into b and returns its size. The ranges are in
// descending order with at least one missing number between any two, and none
// is longer than 2^32; N is at least 1. Of the first range the last 65536 numbers are written.
func (a *Ack) Put(b []byte) int {
	size := a.Size()
	_ = b[size-1]
	b[0], b[1] = byte(KindAck), byte(a.N-1)
	if a.Open {
		b[1] |= ackOpen
	}
	le := binary.LittleEndian
	first := max(a.Ranges[0].First, a.Ranges[0].Last-min(a.Ranges[0].Last, mostFirst))
	le.PutUint16(b[2:], uint16(a.Ranges[0].Last-first))
	le.PutUint32(b[4:], uint32(min(max(a.Delay, 0), math.MaxUint32)))
	le.PutUint32(b[8:], uint32(a.Ranges[0].Last))
	le.PutUint32(b[12:], a.Arrived)
	at := ackHeader
	if a.Limit != 0 {
		b[1] |= ackLimit
		le.PutUint32(b[at:], uint32(a.Limit))
		at += 4
	}
	for _, r := range a.Ranges[1:a.N] {
		le.PutUint32(b[at:], uint32(min(first-r.Last-2, math.MaxUint32)))
		le.PutUint32(b[at+4:], uint32(r.Last-r.First))
		first = r.First
		at += 8
	}
	if a.Marked != 0 {
		b[1] |= ackMarked
		le.PutUint32(b[at:], a.Marked)
	}
	return size
}

// parse reads an Ack. number and limit are about what the largest number and Limit are.
func (a *Ack) parse(b []byte, number, limit uint64) ([]byte, error) {
	if len(b) < ackHeader {
		return nil, fmt.Errorf("ack of %d bytes: %w", len(b), ErrMalformed)
	}
	le := binary.LittleEndian
	n := int(b[1]&ackRanges) + 1
	at := ackHeader
	if b[1]&ackLimit != 0 {
		at += 4
	}
	size := at + 8*(n-1)
	if b[1]&ackMarked != 0 {
		size += 4
	}
	if len(b) < size {
		return nil, fmt.Errorf("ack of %d ranges, flags %#x, in %d bytes: %w", n, b[1], len(b), ErrMalformed)
	}
	a.N, a.Open, a.Marked, a.Limit = n, b[1]&ackOpen != 0, 0, 0
	if b[1]&ackMarked != 0 {
		a.Marked = le.Uint32(b[size-4:])
	}
	if b[1]&ackLimit != 0 {
		a.Limit = Near(uint64(le.Uint32(b[ackHeader:])), limit)
	}
	a.Delay, a.Arrived = time.Duration(le.Uint32(b[4:])), le.Uint32(b[12:])
	last, length := Near(uint64(le.Uint32(b[8:])), number), uint64(le.Uint16(b[2:]))
	if a.Limit >= MaxOffset || last >= MaxNumber || length > last {
		return nil, fmt.Errorf("ack of %d packets up to %d, limit %d: %w", length+1, last, a.Limit, ErrMalformed)
	}
	a.Ranges[0] = Range{last - length, last}
	for i := 1; i < n; i++ {
		gap, length := uint64(le.Uint32(b[at:])), uint64(le.Uint32(b[at+4:]))
		at += 8
		first := a.Ranges[i-1].First
		if gap+2+length > first {
			return nil, fmt.Errorf("ack range %d below 0: %w", i, ErrMalformed)
		}
		last := first - gap - 2
		a.Ranges[i] = Range{last - length, last}
	}
	return b[size:], nil
}
