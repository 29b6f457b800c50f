package wire

import "encoding/binary"

// Sizes of a CopyRequest.
const (
	copyHead = 40
	copyEach = 24
)

// CopyPiece is n bytes of a CopyRequest.
type CopyPiece struct {
	Offset uint64 // in the allocation
	Addr   uint64 // by which the owner's region is named
	N      uint64
}

// CopyRequest asks the owner of a region, by its process's descriptor thread, to copy between it and an allocation of
// the process that asks:
//
//	incarnation:8 | key:8 | rights:8 | token:8 | buffer:8 | pieces of 24 bytes: offset:8 | address:8 | length:8
//
// in little endian. With fi.RemoteWrite the region is written. The answer says by its status alone whether all is
// copied.
type CopyRequest struct {
	Incarnation, Key, Rights uint64 // of the owner's endpoint; of the region
	Token, Buffer            uint64 // of the allocation
	Pieces                   []CopyPiece
}

// Append encodes q behind b.
func (q *CopyRequest) Append(b []byte) []byte {
	le := binary.LittleEndian
	for _, v := range [...]uint64{q.Incarnation, q.Key, q.Rights, q.Token, q.Buffer} {
		b = le.AppendUint64(b, v)
	}
	for i := range q.Pieces {
		p := &q.Pieces[i]
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, p.Offset), p.Addr), p.N)
	}
	return b
}

// Parse decodes a request with a piece at least. What its numbers name is not checked.
func (q *CopyRequest) Parse(b []byte) bool {
	n := len(b) - copyHead
	if n <= 0 || n%copyEach != 0 {
		return false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*q = CopyRequest{Incarnation: word(0), Key: word(1), Rights: word(2), Token: word(3), Buffer: word(4)}
	for i := copyHead / 8; i < len(b)/8; i += 3 {
		q.Pieces = append(q.Pieces, CopyPiece{word(i), word(i + 1), word(i + 2)})
	}
	return true
}
