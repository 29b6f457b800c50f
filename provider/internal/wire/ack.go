package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
)

// PutAck encodes the outcome of a message at its receiver: Success or why it
// failed.
func PutAck(b []byte, status fi.Errno) []byte {
	binary.LittleEndian.PutUint64(b, uint64(status))
	return b[:AckBytes]
}

// ParseAck decodes an outcome.
func ParseAck(b []byte) (fi.Errno, bool) {
	if len(b) != AckBytes {
		return 0, false
	}
	return AckStatus(binary.LittleEndian.Uint64(b))
}

// AckStatus is the outcome that a peer's number stands for; numbers that are no errno are refused.
func AckStatus(v uint64) (fi.Errno, bool) { return fi.Errno(v), v < 1024 }
