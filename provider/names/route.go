package names

import (
	"fmt"
	"syscall"
)

// Route returns the local address that the kernel sends from to reach dest,
// with port 0. It connects a datagram socket, which sends nothing. Errors wrap
// the system's, such as ENETUNREACH.
func Route(dest Name) (Name, error) {
	family, sa := sockaddrOf(dest)
	if sa == nil {
		return Name{}, fmt.Errorf("route to %v: %w", dest, syscall.EAFNOSUPPORT)
	}
	fd, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return Name{}, fmt.Errorf("route to %v: socket: %w", dest, err)
	}
	defer syscall.Close(fd)
	if err := syscall.Connect(fd, sa); err != nil {
		return Name{}, fmt.Errorf("route to %v: %w", dest, err)
	}
	local, err := syscall.Getsockname(fd)
	if err != nil {
		return Name{}, fmt.Errorf("route to %v: socket name: %w", dest, err)
	}
	switch sa := local.(type) {
	case *syscall.SockaddrInet4:
		n := Name{Family: AFInet}
		copy(n.IP[:], sa.Addr[:])
		return n, nil
	case *syscall.SockaddrInet6:
		return Name{Family: AFInet6, IP: sa.Addr, Scope: sa.ZoneId}, nil
	}
	return Name{}, fmt.Errorf("route to %v: %w", dest, syscall.EAFNOSUPPORT)
}

// sockaddrOf converts dest; port 0, which cannot be connected to, becomes the
// discard port.
func sockaddrOf(dest Name) (int, syscall.Sockaddr) {
	port := int(dest.Port)
	if port == 0 {
		port = 9
	}
	switch dest.Family {
	case AFInet:
		return syscall.AF_INET, &syscall.SockaddrInet4{Port: port, Addr: [4]byte(dest.IP[:4])}
	case AFInet6:
		return syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: dest.IP, ZoneId: dest.Scope}
	}
	return 0, nil
}
