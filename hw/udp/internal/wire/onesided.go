package wire

import (
	"encoding/binary"
	"fmt"
)

// Frames of one-sided operations. Each begins with 8 bytes: the kind, a byte that only KindRefuse uses (its reason),
// the bytes of data that follow the header (2), and the number of the operation (4). Behind them, little endian:
//
//	KindPut     key, address of the data in the region; then the data
//	KindGet     key, address, bytes to get
//	KindData    offset of the data in its get; then the data
//	KindRefuse  nothing

// putOneSided writes those 8 bytes.
func putOneSided(b []byte, k Kind, n int, op uint32) {
	b[0], b[1] = byte(k), 0
	binary.LittleEndian.PutUint16(b[2:], uint16(n))
	binary.LittleEndian.PutUint32(b[4:], op)
}

// PutPut writes the header of a put of n bytes, which follow it, into b, of PutHeader bytes at least.
func PutPut(b []byte, op uint32, key, addr uint64, n int) {
	_ = b[PutHeader-1]
	putOneSided(b, KindPut, n, op)
	binary.LittleEndian.PutUint64(b[8:], key)
	binary.LittleEndian.PutUint64(b[16:], addr)
}

// PutGet writes a get of n bytes into b, of GetSize bytes at least.
func PutGet(b []byte, op uint32, key, addr, n uint64) {
	_ = b[GetSize-1]
	putOneSided(b, KindGet, 0, op)
	binary.LittleEndian.PutUint64(b[8:], key)
	binary.LittleEndian.PutUint64(b[16:], addr)
	binary.LittleEndian.PutUint64(b[24:], n)
}

// PutData writes the header of n bytes for a get of the peer's, at offset within it, into b, of DataHeader bytes at
// least.
func PutData(b []byte, op uint32, offset uint64, n int) {
	_ = b[DataHeader-1]
	putOneSided(b, KindData, n, op)
	binary.LittleEndian.PutUint64(b[8:], offset)
}

// PutRefuse writes the refusal of an operation of the peer's, for a reason (RefuseKey), into b, of RefuseSize bytes at
// least.
func PutRefuse(b []byte, op uint32, reason uint8) {
	_ = b[RefuseSize-1]
	putOneSided(b, KindRefuse, 0, op)
	b[1] = reason
}

// nextOneSided parses the frame of kind f.Kind at the start of b, and returns what follows it. f.Data is valid as long
// as b is. Errors wrap ErrMalformed.
func (f *Frame) nextOneSided(b []byte) ([]byte, error) {
	size := headerOf(f.Kind)
	if size == 0 || len(b) < size {
		return nil, fmt.Errorf("frame of kind %d, %d bytes: %w", f.Kind, len(b), ErrMalformed)
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	f.Op = binary.LittleEndian.Uint32(b[4:])
	switch f.Kind {
	case KindRefuse:
		f.Reason = b[1]
		return b[size:], nil
	case KindGet:
		f.Key, f.Addr = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
		f.Len = binary.LittleEndian.Uint64(b[24:])
		return b[size:], checkOffset(f.Len, 0)
	case KindPut:
		f.Key, f.Addr = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	case KindData:
		f.Offset = binary.LittleEndian.Uint64(b[8:])
	}
	b = b[size:]
	if n == 0 || n > len(b) {
		return nil, fmt.Errorf("frame of kind %d with %d of %d bytes: %w", f.Kind, len(b), n, ErrMalformed)
	}
	f.Data = b[:n:n]
	if f.Kind == KindData {
		return b[n:], checkOffset(f.Offset, n)
	}
	return b[n:], nil
}

// headerOf is the size of a frame's header, 0 for an unknown kind.
func headerOf(k Kind) int {
	switch k {
	case KindPut:
		return PutHeader
	case KindGet:
		return GetSize
	case KindData:
		return DataHeader
	case KindRefuse:
		return RefuseSize
	}
	return 0
}
