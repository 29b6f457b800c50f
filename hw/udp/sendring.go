package udp

import (
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/mem"
)

// headRoom is what a slot has before its bytes of the stream: the head of a packet that
// carries nothing else.
const headRoom = wire.TrainHeader

// sendRing holds the stream's bytes from post to acknowledgement, in slots: room for a
// packet's head each, and as many bytes as a full packet carries. Slots follow one another
// in memory, so full packets that do need one piece of it: the kernel copies one of 64 KB
// in two thirds of the time that it takes for 44 heads and 44 pieces.
type sendRing struct {
	b     []byte // nil before first use
	size  uint64 // bytes of the stream that fit, wherever they begin
	full  uint64 // bytes of the stream in a slot
	slots uint64
	base  uint64 // offset in the stream with which slot 0 begins, the first time
	at    uint64 // where in memory the next byte goes that is posted
	left  uint64 // room for more in its slot
}

// open makes the memory for size bytes. lay follows. Errors are those of package mem.
func (r *sendRing) open(size int) error {
	if r.b != nil {
		return nil
	}
	slots := size/leastFull + 2
	b, err := mem.Map(size+slots*headRoom+2*maxPacket, mem.NoReserve)
	if err != nil {
		return err
	}
	*r = sendRing{b: b, size: uint64(size)}
	return nil
}

// leastFull is the least size of what a full packet carries.
const leastFull = minPacket - headRoom - wire.TagSize

func (r *sendRing) close() {
	if r.b != nil {
		_ = mem.Unmap(r.b)
		r.b = nil
	}
}

// lay has slots take full bytes each, leastFull or more, of which the first lacks lead; offset
// is where the stream goes on. The ring is empty.
func (r *sendRing) lay(offset, full, lead uint64) {
	if full != r.full {
		r.full, r.slots = full, r.size/full+2
	}
	r.base, r.at, r.left = offset-lead, headRoom+lead, full-lead
}

// slot returns where in memory the byte at offset is, and how many are from there to the
// slot's end.
func (r *sendRing) slot(offset uint64) (at, left uint64) {
	in := offset - r.base
	if in < r.full {
		return headRoom + in, r.full - in
	}
	n := in / r.full
	in -= n * r.full
	return n%r.slots*(headRoom+r.full) + headRoom + in, r.full - in
}

// rest returns how many bytes are from offset to its slot's end.
func (r *sendRing) rest(offset uint64) uint64 {
	return r.full - (offset-r.base)%r.full
}

// piece returns n bytes from offset, or less: up to its slot's end.
func (r *sendRing) piece(offset uint64, n int) []byte {
	at, left := r.slot(offset)
	return r.b[at : at+min(uint64(n), left)]
}

// appendTo appends n bytes from offset to b.
func (r *sendRing) appendTo(b []byte, offset uint64, n int) []byte {
	for n > 0 {
		p := r.piece(offset, n)
		b = append(b, p...)
		offset += uint64(len(p))
		n -= len(p)
	}
	return b
}

// row returns the memory of up to n slots, heads included, which follow one another from
// offset on, where one begins.
func (r *sendRing) row(offset uint64, n int) []byte {
	at, _ := r.slot(offset)
	at -= headRoom
	each := headRoom + r.full
	return r.b[at : at+min(uint64(n), r.slots-at/each)*each]
}

// next returns where the next bytes go that are posted: n or less, which the caller writes.
func (r *sendRing) next(n int) []byte {
	if r.left == 0 {
		if r.at == r.slots*(headRoom+r.full) {
			r.at = 0
		}
		r.at += headRoom
		r.left = r.full
	}
	k := min(uint64(n), r.left)
	b := r.b[r.at : r.at+k]
	r.at += k
	r.left -= k
	return b
}

// write writes b behind what was posted.
func (r *sendRing) write(b []byte) {
	for len(b) > 0 {
		b = b[copy(r.next(len(b)), b):]
	}
}

// pad writes n zeros.
func (r *sendRing) pad(n int) {
	for n > 0 {
		b := r.next(n)
		clear(b)
		n -= len(b)
	}
}
