package provider

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/collective"
)

// Active messages of collective operations. A group has a number of its own at
// each member, which tells it to the others when it joins.
const (
	amCollJoin hw.AMID = hot.AMCollJoin // header the group's key, head joinHead
	amCollStep hw.AMID = hot.AMCollStep // header the receiver's group, head one of 3 (onStep), and the payload
	amCollRTS  hw.AMID = hot.AMCollRTS  // header the receiver's group, head stepHead and longHead
	amCollDone hw.AMID = hot.AMCollDone // header the sender's request, head as of amAck
	amCollCTS  hw.AMID = hot.AMCollCTS  // header the sender's request, head cts
	amCollFrag hw.AMID = hot.AMCollFrag // header the receiver's request, head the offset, and the payload
	amCollNote hw.AMID = hot.AMCollNote // header the receiver's group, 0: not known; head one of 3 (onNote)
)

const (
	joinHeadBytes  = 24
	stepHeadBytes  = 8
	longHeadBytes  = stepHeadBytes + 24
	noteHeadBytes  = 16
	chunkHeadBytes = stepHeadBytes + exchange.ChunkBytes
	wordHeadBytes  = stepHeadBytes + exchange.WordBytes
	pieceHeadBytes = stepHeadBytes + exchange.PieceBytes
	relayHeadBytes = stepHeadBytes + exchange.NoteBytes
)

// maxMembers is the most members of a group: what a message has room for.
const maxMembers = 1 << 24

// joinHead says who joins: with the key, all that the members know alike.
type joinHead struct {
	group uint64 // of the sender
	size  uint32 // members
	rank  uint32 // of the sender
	says  joinSettings
}

func (h *joinHead) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], h.group)
	binary.LittleEndian.PutUint32(b[8:], h.size)
	binary.LittleEndian.PutUint32(b[12:], h.rank)
	binary.LittleEndian.PutUint32(b[16:], h.says.pack())
	binary.LittleEndian.PutUint32(b[20:], h.says.relaySize)
	return b[:joinHeadBytes]
}

// parse refuses ranks that are not below the size.
func (h *joinHead) parse(b []byte) bool {
	if len(b) != joinHeadBytes {
		return false
	}
	h.group = binary.LittleEndian.Uint64(b[0:])
	h.size = binary.LittleEndian.Uint32(b[8:])
	h.rank = binary.LittleEndian.Uint32(b[12:])
	known := h.says.unpack(binary.LittleEndian.Uint32(b[16:]))
	h.says.relaySize = binary.LittleEndian.Uint32(b[20:])
	return known && h.rank < h.size && h.size <= maxMembers
}

// stepHead says which operation of a group a message belongs to.
type stepHead struct {
	seq  uint32 // of the operation
	kind collective.Kind
	rank uint32 // of the sender
}

func (h *stepHead) put(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[0:], h.seq)
	binary.LittleEndian.PutUint32(b[4:], uint32(h.kind)<<24|h.rank)
	return b[:stepHeadBytes]
}

// parse reads the head of a message whose head in all has size bytes.
func (h *stepHead) parse(b []byte, size int) bool {
	if len(b) != size {
		return false
	}
	h.seq = binary.LittleEndian.Uint32(b[0:])
	v := binary.LittleEndian.Uint32(b[4:])
	h.kind, h.rank = collective.Kind(v>>24), v&(maxMembers-1)
	return h.kind <= collective.AllToAllV
}

// longHead announces a payload that stays with the sender.
type longHead struct {
	stepHead
	request uint64 // of the sender
	length  uint64 // bytes
	addr    uint64 // in the sender's process
}

func (h *longHead) put(b []byte) []byte {
	h.stepHead.put(b)
	binary.LittleEndian.PutUint64(b[8:], h.request)
	binary.LittleEndian.PutUint64(b[16:], h.length)
	binary.LittleEndian.PutUint64(b[24:], h.addr)
	return b[:longHeadBytes]
}

// parse refuses memory that wraps.
func (h *longHead) parse(b []byte) bool {
	if !h.stepHead.parse(b, longHeadBytes) {
		return false
	}
	h.request = binary.LittleEndian.Uint64(b[8:])
	h.length = binary.LittleEndian.Uint64(b[16:])
	h.addr = binary.LittleEndian.Uint64(b[24:])
	return h.length <= maxMessage && h.addr+h.length >= h.addr
}

// collChunkHead is a fragment of a chunk of a slice that package exchange orders: from
// its first byte on, to the end of the chunk. It goes as amCollStep.
type collChunkHead struct {
	stepHead
	part exchange.Chunk
}

func (h *collChunkHead) put(b []byte) []byte {
	h.stepHead.put(b)
	h.part.Put(b[stepHeadBytes:])
	return b[:chunkHeadBytes]
}

func (h *collChunkHead) parse(b []byte) bool {
	return h.stepHead.parse(b, chunkHeadBytes) && h.part.Parse(b[stepHeadBytes:])
}

// collWordHead is what a receiver says about such a slice. It goes as amCollNote.
type collWordHead struct {
	stepHead
	word exchange.Word
}

func (h *collWordHead) put(b []byte) []byte {
	h.stepHead.put(b)
	h.word.Put(b[stepHeadBytes:])
	return b[:wordHeadBytes]
}

func (h *collWordHead) parse(b []byte) bool {
	return h.stepHead.parse(b, wordHeadBytes) && h.word.Parse(b[stepHeadBytes:])
}

// collPieceHead is a fragment of a piece that goes through a relay. It goes as amCollStep.
type collPieceHead struct {
	stepHead
	part exchange.Piece
}

func (h *collPieceHead) put(b []byte) []byte {
	h.stepHead.put(b)
	h.part.Put(b[stepHeadBytes:])
	return b[:pieceHeadBytes]
}

func (h *collPieceHead) parse(b []byte) bool {
	return h.stepHead.parse(b, pieceHeadBytes) && h.part.Parse(b[stepHeadBytes:])
}

// collRelayHead is what a source and a relay say to each other. It goes as amCollNote.
type collRelayHead struct {
	stepHead
	note exchange.Note
}

func (h *collRelayHead) put(b []byte) []byte {
	h.stepHead.put(b)
	h.note.Put(b[stepHeadBytes:])
	return b[:relayHeadBytes]
}

func (h *collRelayHead) parse(b []byte) bool {
	return h.stepHead.parse(b, relayHeadBytes) && h.note.Parse(b[stepHeadBytes:])
}

// noteHead says that an operation has failed at the sender or, with status 0,
// that the sender has left the group. In the latter case group is the
// sender's number of it.
type noteHead struct {
	group  uint64   // of a sender who leaves
	seq    uint32   // of the operation that failed
	status fi.Errno // why, below 1024; 0: the sender leaves
}

func (h *noteHead) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], h.group)
	binary.LittleEndian.PutUint32(b[8:], h.seq)
	binary.LittleEndian.PutUint32(b[12:], uint32(h.status))
	return b[:noteHeadBytes]
}

func (h *noteHead) parse(b []byte) bool {
	if len(b) != noteHeadBytes {
		return false
	}
	h.group = binary.LittleEndian.Uint64(b[0:])
	h.seq = binary.LittleEndian.Uint32(b[8:])
	v := binary.LittleEndian.Uint32(b[12:])
	h.status = fi.Errno(v)
	return v < 1024
}
