package provider

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
)

// completion is the event that an operation on the C object fid is complete
// (struct fi_eq_entry).
func completion(number fi.EQEvent, fid uintptr, context, data uint64) eq.Event {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint64(b, uint64(fid))
	b = binary.LittleEndian.AppendUint64(b, context)
	b = binary.LittleEndian.AppendUint64(b, data)
	return eq.Event{Number: uint32(number), Entry: b}
}
