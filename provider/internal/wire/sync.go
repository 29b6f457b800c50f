package wire

import "github.com/weft-fabric/weft/internal/dataplane"

// Sync is the head of an eager message whose sender waits for the
// acknowledgement.
type Sync struct {
	Request uint64
	Data    uint64
	Flags   uint32
}

// Put encodes s at the start of b and returns the bytes used.
func (s *Sync) Put(b []byte) []byte {
	h := dataplane.SyncAt((*[SyncBytes]byte)(b))
	h.Request, h.Data, h.Flags = s.Request, s.Data, uint64(s.Flags)
	return b[:SyncBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (s *Sync) Parse(b []byte) bool {
	if len(b) != SyncBytes {
		return false
	}
	h := dataplane.SyncAt((*[SyncBytes]byte)(b))
	s.Request, s.Data, s.Flags = h.Request, h.Data, uint32(h.Flags)
	return h.Valid()
}
