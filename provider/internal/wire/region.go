package wire

import "encoding/binary"

// Sizes of a RegionRequest and its answer.
const (
	regionRequestBytes = 40
	regionAnswerBytes  = 24
)

// RegionRequest asks the owner of a region of device memory, by its process's descriptor thread, for the allocation
// that some bytes of it are in: five numbers, in the order of the fields, in little endian.
type RegionRequest struct {
	Incarnation, Key, Rights uint64 // of the owner's endpoint; of the region
	Addr, Length             uint64 // of the bytes, by which the region is named
}

// Append encodes q behind b.
func (q *RegionRequest) Append(b []byte) []byte {
	for _, v := range [...]uint64{q.Incarnation, q.Key, q.Rights, q.Addr, q.Length} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Parse decodes a request. What its numbers name is not checked.
func (q *RegionRequest) Parse(b []byte) bool {
	if len(b) != regionRequestBytes {
		return false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*q = RegionRequest{word(0), word(1), word(2), word(3), word(4)}
	return true
}

// RegionAnswer is the answer: three numbers, as the request has them.
type RegionAnswer struct {
	Token  uint64 // of the allocation
	Buffer uint64 // the driver's number of its memory
	Offset uint64 // of the bytes in it
}

// Append encodes a behind b.
func (a *RegionAnswer) Append(b []byte) []byte {
	for _, v := range [...]uint64{a.Token, a.Buffer, a.Offset} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Parse decodes an answer.
func (a *RegionAnswer) Parse(b []byte) bool {
	if len(b) != regionAnswerBytes {
		return false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*a = RegionAnswer{word(0), word(1), word(2)}
	return true
}
