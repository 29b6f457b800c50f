package provider

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// boundSocket holds an endpoint's name: while it is bound, the kernel gives
// the address to no other socket in this network namespace. Nothing is received
// on it.
type boundSocket struct {
	fd int
	// inet and inet6 report whether the socket is bound to all addresses of a
	// family.
	inet, inet6 bool
}

// bindSocket binds a socket to want and returns the name by which peers know
// it: port 0 means any, the zero name the first address of this host. A wildcard
// address is bound as it is, so that peers reach the endpoint at each address
// of this host and the kernel gives its port to no other socket; the name then is
// the first address too. The first address is one of the interface domain, if
// it has any, else of the interface only or, if that is empty, of any. Errors:
// fi.EADDRINUSE, fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func bindSocket(want names.Name, domainIface, only string) (*boundSocket, names.Name, error) {
	name := want
	if want.IsZero() || want.IsAny() {
		n, err := defaultName(want, domainIface, only)
		if err != nil {
			return nil, names.Name{}, err
		}
		name = n
	}
	if want.IsZero() {
		want = name
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
	s := &boundSocket{fd: fd}
	if want.IsAny() {
		s.inet, s.inet6 = reach(fd, want.Family)
	}
	return s, name.WithPort(n.Port), nil
}

// reach says of which families a socket bound to a family's wildcard has all
// addresses: one bound to [::] also has the IPv4 ones, unless the system says no.
func reach(fd int, family uint16) (inet, inet6 bool) {
	if family != names.AFInet6 {
		return true, false
	}
	only, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return err == nil && only == 0, true
}

func bindTo(fd int, want names.Name) (names.Name, error) {
	// It is never read: let the kernel keep as little as it can.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	return names.Bind(fd, want)
}

func (s *boundSocket) close() { _ = unix.Close(s.fd) }

// defaultName is the first address of this host that has want's family, if it
// has one: of the interface domainIface if there is one, else of the interface
// only, if one is named. Errors: fi.EADDRNOTAVAIL.
func defaultName(want names.Name, domainIface, only string) (names.Name, error) {
	locals, err := names.Locals(names.System)
	if err != nil {
		return names.Name{}, err
	}
	for _, iface := range []string{domainIface, only} {
		for _, l := range locals {
			if (iface == "" || l.Iface == iface) && (want.Family == 0 || l.Name.Family == want.Family) {
				return l.Name.WithPort(want.Port), nil
			}
		}
	}
	return names.Name{}, fi.EADDRNOTAVAIL
}
