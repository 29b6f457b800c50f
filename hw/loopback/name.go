package loopback

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// Sizes of struct sockaddr_in and sockaddr_in6, in bytes.
const (
	sizeIPv4 = unix.SizeofSockaddrInet4
	sizeIPv6 = unix.SizeofSockaddrInet6
)

// sockaddr is the socket address that names an interface, in canonical form:
// what does not identify (padding, flow label) is zero, so that equal names
// are equal bytes. Comparable; usable as a map key.
type sockaddr struct {
	raw [sizeIPv6]byte
	n   uint8 // sizeIPv4 or sizeIPv6
}

// parseSockaddr reads a sockaddr_in or sockaddr_in6. Bytes past the family's
// size are ignored. Errors wrap hw.ErrInvalid.
func parseSockaddr(b []byte) (sockaddr, error) {
	var a sockaddr
	if len(b) < 2 {
		return a, fmt.Errorf("loopback: address of %d bytes: %w", len(b), hw.ErrInvalid)
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= sizeIPv4:
		a.n = sizeIPv4
		copy(a.raw[:8], b) // family, port, address; sin_zero stays zero
	case family == unix.AF_INET6 && len(b) >= sizeIPv6:
		a.n = sizeIPv6
		copy(a.raw[:4], b)       // family, port
		copy(a.raw[8:28], b[8:]) // address, scope; the flow label stays zero
	default:
		return a, fmt.Errorf("loopback: address of family %d, %d bytes: %w", family, len(b), hw.ErrInvalid)
	}
	return a, nil
}

func (a *sockaddr) bytes() []byte { return a.raw[:a.n:a.n] }

// String is the address as it stands in file names: no slash, no space, and
// different for different addresses.
func (a *sockaddr) String() string {
	port := binary.BigEndian.Uint16(a.raw[2:])
	if a.n == sizeIPv4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.raw[4:8])), port).String()
	}
	ip := netip.AddrFrom16([16]byte(a.raw[8:24]))
	if scope := binary.NativeEndian.Uint32(a.raw[24:]); scope != 0 {
		ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return netip.AddrPortFrom(ip, port).String()
}

// fileName is the name of the segment of address a that belongs to uid in the
// network namespace netns.
func fileName(uid uint32, netns uint64, a *sockaddr) string {
	return filePrefix(uid) + strconv.FormatUint(netns, 10) + "." + a.String()
}

// filePrefix starts the names of all segments of uid.
func filePrefix(uid uint32) string {
	return "weft." + strconv.FormatUint(uint64(uid), 10) + "."
}
