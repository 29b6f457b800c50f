package hot

import "structs"

// Bits of [RTSHead].Flags that the data plane knows; package provider has more.
const (
	RTSTagged = 1
	RTSData   = 2 // Data is valid
)

// RTSHead announces a message of one element, which stays with its sender (struct weft_rts_head).
type RTSHead struct {
	_       structs.HostLayout
	Request uint64
	Length  uint64
	Data    uint64
	Flags   uint32
	Count   uint32
	Addr    uint64
	Element uint64
}

// WriteHead is the head of a write (struct weft_write_head).
type WriteHead struct {
	_       structs.HostLayout
	Key     uint64
	Request uint64
	Flags   uint64
	Data    uint64
	Length  uint64
}

// AtomicHead is the head of an atomic operation (struct weft_atomic_head).
type AtomicHead struct {
	_        structs.HostLayout
	Key      uint64
	Request  uint64
	Op       uint8
	Datatype uint8
	Kind     uint8
	Last     uint8
	Count    uint32
	At       uint64
}
