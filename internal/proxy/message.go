package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says what a request asks for.
type Kind uint16

// Requests that services answer.
const (
	KindHello      Kind = 1 + iota // the process's identity; the answer is a [Hello]
	KindName                       // the names of the process's endpoints
	KindState                      // the text of [State]
	KindDescriptor                 // a descriptor that was exported; see [Descriptors]
	KindEvents                     // the last [Events]
	KindRecall                     // give up what was fetched by a token; see [Descriptors]
	KindRegion                     // which descriptor has the memory of a region; the provider's
	KindCopy                       // copy between a region and memory of the asking process; the provider's
)

// Status is the outcome of a request.
type Status uint32

// Outcomes.
const (
	StatusOK      Status = iota
	StatusUnknown        // the service does not answer this kind
	StatusNone           // there is no such thing (any more)
	StatusBad            // the request does not parse
	StatusRefused        // the peer has no right to it
	StatusStale          // it is there no more, though its end was not reported
	statuses
)

// String returns the outcome's name.
func (s Status) String() string {
	if s >= statuses {
		return fmt.Sprintf("status %d", uint32(s))
	}
	return [...]string{"ok", "request not known", "not found", "bad request", "refused", "gone"}[s]
}

// A message is one packet of a SOCK_SEQPACKET socket, little endian:
//
//	0 magic 32 | 4 version 16 | 6 kind 16 | 8 id 32 | 12 status 32 | 16 body
//
// An answer has its request's kind and id. A request's status is 0. The length
// is the packet's.
const (
	messageMagic   = 0x74666577 // "weft"
	messageVersion = 1
	headerBytes    = 16
	// MaxBody is the longest body of a message, in bytes.
	MaxBody = 64 << 10
)

// errMessage is wrapped by the errors of parseMessage.
var errMessage = errors.New("proxy: bad message")

type message struct {
	kind   Kind
	id     uint32
	status Status
	body   []byte
}

// put appends the message to b.
func (m *message) put(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, messageMagic)
	b = binary.LittleEndian.AppendUint16(b, messageVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.kind))
	b = binary.LittleEndian.AppendUint32(b, m.id)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.status))
	return append(b, m.body...)
}

// parseMessage reads a packet that a peer wrote. body is part of b.
func parseMessage(b []byte) (m message, err error) {
	if len(b) < headerBytes || len(b) > headerBytes+MaxBody {
		return m, fmt.Errorf("%d bytes: %w", len(b), errMessage)
	}
	if magic := binary.LittleEndian.Uint32(b); magic != messageMagic {
		return m, fmt.Errorf("magic %#x: %w", magic, errMessage)
	}
	if version := binary.LittleEndian.Uint16(b[4:]); version != messageVersion {
		return m, fmt.Errorf("version %d, not %d: %w", version, messageVersion, errMessage)
	}
	m = message{
		kind:   Kind(binary.LittleEndian.Uint16(b[6:])),
		id:     binary.LittleEndian.Uint32(b[8:]),
		status: Status(binary.LittleEndian.Uint32(b[12:])),
		body:   b[headerBytes:],
	}
	if m.kind == 0 || m.status >= statuses {
		return m, fmt.Errorf("kind %d, status %d: %w", m.kind, m.status, errMessage)
	}
	return m, nil
}

// Hello is what a service says of its process.
type Hello struct {
	PID       uint32
	StartTime uint64 // in clock ticks since the start of the system, as in /proc/self/stat
}

const helloBytes = 12

func (h *Hello) put(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.PID)
	return binary.LittleEndian.AppendUint64(b, h.StartTime)
}

func parseHello(b []byte) (h Hello, err error) {
	if len(b) != helloBytes {
		return h, fmt.Errorf("hello of %d bytes: %w", len(b), errMessage)
	}
	return Hello{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])}, nil
}
