package hot

import "structs"

// Active messages: their numbers, and the heads that the data plane reads and writes.
//
// Of the two-sided protocol the 64-bit active message header is the tag (0 for untagged messages). An id with DATA
// carries the remote CQ data as the first 8 bytes of its payload.
//
// Of the one-sided protocol (provider/internal/wire) the header is the address in the target's region, or the request
// that is answered.

// Ids of active messages. Heads that no structure here describes are package provider's.
//
//weft:enum weft_am
const (
	AMMsg       = 1 // untagged, complete in one active message
	AMMsgData   = 2
	AMTag       = 3
	AMTagData   = 4
	AMRTS       = 5  // a message is ready to send: head [RTSHead], header the tag
	AMSync      = 6  // complete, and asks for an acknowledgement: header the tag
	AMAck       = 7  // the header is the sender's request, head its outcome, 0: done
	AMCTS       = 8  // clear to send: the header is the sender's request
	AMFrag      = 9  // the header is the receiver's operation, head the offset
	AMAssist    = 10 // offers the sender a share of the copying: the header is its request
	AMWrite     = 11 // head [WriteHead], then the payload
	AMRead      = 12 // head [ReadHead]
	AMNotify    = 13 // head [WriteHead]: the payload is there already
	AMAtomic    = 14 // head [AtomicHead], then operands, then comparands
	AMRMADone   = 15
	AMReadData  = 16 // head the offset in what is read or fetched, then the bytes
	AMKeyAsk    = 17
	AMKeyAnswer = 18
	AMShare     = 19
	AMAccessed  = 20 // head the key
	AMLanding   = 21 // the header is the sender's request, the payload the key of the receiver's memory
	AMPut       = 22 // the header is the sender's request: what it is to put there
	AMHelped    = 23 // the header is the receiver's operation: the sender waits for a put to do
	AMCollJoin  = 24 // the header is the group's key
	AMCollStep  = 25 // the header is the receiver's group
	AMCollRTS   = 26 // the header is the receiver's group
	AMCollDone  = 27 // the header is the sender's request
	AMCollCTS   = 28 // the header is the sender's request
	AMCollFrag  = 29 // the header is the receiver's request, head the offset
	AMCollNote  = 30 // the header is the receiver's group, 0: not known
	AMNotice    = 31 // of notifications: the header is the sender's stream
)

// Bits of [RTSHead].Flags that the data plane knows; package provider has more.
const (
	RTSTagged = 1
	RTSData   = 2 // data is valid
	// RTSMatch is of a message with its payload: the acknowledgement waits until a receive has matched. Of a
	// rendezvous it always does.
	RTSMatch = 1 << 6
)

// RTSHead is the head of the RTS of a message of one element, which stays with its sender. Others have more behind it.
//
//weft:name weft_rts_head
type RTSHead struct {
	_       structs.HostLayout
	Request uint64 // of the sender, for the acknowledgement
	Length  uint64 // bytes of the message
	Data    uint64
	Flags   uint32 // RTS*, and more that are Go's (provider/internal/wire)
	Count   uint32 // elements
	Addr    uint64 // of the element in the sender's process
	Element uint64 // its bytes
}

// Bits of [WriteHead].Flags.
const (
	WriteAck  = 1 // the initiator waits for the answer, also on success
	WriteData = 2 // Data and Length are there
	WriteLast = 4 // the last message of its operation
	WriteEnds = 8 // the last of its element, as EndsElement; with WriteLast, as EndsShared
	// WriteElements: of several elements. The header is their number, and they begin the payload (ElementBytes each).
	WriteElements = 16
	// WriteRest comes with WriteData: Length bytes, which end with this message's, are the operation's one element.
	WriteRest = 32
)

// ElementBytes is the size of an element in a message that has several: its key, its address, and a word of its length
// and, in the upper byte, what it ends.
const ElementBytes = 24

// What a message of a read or an atomic operation ends: see [ReadHead].
const (
	EndsOperation = 1
	EndsElement   = 2 // one that is not the last of the operation, but the last one of its region
	EndsShared    = 3 // one of whose region another one follows
)

// ReadElements is [ReadHead].Ends of a read of several elements. The header is their number, the payload each one
// (ElementBytes).
const ReadElements = 256

