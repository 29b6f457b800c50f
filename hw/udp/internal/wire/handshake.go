package wire

import (
	"encoding/binary"
	"fmt"
)

// Side is what one side sends of itself in the handshake.
type Side struct {
	Stripe     uint8           // that its packets are to name
	CID        CID             // to be sent back
	Nonce      [NonceSize]byte // fresh random bytes, for the keys
	Window     uint64          // bytes of the message stream it has room for
	MaxPacket  uint16          // bytes of the largest datagram it takes
	MaxMessage uint32          // bytes of the largest record in its stream, head and payload and record header
	Buffer     uint8           // logarithm of the bytes that its sockets hold, at most maxBuffer
}

// Role is which of several interfaces that share a name an interface is. The zero
// value is that of an interface with a name of its own.
type Role struct {
	Port   uint16 // of the name; 0: the one that its packets come from
	Number uint8  // of the interface, below MaxInterfaces; 0 if Port is
}

// MaxInterfaces is how many interfaces can share a name.
const MaxInterfaces = 128

// Init asks for a connection. MAC is zero without an authorisation key.
type Init struct {
	Auth      bool  // an authorisation key is used
	Steer     uint8 // byte 1: chosen by the client, the same in all its Inits for a connection
	HasCookie bool
	Wanted    uint8 // number of the interface that is asked for, of those of the name
	Client    Side
	Role      Role // the client's
	Cookie    [CookieSize]byte
	MAC       [TagSize]byte
}

// Reply is what the answers to an Init have in common: what the client said of itself,
// given back. MAC is as in Init.
type Reply struct {
	Auth   bool
	Stripe uint8
	CID    CID
	Nonce  [NonceSize]byte
	MAC    [TagSize]byte
}

// ReplyTo begins an answer to a client.
func ReplyTo(auth bool, client *Side) Reply {
	return Reply{Auth: auth, Stripe: client.Stripe, CID: client.CID, Nonce: client.Nonce}
}

// Retry gives a cookie to put into the next Init.
type Retry struct {
	Reply
	Cookie [CookieSize]byte
}

// Moved has the port of the interface that an Init asked for, to be asked there.
type Moved struct {
	Reply
	Port uint16 // not 0
}

// Accept ends the handshake.
type Accept struct {
	Reply
	Server Side
}

// MACOffset returns where the MAC of a handshake packet starts, which covers
// all bytes before it. b is of one of their sizes.
func MACOffset(b []byte) int { return len(b) - TagSize }

const (
	flagAuth   = 1
	flagCookie = 2
)

func putHead(b []byte, t Type, stripe, flags uint8, cid CID, nonce *[NonceSize]byte) {
	clear(b)
	b[0], b[1], b[2], b[3] = magic|byte(t), stripe, Version, flags
	binary.LittleEndian.PutUint64(b[8:], uint64(cid))
	copy(b[16:32], nonce[:])
}

// checkHead checks what all handshake packets begin with.
func checkHead(b []byte, t Type, size int, flags uint8) error {
	if len(b) != size || TypeOf(b) != t {
		return fmt.Errorf("handshake packet of %d bytes: %w", len(b), ErrMalformed)
	}
	if b[2] != Version || b[3]&^flags != 0 {
		return fmt.Errorf("version %d, flags %#x: %w", b[2], b[3], ErrMalformed)
	}
	return nil
}

// Put writes the packet into b, which is InitSize long.
func (p *Init) Put(b []byte) {
	flags := uint8(0)
	if p.Auth {
		flags |= flagAuth
	}
	if p.HasCookie {
		flags |= flagCookie
	}
	putHead(b[:InitSize], TypeInit, p.Steer, flags, p.Client.CID, &p.Client.Nonce)
	p.Client.putLimits(b[32:48])
	copy(b[48:80], p.Cookie[:])
	b[80], b[81] = p.Wanted, p.Role.Number
	binary.LittleEndian.PutUint16(b[82:], p.Role.Port)
	copy(b[InitSize-TagSize:], p.MAC[:])
}

// Parse reads the packet from b.
func (p *Init) Parse(b []byte) error {
	if err := checkHead(b, TypeInit, InitSize, flagAuth|flagCookie); err != nil {
		return err
	}
	*p = Init{Steer: b[1], Auth: b[3]&flagAuth != 0, HasCookie: b[3]&flagCookie != 0}
	c := &p.Client
	c.CID = CID(binary.LittleEndian.Uint64(b[8:]))
	copy(c.Nonce[:], b[16:32])
	copy(p.Cookie[:], b[48:80])
	p.Wanted, p.Role = b[80], Role{Number: b[81], Port: binary.LittleEndian.Uint16(b[82:])}
	copy(p.MAC[:], b[InitSize-TagSize:])
	if max(p.Wanted, p.Role.Number) >= MaxInterfaces || p.Role.Port == 0 && p.Role.Number != 0 {
		return fmt.Errorf("interface %d of port %d asks for %d: %w", p.Role.Number, p.Role.Port, p.Wanted, ErrMalformed)
	}
	return c.parseLimits(b[32:48])
}

