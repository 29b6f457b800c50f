// Package ethtool asks the drivers of network interfaces, and sets them
// something, in requests of which golang.org/x/sys/unix has the numbers only
// (netdevice(7), linux/ethtool.h).
package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Do makes a request of an interface's driver. value is the kernel's structure of
// the request, which begins with its number, and holds the answer afterwards.
// Errors are the kernel's: EOPNOTSUPP where the driver does not know the request,
// ENODEV where there is no such interface, EPERM.
func Do[T any](iface string, value *T) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(value)}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// Channels is the kernel's struct ethtool_channels: numbers of queues of an
// interface.
type Channels struct {
	Command                           uint32
	MaxRx, MaxTx, MaxOther, MaxJoined uint32
	Rx, Tx, Other, Joined             uint32
}
