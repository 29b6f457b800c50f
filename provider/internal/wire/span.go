package wire

import "encoding/binary"

// PutSpan encodes bytes of a message: n from byte from on.
func PutSpan(b []byte, from, n uint64) []byte {
	binary.LittleEndian.PutUint64(b[0:], from)
	binary.LittleEndian.PutUint64(b[8:], n)
	return b[:SpanBytes]
}

// ParseSpan refuses what does not lie within a message of want bytes.
func ParseSpan(b []byte, want uint64) (from, n uint64, ok bool) {
	if len(b) != SpanBytes {
		return 0, 0, false
	}
	from, n = binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
	return from, n, n != 0 && n <= want && from <= want-n
}
