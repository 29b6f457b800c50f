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
	// Low and Have are the pieces of the slice's end that have arrived: those below Low, and Low + k for
	// each bit k of Have.
	Low  uint32
	Have uint64
	// Rest is what the receiver's own link needs for all that it has to receive, up to an hour, if Rested.
	Rest   time.Duration
	Rested bool
	// Idle says that less arrives at the receiver than its own link carries.
	Idle bool
}

// Unasked reports whether a word acknowledges nothing: a receiver may say it before its sender begins.
func (w *Word) Unasked() bool { return w.Got == 0 && w.Low == 0 && w.Have == 0 }

// Piece is what a piece begins with. Its bytes may come in several messages.
type Piece struct {
	// Total is the slice's bytes, Number is counted from its end on.
	Total  int64
	Number uint32
	// Offset is where the message's bytes are in the piece.
	Offset int64
	// Hop: to a relay, which is to pass it on to Third, by the request Serial. Else to the target, from
	// Third. Third is a peer as the receiver numbers them, or Own for the sender itself.
	Hop    bool
	Third  int32
	Serial uint32
}

// Own is a piece's sender itself.
const Own = -1

// NoteKind is what a note says.
type NoteKind uint8

const (
	// NoteAsk asks a member to pass pieces on to Third, to which the sender's path delivers Rate.
	NoteAsk NoteKind = iota
	// NoteGrant allows Count pieces, in all.
	NoteGrant
	// NoteRefuse takes a request back at the relay's: pieces that have not arrived may be lost.
	NoteRefuse
	// NoteEnd says that no more than the Count pieces come that were sent.
	NoteEnd
	noteKinds
)

// Note is what a source and a relay say to each other about a request.
type Note struct {
	Kind   NoteKind
	Serial uint32
	Count  uint32
	Third  int32   // as the receiver numbers peers
	Rate   float64 // bytes per second, to 1000
}

// Bytes of a chunk's head and of a word.
const (
	ChunkBytes = 24
	WordBytes  = 32
	PieceBytes = 28
	NoteBytes  = 16
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

// Bits of a word's flags. A member drops a word with a bit that it does not know, and what the word acknowledges with
// it. So with a bit the versions of the transports change: hot.SegVersion, those of addresses of hw/cxi and of packets
// of hw/verbs, and wire.Version of hw/udp.
const (
	flagInvite = 1 << iota
	flagBusy
	flagRested
	flagIdle
	flagsKnown = flagInvite | flagBusy | flagRested | flagIdle
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
	rest := time.Duration(0)
	if w.Idle {
		flags |= flagIdle
	}
	if w.Rested {
		flags |= flagRested
		rest = min(max(w.Rest, 0), time.Hour) / time.Microsecond
	}
	binary.LittleEndian.PutUint64(b[0:], uint64(w.Got))
	binary.LittleEndian.PutUint64(b[8:], flags)
	binary.LittleEndian.PutUint64(b[16:], w.Have)
	binary.LittleEndian.PutUint32(b[24:], w.Low)
	binary.LittleEndian.PutUint32(b[28:], uint32(rest))
	return b[:WordBytes]
}

// Parse reads a word. It refuses one of another size, and values that no member sends.
func (w *Word) Parse(b []byte) bool {
	if len(b) != WordBytes {
		return false
	}
	got, flags := binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
	rest := binary.LittleEndian.Uint32(b[28:])
	if got > mostBytes || flags&^uint64(flagsKnown) != 0 || rest > uint32(time.Hour/time.Microsecond) ||
		rest != 0 && flags&flagRested == 0 {
		return false
	}
	*w = Word{
		Got: int64(got), Invite: flags&flagInvite != 0, Busy: flags&flagBusy != 0, Rested: flags&flagRested != 0,
		Idle: flags&flagIdle != 0,
		Have: binary.LittleEndian.Uint64(b[16:]), Low: binary.LittleEndian.Uint32(b[24:]),
		Rest: time.Duration(rest) * time.Microsecond,
	}
	return true
}

// hopBit is the bit of a piece's offset that says to a relay.
const hopBit = 1 << 31

// Put writes a piece's head to b, which has room for PieceBytes.
func (c *Piece) Put(b []byte) []byte {
	offset := uint32(c.Offset)
	if c.Hop {
		offset |= hopBit
	}
	binary.LittleEndian.PutUint64(b[0:], uint64(c.Total))
	binary.LittleEndian.PutUint32(b[8:], c.Number)
	binary.LittleEndian.PutUint32(b[12:], offset)
	binary.LittleEndian.PutUint32(b[16:], uint32(c.Third))
	binary.LittleEndian.PutUint32(b[20:], c.Serial)
	binary.LittleEndian.PutUint32(b[24:], 0)
	return b[:PieceBytes]
}

// Parse reads a piece's head. It refuses one of another size, and values that no member sends.
func (c *Piece) Parse(b []byte) bool {
	if len(b) != PieceBytes {
		return false
	}
	total, offset := binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint32(b[12:])
	*c = Piece{
		Total: int64(total), Number: binary.LittleEndian.Uint32(b[8:]), Offset: int64(offset &^ hopBit),
		Hop: offset&hopBit != 0, Third: int32(binary.LittleEndian.Uint32(b[16:])),
		Serial: binary.LittleEndian.Uint32(b[20:]),
	}
	return total <= mostBytes && c.Third >= Own && binary.LittleEndian.Uint32(b[24:]) == 0
}

// Put writes a note to b, which has room for NoteBytes.
func (n *Note) Put(b []byte) []byte {
	rate := min(max(n.Rate/1000, 0), 1<<32-1)
	if n.Kind == NoteAsk {
		binary.LittleEndian.PutUint32(b[8:], uint32(rate))
	} else {
		binary.LittleEndian.PutUint32(b[8:], n.Count)
	}
	binary.LittleEndian.PutUint32(b[0:], uint32(n.Kind))
	binary.LittleEndian.PutUint32(b[4:], n.Serial)
	binary.LittleEndian.PutUint32(b[12:], uint32(n.Third))
	return b[:NoteBytes]
}

// Parse reads a note. It refuses one of another size, and values that no member sends.
func (n *Note) Parse(b []byte) bool {
	if len(b) != NoteBytes {
		return false
	}
	kind, count := binary.LittleEndian.Uint32(b[0:]), binary.LittleEndian.Uint32(b[8:])
	third := int32(binary.LittleEndian.Uint32(b[12:]))
	if kind >= uint32(noteKinds) || third < 0 || third != 0 && kind != uint32(NoteAsk) {
		return false
	}
	*n = Note{Kind: NoteKind(kind), Serial: binary.LittleEndian.Uint32(b[4:]), Third: third}
	if n.Kind == NoteAsk {
		n.Rate = float64(count) * 1000
	} else {
		n.Count = count
	}
	return true
}
