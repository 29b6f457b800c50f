package wire

import "encoding/binary"

// Sync is the head of an eager message whose sender waits for the
// acknowledgement.
type Sync struct {
	Request uint64
	Data    uint64
	Flags   uint32
}

// Put encodes s at the start of b and returns the bytes used.
func (s *Sync) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], s.Request)
	binary.LittleEndian.PutUint64(b[8:], s.Data)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.Flags))
	return b[:SyncBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (s *Sync) Parse(b []byte) bool {
	if len(b) != SyncBytes {
		return false
	}
	s.Request = binary.LittleEndian.Uint64(b[0:])
	s.Data = binary.LittleEndian.Uint64(b[8:])
	flags := binary.LittleEndian.Uint64(b[16:])
	s.Flags = uint32(flags)
	return flags&^uint64(FlagTagged|FlagData|FlagMatch) == 0
}
