// Package names handles the names of endpoints: socket addresses in the
// formats that libfabric defines for them, their resolution from a node and a
// service, and the addresses of this host.
//
// A [Name] is a comparable value. [FromSockaddr] and [Parse] decode foreign
// bytes; [Name.AppendSockaddr] and [Name.String] encode. [Encode] and [Decode]
// do either by an fi.AddrFormat.
//
// The package holds no state and every function may be called from any
// goroutine.
package names

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/weft-fabric/weft/fi"
)

// Address families, with the values of AF_INET and AF_INET6 on Linux.
const (
	AFInet  uint16 = 2
	AFInet6 uint16 = 10
	// AFWord is no family of the kernel's: the address is a word (WordLen) in the first bytes of IP, as devices that
	// match messages have it. There is no port.
	AFWord uint16 = 0xff
)

// Matched is the format of the names of matched endpoints: a word, as FI_ADDR_CXI is one. It
// is a number of weft's own, because the name cxi (FI_WEFT_NAME) has socket addresses under FI_ADDR_CXI.
const Matched fi.AddrFormat = 1 << 20

// Lengths of encoded addresses in bytes.
const (
	SockaddrInLen  = 16 // struct sockaddr_in
	SockaddrIn6Len = 28 // struct sockaddr_in6
	WordLen        = 8  // a word of Matched

	// OpaqueLen is an address in a format of another provider (FI_ADDR_EFA, FI_ADDR_CXI),
	// which programs do not read: a socket address, and zeros. It is what a
	// FI_ADDR_EFA takes.
	OpaqueLen = 32

	// MaxLen is the longest encoding in any format, the NUL byte of
	// FI_ADDR_STR included: "fi_sockaddr_in6://[" (19 bytes), eight groups
	// of four digits (39), "%" and a 32-bit scope (11), "]:65535" (7), NUL.
	MaxLen = 19 + 39 + 11 + 7 + 1
)

// Name is the name of an endpoint: an IP address and a port. The zero value
// names nothing. Two names are the same endpoint's if they are equal (==); the
// flow label of an IPv6 socket address is not part of a name.
type Name struct {
	Family uint16   // AFInet, AFInet6 or AFWord, 0 for the zero value
	Port   uint16   // 0 in a source address: any free port
	Scope  uint32   // interface index of an IPv6 link-local address, else 0
	IP     [16]byte // an IPv4 address is in the first 4 bytes, the rest is 0
	// Key is the number of the authorisation key under which the endpoint is meant, in an
	// address vector that has keys (fi_av_insert_auth_key), else 0. No encoding has it.
	Key uint8
}

// New returns the name for an address and a port. A zone is searched among
// this host's interfaces unless it is a number. An invalid address gives the
// zero Name; an IPv4-mapped IPv6 address stays an IPv6 address.
func New(a netip.Addr, port uint16) Name {
	n := Name{Port: port}
	switch {
	case a.Is4():
		n.Family = AFInet
		ip := a.As4()
		copy(n.IP[:], ip[:])
	case a.Is6():
		n.Family = AFInet6
		n.IP = a.As16()
		n.Scope = scopeOf(a.Zone())
	default:
		return Name{}
	}
	return n
}

// Any returns the wildcard address of a family with a port.
func Any(family, port uint16) Name { return Name{Family: family, Port: port} }

// Addr returns the IP address without a zone; the invalid address for the zero
// Name.
func (n Name) Addr() netip.Addr {
	switch n.Family {
	case AFInet:
		return netip.AddrFrom4([4]byte(n.IP[:4]))
	case AFInet6:
		return netip.AddrFrom16(n.IP)
	}
	return netip.Addr{}
}

// IsZero reports whether n is the zero value.
func (n Name) IsZero() bool { return n == Name{} }

// IsAny reports whether n is a wildcard: 0.0.0.0 or [::] with some port.
func (n Name) IsAny() bool { return n.Family != 0 && n.IP == [16]byte{} }

// IsEndpoint reports whether n can be an endpoint's: it has an address, and a port where its family has them.
func (n Name) IsEndpoint() bool { return n.Family == AFWord || n.Port != 0 && !n.IsAny() }

// IsLoopback reports whether n's address is a loopback address.
func (n Name) IsLoopback() bool { return n.Addr().Unmap().IsLoopback() }

// WithPort returns n with another port.
func (n Name) WithPort(port uint16) Name {
	n.Port = port
	return n
}

// WithKey returns n under another authorisation key.
func (n Name) WithKey(key uint8) Name {
	n.Key = key
	return n
}

// WithAddrOf returns other's address with n's port. It turns the wildcard that
// a socket is bound to into a name that a peer can use.
func (n Name) WithAddrOf(other Name) Name { return other.WithPort(n.Port) }

// AppendFixed appends what of a name does not depend on which of its addresses leads to the endpoint: the port, or the
// word.
func (n Name) AppendFixed(b []byte) []byte {
	if n.Family == AFWord {
		return append(b, n.IP[:WordLen]...)
	}
	return binary.LittleEndian.AppendUint16(b, n.Port)
}

