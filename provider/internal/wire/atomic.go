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

// Bytes is how many bytes the operation is on. It reports false if it is none that a peer may ask for, or does not come
// with a payload of that many bytes: operands, and comparands behind them.
func (a *Atomic) Bytes(payload int) (n uint64, ok bool) {
	if !atomics.Valid(a.Kind, a.Datatype, a.Op) {
		return 0, false
	}
	n = uint64(a.Count) * uint64(a.Datatype.Size())
	want := n
	if a.Op == fi.OpRead {
		want = 0
	}
	if a.Kind == atomics.Compare {
		want += n
	}
	return n, n != 0 && n <= atomics.MaxBytes && uint64(payload) == want
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
