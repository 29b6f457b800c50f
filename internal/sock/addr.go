package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrAddress is what an address gives that is no sockaddr_in or sockaddr_in6.
var ErrAddress = errors.New("no internet socket address")

// Sizes of struct sockaddr_in and sockaddr_in6, in bytes.
const (
	sizeIPv4 = unix.SizeofSockaddrInet4
	sizeIPv6 = unix.SizeofSockaddrInet6
)

// Addr is a socket address in canonical form: what does not identify (padding,
// flow label) is zero, and an IPv4 address is never dressed as an IPv6 one, so
// that equal names are equal bytes. Comparable; usable as a map key.
type Addr struct {
	raw [sizeIPv6]byte
	n   uint8 // sizeIPv4 or sizeIPv6
}

// Parse reads a sockaddr_in or sockaddr_in6. Bytes past the family's size are
// ignored. Errors: ErrAddress.
func Parse(b []byte) (Addr, error) {
	var a Addr
	if len(b) < 2 {
		return a, fmt.Errorf("%d bytes: %w", len(b), ErrAddress)
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= sizeIPv4:
		a.n = sizeIPv4
		copy(a.raw[:8], b) // family, port, address; sin_zero stays zero
	case family == unix.AF_INET6 && len(b) >= sizeIPv6:
		if ip := netip.AddrFrom16([16]byte(b[8:24])); ip.Is4In6() {
			a.n = sizeIPv4
			binary.NativeEndian.PutUint16(a.raw[:], unix.AF_INET)
			copy(a.raw[2:4], b[2:4])
			copy(a.raw[4:8], b[20:24])
			return a, nil
		}
		a.n = sizeIPv6
		copy(a.raw[:4], b)       // family, port
		copy(a.raw[8:28], b[8:]) // address, scope; the flow label stays zero
	default:
		return a, fmt.Errorf("family %d, %d bytes: %w", family, len(b), ErrAddress)
	}
	return a, nil
}

// Size is how many of its bytes Parse reads, for b that it accepts.
func Size(b []byte) int {
	if binary.NativeEndian.Uint16(b) == unix.AF_INET {
		return sizeIPv4
	}
	return sizeIPv6
}

// FromAddrPort makes an Addr of an address and a port. A zone must be a number.
func FromAddrPort(ap netip.AddrPort) Addr {
	var a Addr
	ip := ap.Addr().Unmap()
	binary.BigEndian.PutUint16(a.raw[2:], ap.Port())
	if ip.Is4() {
		a.n = sizeIPv4
		binary.NativeEndian.PutUint16(a.raw[:], unix.AF_INET)
		b := ip.As4()
		copy(a.raw[4:8], b[:])
		return a
	}
	a.n = sizeIPv6
	binary.NativeEndian.PutUint16(a.raw[:], unix.AF_INET6)
	b := ip.As16()
	copy(a.raw[8:24], b[:])
	if scope, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
		binary.NativeEndian.PutUint32(a.raw[24:], uint32(scope))
	}
	return a
}

// FromIPv4 makes an Addr of an IPv4 address and a port.
func FromIPv4(ip [4]byte, port uint16) Addr {
	a := Addr{n: sizeIPv4}
	binary.NativeEndian.PutUint16(a.raw[:], unix.AF_INET)
	binary.BigEndian.PutUint16(a.raw[2:], port)
	copy(a.raw[4:8], ip[:])
	return a
}

// FromIPv6 makes an Addr of an IPv6 address, which is no IPv4 address in disguise,
// a port and a scope, 0 for none.
func FromIPv6(ip [16]byte, port uint16, scope uint32) Addr {
	a := Addr{n: sizeIPv6}
	binary.NativeEndian.PutUint16(a.raw[:], unix.AF_INET6)
	binary.BigEndian.PutUint16(a.raw[2:], port)
	copy(a.raw[8:24], ip[:])
	binary.NativeEndian.PutUint32(a.raw[24:], scope)
	return a
}

// Bytes is the sockaddr.
func (a *Addr) Bytes() []byte { return a.raw[:a.n:a.n] }

