package names

import "golang.org/x/sys/unix"

// Bind binds a socket and returns the name that it got: want, with a port of the kernel's choice if that has none.
func Bind(fd int, want Name) (Name, error) {
	var sa unix.Sockaddr
	if want.Family == AFInet6 {
		sa = &unix.SockaddrInet6{Port: int(want.Port), ZoneId: want.Scope, Addr: want.IP}
	} else {
		sa = &unix.SockaddrInet4{Port: int(want.Port), Addr: [4]byte(want.IP[:4])}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return Name{}, err
	}
	got, err := unix.Getsockname(fd)
	if err != nil {
		return Name{}, err
	}
	switch a := got.(type) {
	case *unix.SockaddrInet4:
		return want.WithPort(uint16(a.Port)), nil
	case *unix.SockaddrInet6:
		return want.WithPort(uint16(a.Port)), nil
	}
	return Name{}, unix.EAFNOSUPPORT
}
