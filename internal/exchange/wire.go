package exchange

import (
	"encoding/binary"
	"time"
)

// Chunk is what a chunk begins with.
type Chunk struct {
	// Total is the slice's bytes, of which Length at Offset are in the chunk.
	Total, Offset, Length int64
	// Delay is the queueing delay that the sender has seen on the path lately, as
	// far as it counts: up to a minute.
	Delay time.Duration
}

// Word is what a receiver says to a sender.
type Word struct {
	// Got is how many bytes of the slice have arrived.
	Got int64
	// Invite is a credit: the receiver's link has room for this sender. Busy says that
	// it queues because of others.
	Invite, Busy bool
}

// Bytes of a chunk's head and of a word.
const (
	ChunkBytes = 24
	WordBytes  = 16
)

// mostBytes is the longest slice.
const mostBytes = 1 << 40

// Put writes a chunk's head to b, which has room for ChunkBytes.
func (c *Chunk) Put(b []byte) []byte {
	delay := min(max(c.Delay, 0), time.Minute) / time.Microsecond
	binary.LittleEndian.PutUint64(b[0:], uint64(c.Total))
	binary.LittleEndian.PutUint64(b[8:], uint64(c.Offset))
	binary.LittleEndian.PutUint32(b[16:], uint32(c.Length))
	binary.LittleEndian.PutUint32(b[20:], uint32(delay))
	return b[:ChunkBytes]
}

// Parse reads a chunk's head. It refuses one of another size, or whose bytes are not
// within its slice.
func (c *Chunk) Parse(b []byte) bool {
	if len(b) != ChunkBytes {
		return false
	}
	total, offset := binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
	length, delay := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	if total > mostBytes || offset > total || uint64(length) > total-offset ||
		delay > uint32(time.Minute/time.Microsecond) {
		return false
	}
	*c = Chunk{Total: int64(total), Offset: int64(offset), Length: int64(length)}
	c.Delay = time.Duration(delay) * time.Microsecond
	return true
}

// Bits of a word's flags.
const (
	flagInvite = 1 << iota
	flagBusy
	flagsKnown = flagInvite | flagBusy
)

// Put writes a word to b, which has room for WordBytes.
func (w *Word) Put(b []byte) []byte {
	flags := uint64(0)
	if w.Invite {
		flags |= flagInvite
	}
	if w.Busy {
		flags |= flagBusy
	}
	binary.LittleEndian.PutUint64(b[0:], uint64(w.Got))
	binary.LittleEndian.PutUint64(b[8:], flags)
	return b[:WordBytes]
}

// Parse reads a word. It refuses one of another size, and values that no member sends.
func (w *Word) Parse(b []byte) bool {
	if len(b) != WordBytes {
		return false
	}
	got, flags := binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
	if got > mostBytes || flags&^uint64(flagsKnown) != 0 {
		return false
	}
	*w = Word{Got: int64(got), Invite: flags&flagInvite != 0, Busy: flags&flagBusy != 0}
	return true
}
