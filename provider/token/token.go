package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/provider/names"
)

// Limits, in bytes.
const (
	MaxLen   = 512 // of a token
	MaxAgent = 64  // of the name of an agent
	// MaxText is the longest text form.
	MaxText = len(textPrefix) + (MaxLen*8+5)/6
)

// Version is that of the tokens that this package writes, and reads.
const Version = 1

// Rights that a token has; those of the region.
const (
	Read  uint16 = 1 << iota // peers may read
	Write                    // peers may write
)

// Kind is the kind of memory that a region is of.
type Kind uint8

// Kinds of memory.
const (
	Host   Kind = iota // the process's own
	CUDA               // of a GPU
	DMABuf             // a dma-buf
)

// String returns the kind's name, as messages have it.
func (k Kind) String() string {
	switch k {
	case Host:
		return "host"
	case CUDA:
		return "CUDA"
	case DMABuf:
		return "dma-buf"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Types of parts.
const (
	PartMessages uint16 = 1 // the owner serves reads and writes that come as messages; no body
	PartIPC      uint16 = 2 // the owner's process, as IPC describes it
	PartCUDA     uint16 = 3 // where the region is in an allocation of a GPU, as Device describes it
	PartDMABuf   uint16 = 4 // the same of a dma-buf
	PartRDMA     uint16 = 5 // the key of a device that reaches the region, as RDMA describes it; one for each device
	PartContext  uint16 = 6 // which receive context the owner is, unless it is the first of its endpoint: index:2
)

// ErrInvalid is what does not parse.
var ErrInvalid = errors.New("not a memory token")

// Part is one part of a token.
type Part struct {
	Type uint16
	Body []byte
}

// Token is what a memory token says.
type Token struct {
	Owner       names.Name // of the endpoint by which the region is reached
	Incarnation uint64     // of that endpoint: another one under the same name has another
	Agent       string     // what the application calls the owner, at most MaxAgent bytes
	Key         uint64     // by which peers name the region
	Base        uint64     // by which peers name the region's first byte
	Length      uint64     // bytes
	Rights      uint16
	Kind        Kind
	Device      [16]byte // UUID of the device that has the memory, zero where there is none
	Parts       []Part
}

const (
	magic      = "wtok"
	fixedLen   = 88
	partHead   = 4
	sealLen    = 16
	keySealLen = 8 // of each of several keys
	flagKeyed  = 1 << 0
	textPrefix = "weft1:"
)

// Find returns the body of the first part of a type.
func (t *Token) Find(typ uint16) (body []byte, ok bool) {
	for _, p := range t.Parts {
		if p.Type == typ {
			return p.Body, true
		}
	}
	return nil, false
}

// size is how many bytes the token has.
func (t *Token) size() int {
	n := fixedLen + len(t.Agent) + sealLen
	for _, p := range t.Parts {
		n += partHead + len(p.Body)
	}
	return n
}

// Append appends the token, sealed with keys, any of which opens it, or with none. The error
// wraps ErrInvalid: a key is empty, the agent's name is too long, the owner has no address, or it
// all is longer than MaxLen.
func (t *Token) Append(b []byte, keys ...[]byte) ([]byte, error) {
	n, seals := t.size(), 0
	if len(keys) > 1 {
		seals = len(keys)
		n += seals * keySealLen
	}
	switch {
	case slices.ContainsFunc(keys, func(k []byte) bool { return len(k) == 0 }):
		return b, fmt.Errorf("%w: an empty authorisation key", ErrInvalid)
	case len(t.Agent) > MaxAgent:
		return b, fmt.Errorf("%w: the agent's name has %d bytes, at most %d", ErrInvalid, len(t.Agent), MaxAgent)
	case t.Owner.Family != names.AFInet && t.Owner.Family != names.AFInet6:
		return b, fmt.Errorf("%w: the owner has no address", ErrInvalid)
	case n > MaxLen:
		return b, fmt.Errorf("%w: it takes %d bytes, at most %d", ErrInvalid, n, MaxLen)
	}
	start, le := len(b), binary.LittleEndian
	b = append(b, magic...)
	b = le.AppendUint16(b, Version)
	b = le.AppendUint16(b, uint16(n))
	b = le.AppendUint16(b, uint16(fixedLen+len(t.Agent)))
	b = le.AppendUint16(b, t.Rights)
	b = append(b, byte(t.Kind), byte(len(t.Agent)))
	flags := byte(0)
	if len(keys) != 0 {
		flags |= flagKeyed
	}
	b = append(b, flags, byte(seals))
	b = le.AppendUint16(b, t.Owner.Family)
	b = le.AppendUint16(b, t.Owner.Port)
	b = le.AppendUint32(b, t.Owner.Scope)
	b = append(b, t.Owner.IP[:]...)
	for _, v := range [...]uint64{t.Incarnation, t.Key, t.Base, t.Length} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, t.Device[:]...)
	b = append(b, t.Agent...)
	for _, p := range t.Parts {
		b = le.AppendUint16(b, p.Type)
		b = le.AppendUint16(b, uint16(len(p.Body)))
		b = append(b, p.Body...)
	}
	if seals == 0 {
		seal := sealOf(b[start:], slices.Concat(keys...))
		return append(b, seal[:]...), nil
	}
	body := b[start:]
	for _, k := range keys {
		seal := sealOf(body, k)
		b = append(b, seal[:keySealLen]...)
	}
	seal := sealOf(b[start:], nil)
	return append(b, seal[:]...), nil
}

// sealOf is the seal of bytes.
func sealOf(b, auth []byte) (seal [sealLen]byte) {
	if len(auth) == 0 {
		sum := sha256.Sum256(b)
		copy(seal[:], sum[:])
		return seal
	}
	h := hmac.New(sha256.New, auth)
	h.Write(b)
	var sum [sha256.Size]byte
	copy(seal[:], h.Sum(sum[:0]))
	return seal
}

// Parse reads a token that is sealed with auth, perhaps beside other keys, or with no key if that is empty.
// The bodies of the parts are copies. The error wraps ErrInvalid and says what is
// wrong where.
func Parse(b, auth []byte) (*Token, error) {
	var keys [][]byte
	if len(auth) != 0 {
		keys = [][]byte{auth}
	}
	t, _, err := ParseUnder(b, keys)
	return t, err
}

// ParseUnder is Parse for a reader with any number of keys, none of them empty. under is the first that the token is
// sealed with, 0 without keys.
func ParseUnder(b []byte, keys [][]byte) (t *Token, under int, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) > MaxLen:
		return nil, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(b), MaxLen)
	case len(b) < fixedLen+sealLen || string(b[:4]) != magic:
		return nil, 0, fmt.Errorf("%w: %d bytes that do not begin as one", ErrInvalid, len(b))
	case le.Uint16(b[4:]) != Version:
		return nil, 0, fmt.Errorf("%w of a version that is known: %d", ErrInvalid, le.Uint16(b[4:]))
	case int(le.Uint16(b[6:])) != len(b):
		return nil, 0, fmt.Errorf("%w: %d bytes of %d", ErrInvalid, len(b), le.Uint16(b[6:]))
	case (b[14]&flagKeyed != 0) != (len(keys) != 0):
		return nil, 0, fmt.Errorf("%w for this endpoint: with an authorisation key there (%t), here (%t)",
			ErrInvalid, b[14]&flagKeyed != 0, len(keys) != 0)
	}
	body, under, err := unseal(b, keys)
	if err != nil {
		return nil, 0, err
	}
	t, err = parseBody(body)
	return t, under, err
}

