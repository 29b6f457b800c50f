package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/hot"
)

// Kinds of messages.
const (
	NoticeData   = hot.NoticeData + iota // sender to receiver: head Notice, and payload
	NoticeCredit                         // receiver to sender: head NoticeWords, limit and arrived
	NoticeAsk                            // sender to receiver: head NoticeWords, need and want
	NoticeMove                           // sender to receiver, hot.NoticeMove: by the data plane only
	NoticeBrief                          // sender to receiver, hot.NoticeBrief: likewise
)

// NoticeWant is how much a sender asks for beyond the notification at hand, at most, in bytes.
const NoticeWant = 256 << 10

// NoticeCost is what a notification counts beside its bytes, for what both ends know of it.
const NoticeCost = hot.NoticeCost

// Notice is hot.NoticeHead, which the data plane writes and reads too.
type Notice struct {
	Op     uint8  // hot.NoticeWrite, NoticeRead or NoticeAlone
	Agent  uint8  // bytes of the name
	Ack    bool   // the sender waits until it has arrived
	Status uint16 // why the post failed, 0: it did not
	Start  uint64 // cost of the stream's notifications before this one
	Tag    uint64
	Length uint32 // bytes of the name and the notification
	Offset uint32 // of the payload in these
}

// Put encodes h at the start of b and returns the bytes used.
func (h *Notice) Put(b []byte) []byte {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = NoticeData, h.Op, h.Agent, 0
	if h.Ack {
		b[3] = 1
	}
	le.PutUint32(b[4:], uint32(h.Status))
	le.PutUint64(b[8:], h.Start)
	le.PutUint64(b[16:], h.Tag)
	le.PutUint32(b[24:], h.Length)
	le.PutUint32(b[28:], h.Offset)
	return b[:NoticeBytes]
}

// Parse decodes the head of a message with n bytes of payload. It refuses a payload that is not in the
// notification, or is empty although the notification is not.
func (h *Notice) Parse(b []byte, n int) bool {
	if len(b) != NoticeBytes || b[0] != NoticeData || b[3] > 1 {
		return false
	}
	le := binary.LittleEndian
	status := le.Uint32(b[4:])
	*h = Notice{
		Op: b[1], Agent: b[2], Ack: b[3] == 1, Status: uint16(status), Start: le.Uint64(b[8:]),
		Tag:    le.Uint64(b[16:]),
		Length: le.Uint32(b[24:]), Offset: le.Uint32(b[28:]),
	}
	return h.Op <= hot.NoticeAlone && status < 1024 && h.Agent <= hot.AgentLongest &&
		uint32(h.Agent) <= h.Length && h.Length-uint32(h.Agent) <= hot.NoticeLongest &&
		(n != 0) == (h.Length != 0) && uint64(h.Offset)+uint64(n) <= uint64(h.Length)
}

// ParseShort decodes the head of a message of kind NoticeBrief with n bytes of payload, all of the notification. mark
// is to be hot.NoticeMark of the stream that its sender has, and of Start, which is not set.
func (h *Notice) ParseShort(b []byte, tag uint64, n int) (mark uint32, ok bool) {
	if len(b) != NoticeShortBytes || b[0] != NoticeBrief || b[3] != 0 || n > hot.NoticeLongest+hot.AgentLongest {
		return 0, false
	}
	*h = Notice{Op: b[1], Agent: b[2], Tag: tag, Length: uint32(n)}
	return binary.LittleEndian.Uint32(b[4:]), true
}

// SplitMove takes a message of kind NoticeMove apart: what it is as one of NoticeData, and the write. ok: it is one.
func SplitMove(head, payload []byte) (plain [NoticeBytes]byte, note []byte, w Move, ok bool) {
	if len(head) != NoticeMoveBytes {
		return plain, nil, w, false
	}
	copy(plain[:], head)
	plain[0] = NoticeData
	le := binary.LittleEndian
	w.Head = Write{Key: le.Uint64(head[NoticeBytes:]), Flags: WriteLast}
	w.Addr = le.Uint64(head[NoticeBytes+8:])
	n := le.Uint64(head[NoticeBytes+16:])
	length := uint64(le.Uint32(head[24:]))
	if n == 0 || length > uint64(len(payload)) || n != uint64(len(payload))-length || le.Uint32(head[28:]) != 0 {
		return plain, nil, w, false
	}
	w.Data = payload[length:]
	return plain, payload[:length], w, true
}

// Move is a write that came with its notification; the zero value is none.
type Move struct {
	Head Write
	Addr uint64
	Data []byte
}

// Cost is what the notification counts in its stream, in bytes.
func (h *Notice) Cost() uint64 { return NoticeCost + uint64(h.Length) }

// NoticeWords are the two numbers of the other kinds, which count the cost of the stream's notifications
// from its start. NoticeCredit: how far the sender may go, and how far the receiver has all. NoticeAsk: how far the
// sender has to go for the next notification, and how far it has notifications for.
type NoticeWords struct {
	Kind byte
	A, B uint64
}

// Put encodes w at the start of to and returns the bytes used.
func (w *NoticeWords) Put(to []byte) []byte {
	binary.LittleEndian.PutUint64(to[0:], uint64(w.Kind))
	binary.LittleEndian.PutUint64(to[8:], w.A)
	binary.LittleEndian.PutUint64(to[16:], w.B)
	return to[:NoticeWordsBytes]
}

// Parse refuses numbers of which the second is beyond what the first allows: more than the sender may
// send has not arrived, and no sender asks for less than the next notification.
func (w *NoticeWords) Parse(from []byte, payload int) bool {
	if len(from) != NoticeWordsBytes || payload != 0 {
		return false
	}
	kind := binary.LittleEndian.Uint64(from)
	*w = NoticeWords{byte(kind), binary.LittleEndian.Uint64(from[8:]), binary.LittleEndian.Uint64(from[16:])}
	switch kind {
	case NoticeCredit:
		return w.B <= w.A
	case NoticeAsk:
		return w.A <= w.B && w.B-w.A <= NoticeWant
	}
	return false
}
