package wire

import "encoding/binary"

// PutWord encodes a head that is one number: an offset, or a key.
func PutWord(b []byte, v uint64) []byte {
	binary.LittleEndian.PutUint64(b, v)
	return b[:WordBytes]
}

// ParseWord decodes a head that is one number.
func ParseWord(b []byte) (uint64, bool) {
	if len(b) != WordBytes {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}
