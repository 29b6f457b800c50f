package proto

// Portal indices of an endpoint's PID.
const (
	IndexMessages = 0   // messages
	IndexDone     = 127 // notices that the data of a rendezvous has been read, beside IndexSource
	// IndexRestricted and the address context (LAC) behind it: data of rendezvous, without matching
	IndexRestricted = 229
	IndexSource     = 255 // data of rendezvous, read by match bits, and notices
)

// Limits of the protocol.
const (
	TagMask = 1<<48 - 1 // bits of a tag
	// TxIDs is the number of ids of messages that wait for their match.
	TxIDs = 1 << 11
	// RendezvousIDs is the number of ids of rendezvous, of which the first UntaggedIDs are for untagged ones: a receive
	// of many messages knows those of one sender by the lower eight bits.
	RendezvousIDs = 1 << 15
	UntaggedIDs   = 1 << 8
	LACs          = 8
)

// Match bits of messages:
//
//	tag:48 | id:11 | data | tagged | match | done | zero
//
// with rendezvous, behind the tag:
//
//	high bits of the id:7 | LAC:4 | data | tagged | protocol:2 | zero
const (
	idShift       = 48
	lacShift      = 55
	dataBit       = 1 << 59 // the header data is the application's
	taggedBit     = 1 << 60
	matchBit      = 1 << 61 // the sender waits for the match
	doneBit       = 1 << 62 // of a notice: the data of a rendezvous has been read
	zeroBit       = 1 << 63 // a notice: no message
	protocolShift = 61
	idMask        = TxIDs - 1
	highMask      = 1<<7 - 1
	lacMask       = 1<<4 - 1
)

// Protocol says how the data of a rendezvous is read.
type Protocol uint32

const (
	// ProtocolDefault: by the receiver's NIC, or by the receiver, from IndexSource.
	ProtocolDefault Protocol = iota
	// ProtocolRestricted: if by the receiver, by restricted gets from IndexRestricted, and a notice follows.
	ProtocolRestricted
)

// Message is what the match bits of a message say to its receiver.
type Message struct {
	Tag    uint64 // 0 if it is not tagged
	Tagged bool
	Data   bool // the header data is the application's
}

// Bits are the match bits of a message that does not wait for its match.
func (m Message) Bits() uint64 {
	b := uint64(0)
	if m.Tagged {
		b = m.Tag&TagMask | taggedBit
	}
	if m.Data {
		b |= dataBit
	}
	return b
}

// BitsMatched are those of one that waits for it. id is below TxIDs.
func (m Message) BitsMatched(id uint32) uint64 {
	return m.Bits() | matchBit | uint64(id&idMask)<<idShift
}

// MessageOf is what match bits say, of a rendezvous, too.
func MessageOf(bits uint64) Message {
	return Message{Tag: bits & TagMask, Tagged: bits&taggedBit != 0, Data: bits&dataBit != 0}
}

// Awaits reports whether the sender of a message that is no rendezvous waits for its match, by which id.
func Awaits(bits uint64) (id uint32, ok bool) {
	return uint32(bits >> idShift & idMask), bits&(matchBit|zeroBit) == matchBit
}

// Rendezvous is what match bits and command of a rendezvous say of its data.
type Rendezvous struct {
	ID       uint32 // below RendezvousIDs
	LAC      uint32 // address context of the sender's memory
	Protocol Protocol
}

// Bits are the match bits of a rendezvous with a message. The lower bits of the id are in the command
// ([Rendezvous.Low]).
func (r Rendezvous) Bits(m Message) uint64 {
	return m.Bits() | uint64(r.ID>>8&highMask)<<idShift | uint64(r.LAC&lacMask)<<lacShift |
		uint64(r.Protocol)<<protocolShift
}

// Low are the bits of the id that the command carries.
func (r Rendezvous) Low() uint32 { return r.ID & 0xff }

// RendezvousOf is what the match bits and the command's bits say. False: the address context or the protocol is none.
func RendezvousOf(bits uint64, low uint32) (Rendezvous, bool) {
	r := Rendezvous{
		ID:  uint32(bits>>idShift&highMask)<<8 | low&0xff,
		LAC: uint32(bits >> lacShift & lacMask), Protocol: Protocol(bits >> protocolShift & 3),
	}
	return r, r.LAC < LACs && r.Protocol <= ProtocolRestricted
}

// Source are the match bits of a get from IndexSource.
func (r Rendezvous) Source() uint64 {
	return uint64(r.Low()) | uint64(r.ID>>8&highMask)<<idShift | uint64(r.LAC&lacMask)<<lacShift
}

// Done are the match bits of the notice that a rendezvous' data has been read.
func (r Rendezvous) Done() uint64 {
	return uint64(r.Low()) | uint64(r.ID>>8&highMask)<<idShift | doneBit | zeroBit
}

// SourceID is the id of the rendezvous that a get from IndexSource, or its notice, is for. Always below RendezvousIDs.
func SourceID(bits uint64) uint32 { return uint32(bits>>idShift&highMask)<<8 | uint32(bits&0xff) }

// Matched are the match bits of the notice that a message has found its receive.
func Matched(id uint32) uint64 { return zeroBit | uint64(id&idMask)<<idShift }

// NoticeOf is what a notice is of: a rendezvous, the data of which has been read, or a message that has found its
// receive. False: the bits are no notice's.
func NoticeOf(bits uint64) (id uint32, done, ok bool) {
	if bits&zeroBit == 0 {
		return 0, false, false
	}
	if bits&doneBit != 0 {
		return SourceID(bits), true, true
	}
	return uint32(bits >> idShift & idMask), false, true
}

// Receive are the match bits of a receive, and those of them that match anything: ignore of a tag, and all that says
// how a message is sent.
func Receive(tag, ignore uint64, tagged bool) (bits, ignored uint64) {
	const how = ^uint64(TagMask) &^ taggedBit
	if !tagged {
		return 0, how
	}
	return tag&TagMask | taggedBit, ignore&TagMask | how
}

// SourceEntry are the match bits of the list entry through which the data of rendezvous in an address context is read,
// and those that match anything.
func SourceEntry(lac uint32) (bits, ignored uint64) {
	return uint64(lac&lacMask) << lacShift, ^uint64(lacMask << lacShift)
}

// NoticeEntry are those of the entry for notices.
func NoticeEntry() (bits, ignored uint64) { return zeroBit, zeroBit - 1 }
