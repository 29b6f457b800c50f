package udp

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/mem"
)

// ring holds bytes of a stream that come at their offset modulo its size, and behind its
// end room for one record, so that a record that wraps can lie in one piece.
type ring struct {
	b    []byte // size and spare; nil before first use
	size uint64 // power of two
}

// open makes the memory. Errors are those of package mem.
func (r *ring) open(size, spare int) error {
	if r.b != nil {
		return nil
	}
	b, err := mem.Map(size+spare, mem.NoReserve)
	if err != nil {
		return err
	}
	r.b, r.size = b, uint64(size)
	return nil
}

func (r *ring) close() {
	if r.b != nil {
		_ = mem.Unmap(r.b)
		r.b = nil
	}
}

// at returns n bytes from offset, in one piece, for reading. n is at most the spare
// room. If they wrap, unfold goes before.
func (r *ring) at(offset uint64, n int) []byte {
	p := offset & (r.size - 1)
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.b)), p)), n)
}

// unfold copies what wraps of n bytes at offset behind the ring's end.
func (r *ring) unfold(offset uint64, n int) {
	p := offset & (r.size - 1)
	if end := p + uint64(n); end > r.size {
		copy(r.b[r.size:end], r.b)
	}
}

// piece returns the bytes from offset to the ring's end or n, whichever is less.
func (r *ring) piece(offset uint64, n int) []byte {
	p := offset & (r.size - 1)
	return r.at(offset, int(min(uint64(n), r.size-p)))
}

// put writes b at offset, in two pieces if it wraps.
func (r *ring) put(offset uint64, b []byte) {
	n := copy(r.piece(offset, len(b)), b)
	copy(r.b, b[n:])
}
