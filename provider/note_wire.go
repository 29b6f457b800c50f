package provider

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// amNotice is each message of notifications. Its header is the stream, a random number that
// the sender chooses for each connection to a receiver; the first byte of its head is its kind.
const amNotice hw.AMID = hot.AMNotice

// Kinds of messages.
const (
	noticeData   = hot.NoticeData + iota // sender to receiver: head noticeHead, and payload
	noticeCredit                         // receiver to sender: head noticeWords, limit and arrived
	noticeAsk                            // sender to receiver: head noticeWords, need and want
	noticeMove                           // sender to receiver, hot.NoticeMove: by the data plane only
)

const (
	noticeHeadBytes  = 32
	noticeMoveBytes  = noticeHeadBytes + 24
	noticeWordsBytes = 24
)

const (
	// MaxNote is the most bytes of a notification.
	MaxNote = hot.NoticeLongest
	// MaxAgent is the most bytes of the name that an endpoint gives itself.
	MaxAgent = hot.AgentLongest
	// noteCost is what a notification counts beside its bytes, for what both ends know of it.
	noteCost = hot.NoticeCost
	// noteWindow is what a sender may have on its way to a receiver, or waiting there, without asking.
	noteWindow = 16 << 10
	// noteWant is how much it asks for beyond the notification at hand, at most.
	noteWant = 256 << 10
	// noteExtra is what a receiver lends a sender beyond its window without being asked, while nobody asks and less
	// than half of what it lends is lent.
	noteExtra = 240 << 10
)

// noticeHead is hot.NoticeHead, which the data plane writes and reads too.
type noticeHead struct {
	op     NoteOp
	agent  uint8  // bytes of the name
	ack    bool   // the sender waits until it has arrived
	status uint16 // why the post failed, 0: it did not
	start  uint64 // cost of the stream's notifications before this one
	tag    uint64
	length uint32 // bytes of the name and the notification
	offset uint32 // of the payload in these
}

func (h *noticeHead) put(b []byte) []byte {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = noticeData, byte(h.op), h.agent, 0
	if h.ack {
		b[3] = 1
	}
	le.PutUint32(b[4:], uint32(h.status))
	le.PutUint64(b[8:], h.start)
	le.PutUint64(b[16:], h.tag)
	le.PutUint32(b[24:], h.length)
	le.PutUint32(b[28:], h.offset)
	return b[:noticeHeadBytes]
}

// parse decodes the head of a message with n bytes of payload. It refuses a payload that is not in the
// notification, or is empty although the notification is not.
func (h *noticeHead) parse(b []byte, n int) bool {
	if len(b) != noticeHeadBytes || b[0] != noticeData || b[3] > 1 {
		return false
	}
	le := binary.LittleEndian
	status := le.Uint32(b[4:])
	*h = noticeHead{
		op: NoteOp(b[1]), agent: b[2], ack: b[3] == 1, status: uint16(status), start: le.Uint64(b[8:]),
		tag:    le.Uint64(b[16:]),
		length: le.Uint32(b[24:]), offset: le.Uint32(b[28:]),
	}
	return h.op <= NoteAlone && status < 1024 && h.agent <= MaxAgent && uint32(h.agent) <= h.length && h.length-uint32(h.agent) <= MaxNote &&
		(n != 0) == (h.length != 0) && uint64(h.offset)+uint64(n) <= uint64(h.length)
}

// splitMove takes a message of kind noticeMove apart: what it is as one of noticeData, and the write. ok: it is one.
func splitMove(head, payload []byte) (plain [noticeHeadBytes]byte, note []byte, w move, ok bool) {
	if len(head) != noticeMoveBytes {
		return plain, nil, w, false
	}
	copy(plain[:], head)
	plain[0] = noticeData
	le := binary.LittleEndian
	w.head = writeHead{key: le.Uint64(head[noticeHeadBytes:]), flags: rmaLast}
	w.addr = le.Uint64(head[noticeHeadBytes+8:])
	n := le.Uint64(head[noticeHeadBytes+16:])
	length := uint64(le.Uint32(head[24:]))
	if n == 0 || length > uint64(len(payload)) || n != uint64(len(payload))-length || le.Uint32(head[28:]) != 0 {
		return plain, nil, w, false
	}
	w.data = payload[length:]
	return plain, payload[:length], w, true
}

// move is a write that came with its notification; the zero value is none.
type move struct {
	head writeHead
	addr uint64
	data []byte
}

func (h *noticeHead) cost() uint64 { return noteCost + uint64(h.length) }

// noticeWords are the two numbers of the other kinds, which count the cost of the stream's notifications
// from its start. noticeCredit: how far the sender may go, and how far the receiver has all. noticeAsk: how far the
// sender has to go for the next notification, and how far it has notifications for.
type noticeWords struct {
	kind byte
	a, b uint64
}

func (w *noticeWords) put(to []byte) []byte {
	binary.LittleEndian.PutUint64(to[0:], uint64(w.kind))
	binary.LittleEndian.PutUint64(to[8:], w.a)
	binary.LittleEndian.PutUint64(to[16:], w.b)
	return to[:noticeWordsBytes]
}

// parse refuses numbers of which the second is beyond what the first allows: more than the sender may
// send has not arrived, and nobody asks for less than the next notification.
func (w *noticeWords) parse(from []byte, payload int) bool {
	if len(from) != noticeWordsBytes || payload != 0 {
		return false
	}
	kind := binary.LittleEndian.Uint64(from)
	*w = noticeWords{byte(kind), binary.LittleEndian.Uint64(from[8:]), binary.LittleEndian.Uint64(from[16:])}
	switch kind {
	case noticeCredit:
		return w.b <= w.a
	case noticeAsk:
		return w.a <= w.b && w.b-w.a <= noteWant
	}
	return false
}

// NoteOp is what a notification tells of.
type NoteOp uint8

// What a notification tells of.
const (
	NoteWrite NoteOp = hot.NoticeWrite // a write to the receiver's memory
	NoteRead  NoteOp = hot.NoticeRead  // a read of it
	NoteAlone NoteOp = hot.NoticeAlone // nothing but itself
)

// Note is a notification that has arrived.
type Note struct {
	Src   fi.Addr  // the sender, fi.AddrNotAvail if it is not in the address vector
	Name  []byte   // the sender's address, as [AV.Insert] takes it
	Agent string   // what the sender calls itself ([Endpoint.SetAgent])
	Tag   uint64   // of the list, or of Notify
	Op    NoteOp   // what it tells of
	Err   fi.Errno // why the post failed, fi.Success: it did not
	Data  []byte   // at most MaxNote bytes, the receiver's to keep
}
