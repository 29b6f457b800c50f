package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
)

// Atomic describes an operation on count elements; the result belongs at
// byte offset at of the operation's result.
type Atomic struct {
	Key      uint64
	Request  uint64
	Op       fi.Op
	Datatype fi.Datatype
	Kind     atomics.Kind
	Ends     Ends
	Count    uint32
	At       uint32
}

// Put encodes a at the start of b and returns the bytes used.
func (a *Atomic) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], a.Key)
	le.PutUint64(b[8:], a.Request)
	b[16], b[17], b[18], b[19] = byte(a.Op), byte(a.Datatype), byte(a.Kind), byte(a.Ends)
	le.PutUint32(b[20:], a.Count)
	le.PutUint64(b[24:], uint64(a.At))
	return b[:AtomicBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (a *Atomic) Parse(b []byte) bool {
	if len(b) != AtomicBytes {
		return false
	}
	le := binary.LittleEndian
	at := le.Uint64(b[24:])
	*a = Atomic{
		Key: le.Uint64(b[0:]), Request: le.Uint64(b[8:]), Op: fi.Op(b[16]), Datatype: fi.Datatype(b[17]),
		Kind: atomics.Kind(b[18]),
		Ends: Ends(b[19]), Count: le.Uint32(b[20:]), At: uint32(at),
	}
	return a.Kind <= atomics.Compare && a.Ends.valid() && at < 1<<32
}
