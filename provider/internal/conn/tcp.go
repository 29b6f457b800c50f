package conn

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// bindTCP binds a TCP socket to want, of any port if that is 0, and returns
// the name that it got. An IPv6 wildcard takes IPv4 connections too if both.
// Errors: fi.EADDRINUSE, fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func bindTCP(want names.Name, both bool) (fd int, got names.Name, err error) {
	domain, only := unix.AF_INET, 1
	if want.Family == names.AFInet6 {
		domain = unix.AF_INET6
	}
	fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, got, fmt.Errorf("socket for %s: %w", want, fi.ErrnoOf(err))
	}
	if domain == unix.AF_INET6 {
		if both {
			only = 0
		}
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
	}
	if err == nil && want.Port != 0 {
		// Connections of a listener that is gone keep their port for minutes.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		got, err = names.Bind(fd, want)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, got, fmt.Errorf("bind %s: %w", want, fi.ErrnoOf(err))
	}
	return fd, got, nil
}

// listener returns a listener on a copy of a socket that listens.
func listener(fd int) (*net.TCPListener, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fi.ErrnoOf(err)
	}
	f := os.NewFile(uintptr(dup), "weft passive endpoint")
	defer func() { _ = f.Close() }() // FileListener makes a copy of its own
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fi.ErrnoOf(err)
	}
	return l.(*net.TCPListener), nil
}

// NameOf is the name that a TCP address stands for.
func NameOf(a net.Addr) names.Name {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return names.Name{}
	}
	p := t.AddrPort()
	return names.New(p.Addr().Unmap(), p.Port())
}

// addrOf is a name as package net takes it.
func addrOf(n names.Name) *net.TCPAddr {
	a := n.Addr()
	if n.Scope != 0 {
		a = a.WithZone(fmt.Sprint(n.Scope))
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, n.Port))
}
