package provider

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// boundSocket holds an endpoint's name: while it is bound, the kernel gives
// the address to nobody else in this network namespace. Nothing is received
// on it.
type boundSocket struct{ fd int }

// bindSocket binds a socket to want and returns the name it got: port 0 means
// any, the zero name or a wildcard address means the first address of this
// host. Errors: fi.EADDRINUSE, fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func bindSocket(want names.Name, ifaceName string) (*boundSocket, names.Name, error) {
	if want.IsZero() || want.IsAny() {
		n, err := defaultName(want, ifaceName)
		if err != nil {
			return nil, names.Name{}, err
		}
		want = n
	}
	domain := unix.AF_INET
	if want.Family == names.AFInet6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, names.Name{}, fmt.Errorf("socket for %s: %w", want, fi.ErrnoOf(err))
	}
	n, err := bindTo(fd, want)
	if err != nil {
		_ = unix.Close(fd)
		return nil, names.Name{}, fmt.Errorf("bind %s: %w", want, fi.ErrnoOf(err))
	}
	return &boundSocket{fd}, n, nil
}

func bindTo(fd int, want names.Name) (names.Name, error) {
	// Nobody reads: let the kernel keep as little as it can.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	var sa unix.Sockaddr
	if want.Family == names.AFInet6 {
		sa = &unix.SockaddrInet6{Port: int(want.Port), ZoneId: want.Scope, Addr: want.IP}
	} else {
		sa = &unix.SockaddrInet4{Port: int(want.Port), Addr: [4]byte(want.IP[:4])}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return names.Name{}, err
	}
	got, err := unix.Getsockname(fd)
	if err != nil {
		return names.Name{}, err
	}
	switch a := got.(type) {
	case *unix.SockaddrInet4:
		return want.WithPort(uint16(a.Port)), nil
	case *unix.SockaddrInet6:
		return want.WithPort(uint16(a.Port)), nil
	}
	return names.Name{}, unix.EAFNOSUPPORT
}

func (s *boundSocket) close() { _ = unix.Close(s.fd) }

// defaultName is the first address of this host that has want's family, if it
// has one, and is on the interface, if one is named. Errors: fi.EADDRNOTAVAIL.
func defaultName(want names.Name, ifaceName string) (names.Name, error) {
	locals, err := names.Locals(names.System)
	if err != nil {
		return names.Name{}, err
	}
	for _, l := range locals {
		if (ifaceName == "" || l.Iface == ifaceName) && (want.Family == 0 || l.Name.Family == want.Family) {
			return l.Name.WithPort(want.Port), nil
		}
	}
	return names.Name{}, fi.EADDRNOTAVAIL
}
