package wire

import "github.com/weft-fabric/weft/internal/exchange"

// CollChunk is a fragment of a chunk of a slice that package exchange orders: from
// its first byte on, to the end of the chunk. It goes as AMCollStep.
type CollChunk struct {
	CollStep
	Part exchange.Chunk
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollChunk) Put(b []byte) []byte {
	h.CollStep.Put(b)
	h.Part.Put(b[CollStepBytes:])
	return b[:CollChunkBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollChunk) Parse(b []byte) bool {
	return h.CollStep.Parse(b, CollChunkBytes) && h.Part.Parse(b[CollStepBytes:])
}

// CollWord is what a receiver says about such a slice. It goes as AMCollNote.
type CollWord struct {
	CollStep
	Word exchange.Word
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollWord) Put(b []byte) []byte {
	h.CollStep.Put(b)
	h.Word.Put(b[CollStepBytes:])
	return b[:CollWordBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollWord) Parse(b []byte) bool {
	return h.CollStep.Parse(b, CollWordBytes) && h.Word.Parse(b[CollStepBytes:])
}

// CollPiece is a fragment of a piece that goes through a relay. It goes as AMCollStep.
type CollPiece struct {
	CollStep
	Part exchange.Piece
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollPiece) Put(b []byte) []byte {
	h.CollStep.Put(b)
	h.Part.Put(b[CollStepBytes:])
	return b[:CollPieceBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollPiece) Parse(b []byte) bool {
	return h.CollStep.Parse(b, CollPieceBytes) && h.Part.Parse(b[CollStepBytes:])
}

// CollRelay is what a source and a relay say to each other. It goes as AMCollNote.
type CollRelay struct {
	CollStep
	Note exchange.Note
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollRelay) Put(b []byte) []byte {
	h.CollStep.Put(b)
	h.Note.Put(b[CollStepBytes:])
	return b[:CollRelayBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollRelay) Parse(b []byte) bool {
	return h.CollStep.Parse(b, CollRelayBytes) && h.Note.Parse(b[CollStepBytes:])
}
