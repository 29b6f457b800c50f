package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/provider/internal/claim"
)

// Chunks of a shared message are an eighth of the message within these bounds, in bytes.
const (
	MinChunk = 32 << 10
	MaxChunk = 512 << 10
)

// Offer offers the sender of a rendezvous a share of the chunks, which it writes into the receiver's buffer. It is the
// head of an AMAssist.
type Offer struct {
	Round uint64
	Addr  uint64 // of the receiver's buffer
	Want  uint64 // bytes of the message that go there
	Chunk uint64 // bytes
}

// Put encodes o at the start of b and returns the bytes used.
func (o *Offer) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], o.Round)
	le.PutUint64(b[8:], o.Addr)
	le.PutUint64(b[16:], o.Want)
	le.PutUint64(b[24:], o.Chunk)
	return b[:OfferBytes]
}

// Parse refuses a chunk size that would not cut the message into a number of
// chunks that the claim word can count.
func (o *Offer) Parse(b []byte) bool {
	if len(b) != OfferBytes {
		return false
	}
	le := binary.LittleEndian
	*o = Offer{Round: le.Uint64(b[0:]), Addr: le.Uint64(b[8:]), Want: le.Uint64(b[16:]), Chunk: le.Uint64(b[24:])}
	return o.Round>>(64-claim.RoundShift) == 0 && o.Chunk >= MinChunk && o.Chunk <= MaxChunk &&
		o.Want != 0 && o.Want <= MaxMessage && claim.Chunks(o.Want, o.Chunk) <= claim.MaxChunks &&
		o.Addr+o.Want >= o.Addr
}
