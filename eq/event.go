package eq

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
)

// Completion is the event that an operation on the C object fid is complete
// (struct fi_eq_entry).
func Completion(number fi.EQEvent, fid uintptr, context, data uint64) Event {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint64(b, uint64(fid))
	b = binary.LittleEndian.AppendUint64(b, context)
	b = binary.LittleEndian.AppendUint64(b, data)
	return Event{Number: uint32(number), Entry: b}
}
