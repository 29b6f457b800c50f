package wire

import (
	"encoding/binary"
	"fmt"
)

// Kind is a frame's kind.
type Kind uint8

// The kinds of frames. A frame that is not an Ack, Probe or Pad asks for an
// acknowledgement.
const (
	KindPad    Kind = iota // up to the packet's end, zeros
	KindAck                // see Ack
	KindStream             // bytes of the message stream, up to the packet's end
	KindPing               // nothing
	KindClose              // the sender has ended the connection; its stream ends at Offset
	KindPut                // bytes for the receiver's memory
	KindGet                // asks for bytes of the receiver's memory
	KindData               // bytes that a Get asked for
	KindRefuse             // a Put or Get is not performed, for Reason
	KindProbe              // a message of congestion's prober, which its answer acknowledges
)

// Sizes of frames without their data, in bytes.
const (
	StreamHeader = 5
	PingSize     = 4
	CloseSize    = 16
	PutHeader    = 24
	GetSize      = 32
	DataHeader   = 16
	RefuseSize   = 8
	ProbeHeader  = 4
)

// Reasons in a Refuse frame.
const (
	RefuseKey = 1 // there is no such memory under this key, or not for this
)

// Reasons in a Close frame.
const (
	CloseNormal   = 0 // the interface was closed
	CloseProtocol = 1 // the peer broke the protocol
	CloseStuck    = 2 // given up: data was not acknowledged in time
)

// Frame is one parsed frame.
type Frame struct {
	Kind   Kind
	Reason uint8  // of Close
	Offset uint64 // of Stream, Close and Data, below MaxOffset
	Op     uint32 // of Put, Get, Data and Refuse: the number that the initiator gave the operation
	Key    uint64 // of Put and Get
	Addr   uint64 // of Put and Get, in the receiver's terms
	Len    uint64 // of Get, below MaxOffset
	Data   []byte // of Stream, Put, Data and Probe: part of the packet
	Ack    Ack    // of Ack

	// What the caller of Next expects about.
	NearNumber uint64 // the largest number in an Ack
	NearLimit  uint64 // the Limit of an Ack
	NearOffset uint64 // the offset of a Stream
}

// MaxOffset bounds offsets in the message stream, so that sums with windows
// do not overflow.
const MaxOffset = 1 << 62

// PutStream writes the header of the stream frame that ends a packet, with data at offset.
func PutStream(b []byte, offset uint64) {
	_ = b[StreamHeader-1]
	b[0] = byte(KindStream)
	binary.LittleEndian.PutUint32(b[1:], uint32(offset))
}

// PutPing writes a ping frame.
func PutPing(b []byte) {
	_ = b[PingSize-1]
	b[0], b[1], b[2], b[3] = byte(KindPing), 0, 0, 0
}

// PutClose writes a close frame.
func PutClose(b []byte, reason uint8, end uint64) {
	clear(b[:CloseSize])
	b[0], b[1] = byte(KindClose), reason
	binary.LittleEndian.PutUint64(b[8:], end)
}

// Next parses the first frame of b into f and returns what follows it. The
// end of the frames is an empty b.
func (f *Frame) Next(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("no frame: %w", ErrMalformed)
	}
	f.Kind, f.Data = Kind(b[0]), nil
	switch f.Kind {
	case KindPad:
		return nil, nil
	case KindAck:
		return f.Ack.parse(b, f.NearNumber, f.NearLimit)
	case KindStream:
		return f.parseStream(b)
	case KindPing:
		if len(b) < PingSize {
			return nil, fmt.Errorf("ping of %d bytes: %w", len(b), ErrMalformed)
		}
		return b[PingSize:], nil
	case KindProbe:
		return f.parseProbe(b)
	case KindClose:
		if len(b) < CloseSize {
			return nil, fmt.Errorf("close of %d bytes: %w", len(b), ErrMalformed)
		}
		f.Reason, f.Offset = b[1], binary.LittleEndian.Uint64(b[8:])
		return b[CloseSize:], checkOffset(f.Offset, 0)
	}
	return f.nextOneSided(b)
}

func (f *Frame) parseStream(b []byte) ([]byte, error) {
	if len(b) <= StreamHeader {
		return nil, fmt.Errorf("stream frame of %d bytes: %w", len(b), ErrMalformed)
	}
	f.Offset = Near(uint64(binary.LittleEndian.Uint32(b[1:])), f.NearOffset)
	f.Data = b[StreamHeader:]
	return nil, checkOffset(f.Offset, len(f.Data))
}

// PutProbe writes the header of a probe of n bytes.
func PutProbe(b []byte, n int) {
	_ = b[ProbeHeader-1]
	b[0], b[1] = byte(KindProbe), 0
	binary.LittleEndian.PutUint16(b[2:], uint16(n))
}

func (f *Frame) parseProbe(b []byte) ([]byte, error) {
	if len(b) < ProbeHeader {
		return nil, fmt.Errorf("probe of %d bytes: %w", len(b), ErrMalformed)
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	b = b[ProbeHeader:]
	if n == 0 || n > len(b) {
		return nil, fmt.Errorf("probe with %d of %d bytes: %w", len(b), n, ErrMalformed)
	}
	f.Data = b[:n:n]
	return b[n:], nil
}

func checkOffset(offset uint64, n int) error {
	if offset >= MaxOffset-uint64(n) {
		return fmt.Errorf("offset %d: %w", offset, ErrMalformed)
	}
	return nil
}
