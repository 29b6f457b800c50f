package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Flags of a Data packet.
const (
	// FlagAckNow asks for an acknowledgement without delay.
	FlagAckNow = 1 << iota
	// FlagBlocked says that the sender has more than the receiver's window takes.
	FlagBlocked
	// FlagAuth says that the packet ends in a tag and its frames are encrypted.
	FlagAuth

	allFlags = FlagAckNow | FlagBlocked | FlagAuth
)

// CID is a connection id, which the receiver of packets with it has chosen: the
// connection's index in a table of its own, and random bits that no stranger knows. 0 is none.
type CID uint64

// indexBits is how many bits of a CID are the index.
const indexBits = 21

// MaxConnections bounds a table of connections.
const MaxConnections = 1 << indexBits

// NewCID returns the id of the connection at index, below MaxConnections, with the upper
// 43 bits of random, which are not all 0.
func NewCID(index uint32, random uint64) CID {
	return CID(random&^(MaxConnections-1) | uint64(index))
}

// Index is the connection's index.
func (c CID) Index() uint32 { return uint32(c) & (MaxConnections - 1) }

// Header begins a Data packet and a Reset.
type Header struct {
	Stripe uint8  // the receiver's
	Flags  uint8  // of a Data packet
	Source uint8  // the sender's stripe, where a Reset is sent to
	CID    CID    // the receiver's
	Number uint64 // of the packet, below MaxNumber; Parse knows its lower 32 bits
}

// MaxNumber bounds packet numbers. A connection ends before it gets there.
const MaxNumber = 1 << 62

func (h *Header) put(b []byte, t Type) {
	_ = b[HeaderSize-1]
	b[0], b[1], b[2], b[3] = magic|byte(t), h.Stripe, h.Flags, h.Source
	binary.LittleEndian.PutUint64(b[4:], uint64(h.CID))
	binary.LittleEndian.PutUint32(b[numberAt:], uint32(h.Number))
}

// Put writes the header of a Data packet into b.
func (h *Header) Put(b []byte) { h.put(b, TypeData) }

// PutReset writes a Reset into b: the header of the packet that it answers,
// for the stripe that sent it.
func (h *Header) PutReset(b []byte) {
	r := *h
	r.Stripe, r.Source, r.Flags = h.Source, h.Stripe, 0
	r.put(b, TypeReset)
}

// Parse reads the header of a Data packet or a Reset.
func (h *Header) Parse(b []byte) error {
	if t := TypeOf(b); t != TypeData && (t != TypeReset || len(b) != ResetSize) {
		return fmt.Errorf("data header of %d bytes: %w", len(b), ErrMalformed)
	}
	*h = Header{
		Stripe: b[1], Flags: b[2], Source: b[3],
		CID:    CID(binary.LittleEndian.Uint64(b[4:])),
		Number: uint64(binary.LittleEndian.Uint32(b[numberAt:])),
	}
	if h.Flags&^allFlags != 0 {
		return fmt.Errorf("flags %#x: %w", h.Flags, ErrMalformed)
	}
	return nil
}

// Near returns the number that has the lower 32 bits of low and is next to near.
func Near(low, near uint64) uint64 {
	v := near&^math.MaxUint32 | low&math.MaxUint32
	switch {
	case v+1<<31 <= near:
		v += 1 << 32
	case v > near+1<<31 && v >= 1<<32:
		v -= 1 << 32
	}
	return v
}