// putLimits writes window, message and packet limit, stripe and buffer, 16 bytes.
func (s *Side) putLimits(b []byte) {
	binary.LittleEndian.PutUint64(b, s.Window)
	binary.LittleEndian.PutUint32(b[8:], s.MaxMessage)
	binary.LittleEndian.PutUint16(b[12:], s.MaxPacket)
	b[14], b[15] = s.Stripe, s.Buffer
}

// MaxWindow bounds a window in bytes: what is within one of where the receiver is has
// an offset of which 32 bits are enough.
const MaxWindow = 1 << 30

// maxBuffer is that of a socket's buffer as a logarithm.
const maxBuffer = 32

// MinPacket is the least size of datagram that every host must take: what is
// left of IPv6's least MTU.
const MinPacket = 1200

func (s *Side) parseLimits(b []byte) error {
	s.Window = binary.LittleEndian.Uint64(b)
	s.MaxMessage = binary.LittleEndian.Uint32(b[8:])
	s.MaxPacket = binary.LittleEndian.Uint16(b[12:])
	s.Stripe, s.Buffer = b[14], b[15]
	if s.Window > MaxWindow || uint64(s.MaxMessage) > s.Window || s.MaxPacket < MinPacket || s.MaxPacket > MaxPacket ||
		s.Buffer > maxBuffer {
		return fmt.Errorf("window %d, message %d, packet %d, buffer 2^%d: %w", s.Window, s.MaxMessage, s.MaxPacket,
			s.Buffer, ErrMalformed)
	}
	return nil
}

// put begins a packet in b, which is as long as packets of type t are.
func (r *Reply) put(b []byte, t Type) {
	flags := uint8(0)
	if r.Auth {
		flags = flagAuth
	}
	putHead(b, t, r.Stripe, flags, r.CID, &r.Nonce)
	copy(b[MACOffset(b):], r.MAC[:])
}

// parse reads what a packet of type t, of size bytes, begins with.
func (r *Reply) parse(b []byte, t Type, size int) error {
	if err := checkHead(b, t, size, flagAuth); err != nil {
		return err
	}
	*r = Reply{
		Stripe: b[1], Auth: b[3]&flagAuth != 0,
		CID:   CID(binary.LittleEndian.Uint64(b[8:])),
		Nonce: [NonceSize]byte(b[16:32]), MAC: [TagSize]byte(b[MACOffset(b):]),
	}
	return nil
}

// Put writes the packet into b, which is RetrySize long.
func (p *Retry) Put(b []byte) {
	p.put(b[:RetrySize], TypeRetry)
	copy(b[32:64], p.Cookie[:])
}

// Parse reads the packet from b.
func (p *Retry) Parse(b []byte) error {
	if err := p.parse(b, TypeRetry, RetrySize); err != nil {
		return err
	}
	p.Cookie = [CookieSize]byte(b[32:64])
	return nil
}

// Put writes the packet into b, which is MovedSize long.
func (p *Moved) Put(b []byte) {
	p.put(b[:MovedSize], TypeMoved)
	binary.LittleEndian.PutUint16(b[32:], p.Port)
}

// Parse reads the packet from b.
func (p *Moved) Parse(b []byte) error {
	if err := p.parse(b, TypeMoved, MovedSize); err != nil {
		return err
	}
	if p.Port = binary.LittleEndian.Uint16(b[32:]); p.Port == 0 {
		return fmt.Errorf("moved to port 0: %w", ErrMalformed)
	}
	return nil
}

// Put writes the packet into b, which is AcceptSize long.
func (p *Accept) Put(b []byte) {
	p.put(b[:AcceptSize], TypeAccept)
	s := &p.Server
	s.putLimits(b[32:48])
	copy(b[48:64], s.Nonce[:])
	binary.LittleEndian.PutUint64(b[64:], uint64(s.CID))
}

// Parse reads the packet from b.
func (p *Accept) Parse(b []byte) error {
	if err := p.parse(b, TypeAccept, AcceptSize); err != nil {
		return err
	}
	p.Server = Side{
		Nonce: [NonceSize]byte(b[48:64]), CID: CID(binary.LittleEndian.Uint64(b[64:])),
	}
	return p.Server.parseLimits(b[32:48])
}
