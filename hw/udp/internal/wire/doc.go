// Package wire is the format of hw/udp's datagrams.
//
// All integers are little endian. Byte 0 is the magic number and the packet's
// type, byte 1 the stripe of the receiver that it is for, which steers it to
// one of the receiver's sockets before anything else is read.
//
//	Init    a client asks for a connection, at first without, then with a cookie
//	Retry   the answer to the first: a cookie, and no state kept
//	Moved   another answer: at which port the interface is that was asked for
//	Accept  the answer to the second: the server's connection id
//	Reset   a packet came for a connection that does not exist
//	Data    frames within a connection
//
// An Init is at least as long as what it can provoke (Retry, Moved, Accept), and a
// Reset at most as long as the shortest Data packet: no host is made to send
// more than was sent to it.
//
// A Data packet is a header, frames, and with an authorisation key a tag; then
// the frames are encrypted and the header is covered by the tag too. A
// packet's number is never used again in its connection: what is lost is sent
// anew in packets with new numbers (RFC 9000, section 12.3).
//
// Packet numbers, stream offsets and limits have 62 bits and travel as their lower 32: the
// receiver of one knows about where it is (RFC 9000, appendix A.3). No more than MaxWindow bytes of
// the stream are under way.
//
// Every byte here comes from a stranger. Parsing never panics, never allocates
// and checks every length and number; it is fuzzed.
package wire

import "errors"

// ErrMalformed is what all parsing errors wrap.
var ErrMalformed = errors.New("malformed datagram")

// Version is the version of the format. Another version's Init is ignored.
const Version = 7

// Type is a packet's type.
type Type uint8

// The packet types.
const (
	TypeInit Type = 1 + iota
	TypeRetry
	TypeAccept
	TypeReset
	TypeData
	TypeMoved
)

// magic is the upper half of byte 0.
const magic = 0xB0

// Sizes in bytes.
const (
	InitSize   = 112
	RetrySize  = 96
	MovedSize  = 64
	AcceptSize = 112
	ResetSize  = HeaderSize
	HeaderSize = 16 // of Data
	TagSize    = 16 // of an authenticated Data packet, and of the handshake's MAC
	CookieSize = 32
	NonceSize  = 16
	// MaxPacket is the largest UDP payload over IPv4.
	MaxPacket = 65507
)

// Ours reports whether a datagram claims to be of this protocol.
func Ours(b []byte) bool { return len(b) > 0 && b[0]&0xF0 == magic }

// TypeOf returns the type of a datagram, 0 for none of ours.
func TypeOf(b []byte) Type {
	if len(b) < HeaderSize || b[0]&0xF0 != magic {
		return 0
	}
	t := Type(b[0] & 0x0F)
	if t < TypeInit || t > TypeMoved {
		return 0
	}
	return t
}
