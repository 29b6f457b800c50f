package wire

import (
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/hot"
)

// MaxMessage is the longest message, in bytes.
const MaxMessage = 1 << 40

// IOVLimit is the number of elements of one message's vector, on both sides:
// what an [RTS] has room for.
const IOVLimit = dataplane.VectorMax

// Bytes of the heads of one-sided operations.
const (
	WriteBytes     = hot.WriteHeadBytes     // without CQ data
	WriteDataBytes = hot.WriteHeadDataBytes // with CQ data
	ReadBytes      = 40
	AtomicBytes    = 32
	DoneBytes      = dataplane.DoneBytes
	ShareBytes     = 32
)

// HeadMost is the longest head of a message to a peer whose memory is not read by other ways, in bytes.
const HeadMost = 96

const _ uint = HeadMost - max(WriteDataBytes, ReadBytes, AtomicBytes, ShareBytes, NoticeMoveBytes, CollPutBytes,
	CollWordBytes, CollPieceBytes, CollLongBytes, rtsFixed+16*IOVLimit, OfferBytes, LandingBytes, regionRequestBytes,
	CollTargetBytes)

// Bytes of the heads of notifications.
const (
	NoticeShortBytes = 8
	NoticeBytes      = 32
	NoticeMoveBytes  = NoticeBytes + 24
	NoticeWordsBytes = 24
)

// Bytes of the heads of collective operations.
const (
	CollJoinBytes  = 32
	CollStepBytes  = 8
	CollLongBytes  = CollStepBytes + 24
	CollNoteBytes  = 16
	CollChunkBytes = CollStepBytes + exchange.ChunkBytes
	CollWordBytes  = CollStepBytes + exchange.WordBytes
	CollPieceBytes = CollStepBytes + exchange.PieceBytes
	CollRelayBytes = CollStepBytes + exchange.NoteBytes

	CollTargetBytes  = CollStepBytes + 9 + CollKey
	CollPutBytes     = CollChunkBytes + 8
	CollGrantBytes   = CollChunkBytes
	CollRefusalBytes = CollStepBytes + 8
)

// MaxMembers is the most members of a group: what a message has room for.
const MaxMembers = 1 << 24

// Bytes of the heads of two-sided messages.
const (
	rtsFixed     = dataplane.RTSFixed
	RTSBytes     = dataplane.RTSBytes // at most
	SyncBytes    = dataplane.SyncBytes
	AckBytes     = 8
	CTSBytes     = 16
	WordBytes    = 8
	OfferBytes   = 32
	LandingBytes = 24
	SpanBytes    = 16
)
