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

// MaxNumber is the highest number of an interface.
const MaxNumber = 1<<16 - 1

// sizeNumber is what a number takes after the socket address, in bytes.
const sizeNumber = 4

// AppendNumber appends the number of an interface to its socket address b:
// several interfaces share one, and differ by their numbers. The address of
// number 0 is the socket address alone.
func AppendNumber(b []byte, number int) []byte {
	if number == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, uint32(number))
}

// sockaddr is the address of an interface in canonical form: what does not
// identify (padding, flow label) is zero, so that equal addresses are equal
// bytes. Comparable; usable as a map key.
type sockaddr struct {
	raw    [sizeIPv6]byte
	n      uint8  // of the socket address in raw: sizeIPv4 or sizeIPv6
	number uint16 // among the interfaces of this socket address
}

// parseSockaddr reads a sockaddr_in or sockaddr_in6, and the number after it.
// Other bytes are ignored. Errors wrap hw.ErrInvalid.
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
	if len(b) < int(a.n)+sizeNumber {
		return a, nil
	}
	number := binary.LittleEndian.Uint32(b[a.n:])
	if number > MaxNumber {
		return a, fmt.Errorf("loopback: address with number %d: %w", number, hw.ErrInvalid)
	}
	a.number = uint16(number)
	return a, nil
}

// target is an interface's address as a process with several authorisation keys
// knows it: key is its number for the one under which it is meant, else 0.
type target struct {
	sockaddr
	key uint8
}

// parseTarget reads what bytes gives: an address, or an address with a number and a
// key (hw.AppendKey). Errors wrap hw.ErrInvalid.
func parseTarget(b []byte) (target, error) {
	a, err := parseSockaddr(b)
	t := target{sockaddr: a}
	if end := int(a.n) + sizeNumber; err == nil && len(b) > end {
		t.key, err = hw.ParseKey(b[end:])
	}
	return t, err
}

// bytes is the address as parseTarget reads it.
func (t target) bytes() []byte {
	if t.key == 0 {
		return t.sockaddr.bytes()
	}
	b := binary.LittleEndian.AppendUint32(t.raw[:t.n:t.n], uint32(t.number))
	return hw.AppendKey(b, t.key)
}

// parseStored reads an address as headers and attach entries hold it.
func parseStored(name []byte, number uint32) (sockaddr, error) {
	if number > MaxNumber {
		return sockaddr{}, fmt.Errorf("loopback: address with number %d: %w", number, hw.ErrInvalid)
	}
	a, err := parseSockaddr(name)
	a.number = uint16(number)
	return a, err
}

// bytes is the address as parseSockaddr reads it.
func (a *sockaddr) bytes() []byte {
	return AppendNumber(a.raw[:a.n:a.n], int(a.number))
}

// String is the address as it stands in file names: no slash, no space, and
// different for different addresses.
func (a *sockaddr) String() string {
	s := netip.AddrPortFrom(a.ip(), a.port()).String()
	if a.number != 0 {
		s += "." + strconv.Itoa(int(a.number))
	}
	return s
}

func (a *sockaddr) ip() netip.Addr {
	if a.n == sizeIPv4 {
		return netip.AddrFrom4([4]byte(a.raw[4:8]))
	}
	ip := netip.AddrFrom16([16]byte(a.raw[8:24]))
	if scope := binary.NativeEndian.Uint32(a.raw[24:]); scope != 0 {
		ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return ip
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