// Bytes of a [WriteHead] as it is sent, without and with WriteData.
const (
	WriteHeadBytes     = 24 //weft:name WEFT_WRITE_HEAD
	WriteHeadDataBytes = 40 //weft:name WEFT_WRITE_HEAD_DATA
)

// WriteHead is the head of a write, or of a piece of one.
//
//weft:name weft_write_head
type WriteHead struct {
	_       structs.HostLayout
	Key     uint64
	Request uint64 // 0: no answer is expected
	Flags   uint64 // Write*
	Data    uint64 // this and length with WriteData only
	Length  uint64 // bytes of the whole operation
}

// ReadHead is the head of a read, or of a piece of one, which has no payload.
//
//weft:name weft_read_head
type ReadHead struct {
	_       structs.HostLayout
	Key     uint64
	Request uint64
	Length  uint64 // bytes that are asked for
	At      uint64 // where they belong in the operation
	Ends    uint64 // Ends*, 0: the element has more messages
}

// DoneHead is the head of an answer to an operation that has no bytes to return, or has failed.
//
//weft:name weft_done_head
type DoneHead struct {
	_      structs.HostLayout
	Status uint64 // a positive errno, 0: success
	Units  uint64 // that it is for: bytes of a read or of an atomic's result, elements of a write, else messages
	At     uint64 // where these bytes begin in a read, the refused element of a write of several, else NoPlace
}

// NoPlace is [DoneHead].At of what has no place in a read.
const NoPlace = 1<<64 - 1

// Kinds of atomics (package provider/atomics).
const (
	AtomicPlain   = 0
	AtomicFetch   = 1
	AtomicCompare = 2
)

// AtomicHead is the head of an atomic operation.
//
//weft:name weft_atomic_head
type AtomicHead struct {
	_        structs.HostLayout
	Key      uint64
	Request  uint64
	Op       uint8  // enum fi_op
	Datatype uint8  // enum fi_datatype
	Kind     uint8  // Atomic*
	Ends     uint8  // Ends*
	Count    uint32 // elements
	At       uint64 // where the result belongs in the operation's, bytes
}

// Values of [NoticeHead].Kind; others are package provider's.
const (
	NoticeData = 1 // bytes of a notification
	// a whole notification, then the bytes of the write that it is about: a [NoticeWhere] follows the head
	NoticeMove = 4
	// a whole notification of a stream that the receiver knows, behind a [NoticeShort]: with up to 32 bytes it is in
	// one cache line
	NoticeBrief = 5
)

// What a notification is about, in [NoticeHead].Op.
const (
	NoticeWrite = 0
	NoticeRead  = 1
	NoticeAlone = 2
)

// NoticeHead is the head of a message that has bytes of a notification: first of the sender's name for itself, then of
// the notification.
//
//weft:name weft_notice_head
type NoticeHead struct {
	_      structs.HostLayout
	Kind   uint8
	Op     uint8  // Notice*
	Agent  uint8  // bytes of the name
	Ack    uint8  // 1: the sender waits until the receiver keeps it
	Status uint32 // why the post failed, 0: it did not
	Start  uint64 // cost of the stream's notifications before this one
	Tag    uint64
	Length uint32 // bytes of the name and the notification
	Offset uint32 // of the message's payload in these
}

// NoticeShort is the head of a message with a whole notification, which is not to be acknowledged. The message's header
// is its tag; the stream is the sender's, and Mark says that it is the one and where in it the notification is.
//
//weft:name weft_notice_short
type NoticeShort struct {
	_     structs.HostLayout
	Kind  uint8  // NoticeBrief
	Op    uint8  // Notice*
	Agent uint8  // bytes of the name
	Rest  uint8  // 0
	Mark  uint32 // NoticeMark
}

// NoticeMark is [NoticeShort].Mark of a notification that start bytes of cost precede in a stream.
func NoticeMark(stream, start uint64) uint32 { return uint32(stream) + uint32(start) }

// NoticeWhere is where the bytes of a write belong that come with its notification.
//
//weft:name weft_notice_where
type NoticeWhere struct {
	_     structs.HostLayout
	Key   uint64
	Addr  uint64 // in the target's region
	Bytes uint64
}