// SockaddrLen returns the number of bytes that AppendSockaddr appends.
func (n Name) SockaddrLen() int {
	switch n.Family {
	case AFInet:
		return SockaddrInLen
	case AFInet6:
		return SockaddrIn6Len
	case AFWord:
		return WordLen
	}
	return 0
}

// AppendSockaddr appends n as struct sockaddr_in or sockaddr_in6 of a
// little-endian Linux, or its word; nothing for the zero Name.
func (n Name) AppendSockaddr(b []byte) []byte {
	switch n.Family {
	case AFInet:
		b = binary.LittleEndian.AppendUint16(b, AFInet)
		b = binary.BigEndian.AppendUint16(b, n.Port)
		b = append(b, n.IP[:4]...)
		return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	case AFInet6:
		b = binary.LittleEndian.AppendUint16(b, AFInet6)
		b = binary.BigEndian.AppendUint16(b, n.Port)
		b = append(b, 0, 0, 0, 0) // flow information
		b = append(b, n.IP[:]...)
		return binary.LittleEndian.AppendUint32(b, n.Scope)
	case AFWord:
		return append(b, n.IP[:WordLen]...)
	}
	return b
}

// FromSockaddr decodes a struct sockaddr_in or sockaddr_in6. b may be longer
// than the structure. Errors wrap fi.EINVAL.
func FromSockaddr(b []byte) (Name, error) {
	if len(b) < 2 {
		return Name{}, fmt.Errorf("socket address of %d bytes: %w", len(b), fi.EINVAL)
	}
	n := Name{Family: binary.LittleEndian.Uint16(b)}
	want := n.SockaddrLen()
	if want == 0 || n.Family == AFWord {
		return Name{}, fmt.Errorf("socket address of family %d: %w", n.Family, fi.EINVAL)
	}
	if len(b) < want {
		return Name{}, fmt.Errorf("socket address of family %d in %d bytes, want %d: %w",
			n.Family, len(b), want, fi.EINVAL)
	}
	n.Port = binary.BigEndian.Uint16(b[2:])
	if n.Family == AFInet {
		copy(n.IP[:], b[4:8])
		return n, nil
	}
	copy(n.IP[:], b[8:24])
	n.Scope = binary.LittleEndian.Uint32(b[24:])
	return n, nil
}

// fromWord decodes a word, with which b begins. Errors wrap fi.EINVAL.
func fromWord(b []byte) (Name, error) {
	if len(b) < WordLen {
		return Name{}, fmt.Errorf("name of %d bytes, want %d: %w", len(b), WordLen, fi.EINVAL)
	}
	n := Name{Family: AFWord}
	copy(n.IP[:], b[:WordLen])
	return n, nil
}

// Encode returns n in an address format. fi.FormatUnspec means the socket
// address. Errors wrap fi.EINVAL: the format is not one of weft's or cannot
// hold n's family.
func Encode(f fi.AddrFormat, n Name) ([]byte, error) {
	if !Fits(f, n) {
		return nil, fmt.Errorf("address family %d in address format %d: %w", n.Family, f, fi.EINVAL)
	}
	if f == fi.AddrStr {
		return append([]byte(n.String()), 0), nil
	}
	b := n.AppendSockaddr(make([]byte, 0, OpaqueLen))
	if Opaque(f) {
		b = b[:OpaqueLen] // its capacity was zeroed
	}
	return b, nil
}

// Decode is the inverse of Encode. FI_ADDR_STR may end with a NUL byte, after
// which nothing is read. Errors wrap fi.EINVAL.
func Decode(f fi.AddrFormat, b []byte) (Name, error) {
	var n Name
	var err error
	if f == fi.AddrStr {
		for i, c := range b {
			if c == 0 {
				b = b[:i]
				break
			}
		}
		n, err = Parse(string(b))
	} else if f == Matched {
		n, err = fromWord(b)
	} else {
		n, err = FromSockaddr(b)
	}
	if err != nil {
		return Name{}, err
	}
	if !Fits(f, n) {
		return Name{}, fmt.Errorf("address family %d in address format %d: %w", n.Family, f, fi.EINVAL)
	}
	return n, nil
}

// Fits reports whether an address format can hold n.
func Fits(f fi.AddrFormat, n Name) bool {
	switch f {
	case fi.FormatUnspec, fi.Sockaddr, fi.SockaddrIP, fi.AddrStr, fi.AddrEFA, fi.AddrCXI:
		return n.Family == AFInet || n.Family == AFInet6
	case Matched:
		return n.Family == AFWord
	case fi.SockaddrIn:
		return n.Family == AFInet
	case fi.SockaddrIn6:
		return n.Family == AFInet6
	}
	return false
}

// Opaque reports whether a format is another provider's, with addresses of OpaqueLen bytes.
func Opaque(f fi.AddrFormat) bool { return f == fi.AddrEFA || f == fi.AddrCXI }