// IsZero reports whether a is no address at all.
func (a *Addr) IsZero() bool { return a.n == 0 }

// Is4 reports whether a is an IPv4 address.
func (a *Addr) Is4() bool { return a.n == sizeIPv4 }

// AddrPort is the address and port.
func (a *Addr) AddrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(a.raw[2:])
	if a.n == sizeIPv4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.raw[4:8])), port)
	}
	ip := netip.AddrFrom16([16]byte(a.raw[8:24]))
	if scope := binary.NativeEndian.Uint32(a.raw[24:]); scope != 0 {
		ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return netip.AddrPortFrom(ip, port)
}

// String is the address and port for people.
func (a *Addr) String() string {
	if a.n == 0 {
		return "nowhere"
	}
	return a.AddrPort().String()
}

// Usable reports whether datagrams can be sent to a: it has a port and is no
// wildcard and no multicast address.
func (a *Addr) Usable() bool {
	if a.n == 0 {
		return false
	}
	ap := a.AddrPort()
	return ap.Port() != 0 && !ap.Addr().IsUnspecified() && !ap.Addr().IsMulticast() &&
		ap.Addr() != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// put writes a into b as a socket of the given family takes it, and returns
// its size. IPv4 addresses are mapped for an IPv6 socket.
func (a *Addr) put(b *[sizeIPv6]byte, family int) uint32 {
	if family == unix.AF_INET || a.n == sizeIPv6 {
		*b = a.raw
		return uint32(a.n)
	}
	*b = [sizeIPv6]byte{}
	binary.NativeEndian.PutUint16(b[:], unix.AF_INET6)
	copy(b[2:4], a.raw[2:4])
	b[18], b[19] = 0xff, 0xff
	copy(b[20:24], a.raw[4:8])
	return sizeIPv6
}

// IsAny reports whether a is a wildcard address.
func (a *Addr) IsAny() bool { return a.n != 0 && a.AddrPort().Addr().IsUnspecified() }

// Port is a's port.
func (a *Addr) Port() uint16 { return binary.BigEndian.Uint16(a.raw[2:]) }

// WithPort is a with another port.
func (a Addr) WithPort(port uint16) Addr {
	binary.BigEndian.PutUint16(a.raw[2:], port)
	return a
}

// Bound is the address that the socket fd is bound to. Errors are of the
// kernel, and ErrAddress.
func Bound(fd int) (Addr, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return Addr{}, err
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return FromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))), nil
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr)
		if a.ZoneId != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.ZoneId), 10))
		}
		return FromAddrPort(netip.AddrPortFrom(ip, uint16(a.Port))), nil
	}
	return Addr{}, ErrAddress
}

// Bind binds a socket of a's family to a. Errors are of the kernel.
func Bind(fd int, a Addr) error { return unix.Bind(fd, sockaddr(&a)) }

// connBuffer is the receive buffer of a Conn's socket in bytes.
const connBuffer = 64 << 10

// Conn returns a duplicate of the bound UDP socket fd that the Go runtime waits for,
// with room for datagrams even if the socket was made to hold a name only. Errors:
// ErrAddress for another kind of socket, and those of the kernel.
func Conn(fd int) (*net.UDPConn, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate socket: %w", err)
	}
	f := os.NewFile(uintptr(dup), "weft name")
	c, err := net.FilePacketConn(f)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("not a UDP socket: %w", ErrAddress), c.Close())
	}
	if err := u.SetReadBuffer(connBuffer); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

// Serve gives every datagram that comes to c, the first most bytes of it, to answer and
// sends back what that returns, unless it is empty or longer than the datagram: a forged
// address must not be sent more than came. It returns when c is closed.
func Serve(c *net.UDPConn, most int, answer func(from netip.AddrPort, b []byte) []byte) {
	b := make([]byte, most)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an earlier answer met a closed port
		}
		if a := answer(from, b[:n]); len(a) != 0 && len(a) <= n {
			_, _ = c.WriteToUDPAddrPort(a, from) // one that cannot be sent counts as lost
		}
	}
}
