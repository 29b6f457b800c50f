package names

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
)

// Socket holds an endpoint's name: while it is bound, the kernel gives the address to no other socket in this network
// namespace. Nothing is received on it. Its fields are immutable.
type Socket struct {
	FD int
	// Inet and Inet6 report whether the socket is bound to all IPv4 and to all IPv6 addresses.
	Inet, Inet6 bool
}

// Reserve binds a socket to want and returns the name by which peers know
// it: port 0 means any, the zero name the first address of this host. A wildcard
// address is bound as it is, so that peers reach the endpoint at each address
// of this host and the kernel gives its port to no other socket; the name then is
// the first address too. The first address is one of the interface domain, if
// it has any, else of the interface only or, if that is empty, of any. Errors:
// fi.EADDRINUSE, fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func Reserve(want Name, domainIface, only string) (*Socket, Name, error) {
	name := want
	if want.IsZero() || want.IsAny() {
		n, err := First(want, domainIface, only)
		if err != nil {
			return nil, Name{}, err
		}
		name = n
	}
	if want.IsZero() {
		want = name
	}
	domain := unix.AF_INET
	if want.Family == AFInet6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, Name{}, fmt.Errorf("socket for %s: %w", want, fi.ErrnoOf(err))
	}
	n, err := bindTo(fd, want)
	if err != nil {
		_ = unix.Close(fd)
		return nil, Name{}, fmt.Errorf("bind %s: %w", want, fi.ErrnoOf(err))
	}
	s := &Socket{FD: fd}
	if want.IsAny() {
		s.Inet, s.Inet6 = reach(fd, want.Family)
	}
	return s, name.WithPort(n.Port), nil
}

// reach says of which families a socket bound to a family's wildcard has all
// addresses: one bound to [::] also has the IPv4 ones, unless the system says no.
func reach(fd int, family uint16) (inet, inet6 bool) {
	if family != AFInet6 {
		return true, false
	}
	only, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return err == nil && only == 0, true
}

func bindTo(fd int, want Name) (Name, error) {
	// It is never read: let the kernel keep as little as it can.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	return Bind(fd, want)
}

// Close gives the name up.
func (s *Socket) Close() { _ = unix.Close(s.FD) }

// First is the first address of this host that has want's family, if it
// has one: of the interface domainIface if there is one, else of the interface
// only, if one is named. Errors: fi.EADDRNOTAVAIL.
func First(want Name, domainIface, only string) (Name, error) {
	locals, err := Locals(System)
	if err != nil {
		return Name{}, err
	}
	for _, iface := range []string{domainIface, only} {
		for _, l := range locals {
			if (iface == "" || l.Iface == iface) && (want.Family == 0 || l.Name.Family == want.Family) {
				return l.Name.WithPort(want.Port), nil
			}
		}
	}
	return Name{}, fi.EADDRNOTAVAIL
}
