package xdp

import (
	"encoding/binary"
	"math/bits"
)

// Internet checksums (RFC 1071). Sums are of 64-bit words in the host's little
// endian order with the carries added at the low end, which fold to the same
// 16 bits, with their bytes exchanged.

// sum adds the bytes of b to a sum. Of several pieces all but the last have an
// even size.
func sum(acc uint64, b []byte) uint64 {
	var c uint64
	le := binary.LittleEndian
	for len(b) >= 32 {
		acc, c = bits.Add64(acc, le.Uint64(b), c)
		acc, c = bits.Add64(acc, le.Uint64(b[8:]), c)
		acc, c = bits.Add64(acc, le.Uint64(b[16:]), c)
		acc, c = bits.Add64(acc, le.Uint64(b[24:]), c)
		b = b[32:]
	}
	for len(b) >= 8 {
		acc, c = bits.Add64(acc, le.Uint64(b), c)
		b = b[8:]
	}
	if len(b) >= 4 {
		acc, c = bits.Add64(acc, uint64(le.Uint32(b)), c)
		b = b[4:]
	}
	var rest uint64
	switch len(b) {
	case 3:
		rest = uint64(le.Uint16(b)) | uint64(b[2])<<16
	case 2:
		rest = uint64(le.Uint16(b))
	case 1:
		rest = uint64(b[0])
	}
	acc, c = bits.Add64(acc, rest, c)
	acc, c = bits.Add64(acc, 0, c)
	return acc + c
}

// add adds a small number to a sum.
func add(acc, v uint64) uint64 {
	acc, c := bits.Add64(acc, v, 0)
	return acc + c
}

// fold makes 16 bits of a sum, in the order in which they are written.
func fold(acc uint64) uint16 {
	acc = acc>>32 + acc&0xffffffff
	acc = acc>>32 + acc&0xffffffff
	acc = acc>>16 + acc&0xffff
	acc = acc>>16 + acc&0xffff
	return bits.ReverseBytes16(uint16(acc))
}

// swapped is what a 16-bit number in network order adds to a sum.
func swapped(v uint16) uint64 { return uint64(bits.ReverseBytes16(v)) }