// unseal returns what precedes the seals of a token, whose first 16 bytes are right, and the first of the keys that it
// is sealed with.
func unseal(b []byte, keys [][]byte) (body []byte, under int, err error) {
	whole, seals := b[:len(b)-sealLen], int(b[15])
	last := b[len(whole):]
	body = whole
	if seals != 0 {
		seal := sealOf(whole, nil)
		n := len(whole) - seals*keySealLen
		if n < fixedLen || b[14]&flagKeyed == 0 || !hmac.Equal(seal[:], last) {
			return nil, 0, fmt.Errorf("%w: its seal is not right, behind those of %d keys", ErrInvalid, seals)
		}
		body = whole[:n]
	}
	if len(keys) == 0 {
		keys = [][]byte{nil}
	}
	for i, k := range keys {
		seal := sealOf(body, k)
		if seals == 0 && hmac.Equal(seal[:], last) {
			return body, i, nil
		}
		for at := len(body); at < len(whole); at += keySealLen {
			if hmac.Equal(seal[:keySealLen], whole[at:at+keySealLen]) {
				return body, i, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("%w: its seal is not right", ErrInvalid)
}

// parseBody reads what precedes the seals.
func parseBody(body []byte) (*Token, error) {
	b, le := body, binary.LittleEndian
	t := &Token{
		Owner: names.Name{Family: le.Uint16(b[16:]), Port: le.Uint16(b[18:]), Scope: le.Uint32(b[20:]),
			IP: [16]byte(b[24:40])},
		Incarnation: le.Uint64(b[40:]), Key: le.Uint64(b[48:]), Base: le.Uint64(b[56:]), Length: le.Uint64(b[64:]),
		Rights: le.Uint16(b[10:]), Kind: Kind(b[12]), Device: [16]byte(b[72:88]),
	}
	agent, parts := int(b[13]), int(le.Uint16(b[8:]))
	if agent > MaxAgent || parts < fixedLen+agent || parts > len(body) {
		return nil, fmt.Errorf("%w: parts at %d of %d, after %d bytes of an agent's name", ErrInvalid, parts,
			len(body), agent)
	}
	t.Agent = string(b[fixedLen : fixedLen+agent])
	if err := t.check(); err != nil {
		return nil, err
	}
	return t, t.parseParts(body, parts)
}

// check says what is wrong with the fields.
func (t *Token) check() error {
	o := &t.Owner
	switch {
	case o.Family != names.AFInet && o.Family != names.AFInet6, o.Port == 0, o.IsAny(),
		o.Family == names.AFInet && (o.Scope != 0 || [12]byte(o.IP[4:]) != [12]byte{}):
		return fmt.Errorf("%w: the owner's name is none", ErrInvalid)
	case t.Rights == 0 || t.Rights&^(Read|Write) != 0:
		return fmt.Errorf("%w: rights %#x", ErrInvalid, t.Rights)
	case t.Base+t.Length < t.Base:
		return fmt.Errorf("%w: %d bytes at %#x", ErrInvalid, t.Length, t.Base)
	case t.Kind > DMABuf:
		return fmt.Errorf("%w: %s of memory", ErrInvalid, t.Kind)
	}
	return nil
}

// parseParts reads the parts, which begin at a place in b and end with it.
func (t *Token) parseParts(b []byte, at int) error {
	seen := uint32(0)
	for at < len(b) {
		if len(b)-at < partHead {
			return fmt.Errorf("%w: %d bytes after the last part, at %d", ErrInvalid, len(b)-at, at)
		}
		typ, n := binary.LittleEndian.Uint16(b[at:]), int(binary.LittleEndian.Uint16(b[at+2:]))
		at += partHead
		if n > len(b)-at {
			return fmt.Errorf("%w: part %d of %d bytes at %d, %d are there", ErrInvalid, typ, n, at, len(b)-at)
		}
		if bit := uint32(1) << (typ & 31); typ >= PartMessages && typ <= PartContext && typ != PartRDMA {
			if seen&bit != 0 {
				return fmt.Errorf("%w: part %d twice", ErrInvalid, typ)
			}
			seen |= bit
		} else if typ == PartRDMA {
			if err := t.checkRDMA(b[at : at+n]); err != nil {
				return fmt.Errorf("%w, part at %d", err, at)
			}
		}
		t.Parts = append(t.Parts, Part{typ, append([]byte(nil), b[at:at+n]...)})
		at += n
	}
	return nil
}

// AppendText appends the text form of a token's bytes: "weft1:" and their
// base64url without padding.
func AppendText(to, packed []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(append(to, textPrefix...), packed)
}

// ParseText returns the bytes of a text form, spaces around it left out. Whether
// they are a token Parse says. The error wraps ErrInvalid.
func ParseText(text []byte) ([]byte, error) {
	s, ok := strings.CutPrefix(strings.TrimSpace(string(text)), textPrefix)
	if !ok || len(s)+len(textPrefix) > MaxText {
		return nil, fmt.Errorf("%w: %d characters that do not begin with %q", ErrInvalid, len(text), textPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b, nil
}

// IsText reports whether bytes are the text form of a token rather than a token.
func IsText(b []byte) bool {
	return strings.HasPrefix(string(b[:min(len(b), len(textPrefix))]), textPrefix)
}

// IPC is the body of a part PartIPC: the host and the process that has the memory.
type IPC struct {
	BootID [2]uint64 // of the host's kernel
	PIDNS  uint64    // inode of the process's pid namespace
	NetNS  uint64    // inode of its network namespace
	PID    uint32    // in its namespace
	Start  uint64    // clock ticks since boot at which it began
}

const ipcLen = 44

// Append appends the body.
func (p *IPC) Append(b []byte) []byte {
	for _, v := range [...]uint64{p.BootID[0], p.BootID[1], p.PIDNS, p.NetNS, p.Start} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, p.PID)
}

// ParseIPC reads a body. What follows the fields that are known is passed over.
// False: it is too short.
func ParseIPC(b []byte) (p IPC, ok bool) {
	if len(b) < ipcLen {
		return p, false
	}
	le := binary.LittleEndian
	p.BootID = [2]uint64{le.Uint64(b), le.Uint64(b[8:])}
	p.PIDNS, p.NetNS, p.Start, p.PID = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint32(b[40:])
	return p, true
}

// ContextPart is the part that says which receive context the owner is.
func ContextPart(index uint8) Part { return Part{PartContext, []byte{index, 0}} }

// Context is which receive context of a scalable endpoint the owner is, 0 of another endpoint. False: it cannot be.
func (t *Token) Context() (index uint8, ok bool) {
	body, ok := t.Find(PartContext)
	switch {
	case !ok:
		return 0, true
	case len(body) < 2 || body[1] != 0:
		return 0, false
	}
	return body[0], true
}

// Device is the body of a part PartCUDA or PartDMABuf: memory that other processes of the host may map.
type Device struct {
	Allocation uint64 // its address in the owner's process
	Offset     uint64 // of the region in it, bytes
	Buffer     uint64 // the driver's number of the memory, 0 for a dma-buf
}

const deviceLen = 24

// Append appends the body.
func (d *Device) Append(b []byte) []byte {
	for _, v := range [...]uint64{d.Allocation, d.Offset, d.Buffer} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Place is what the token says of where the region is in an allocation that processes of the owner's host may map.
// False: it does not.
func (t *Token) Place() (Device, bool) {
	for _, typ := range [...]uint16{PartCUDA, PartDMABuf} {
		if body, ok := t.Find(typ); ok {
			return ParseDevice(body)
		}
	}
	return Device{}, false
}

// ParseDevice reads a body. What follows the fields that are known is passed over.
// False: it is too short.
func ParseDevice(b []byte) (d Device, ok bool) {
	if len(b) < deviceLen {
		return d, false
	}
	le := binary.LittleEndian
	return Device{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}, true
}
