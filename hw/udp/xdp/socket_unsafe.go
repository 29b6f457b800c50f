package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// option sets a socket option whose value is a structure.
func option[T any](fd, name int, value *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(name), uintptr(unsafe.Pointer(value)), unsafe.Sizeof(*value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// readOption reads one.
func readOption[T any](fd, name int, value *T) error {
	n := uint32(unsafe.Sizeof(*value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(name), uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	if n != uint32(unsafe.Sizeof(*value)) {
		return fmt.Errorf("an answer of %d bytes: %w", n, unix.EOPNOTSUPP) // a kernel before 5.4
	}
	return nil
}

// register makes b the frames of the socket.
func register(fd int, b []byte, chunk int) error {
	r := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&b[0]))), Len: uint64(len(b)), Size: uint32(chunk)}
	if err := option(fd, unix.XDP_UMEM_REG, &r); err != nil {
		return fmt.Errorf("register %d bytes for frames: %w", len(b), err)
	}
	return nil
}

// kick has the kernel send what is in the transmit ring of fd. It returns the
// error of the kernel.
func kick(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// nudge has the kernel look at the fill ring of fd.
func nudge(fd int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}

// ethtool asks the driver of an interface. value begins with the command.
func ethtool[T any](name string, value *T) error {
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
	copy(request.name[:unix.IFNAMSIZ-1], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// channels is the number of receive queues of an interface, 1 if its driver does
// not tell.
func channels(name string) int {
	v := struct { // the kernel's struct ethtool_channels
		command                           uint32
		maxRx, maxTx, maxOther, maxJoined uint32
		rx, tx, other, joined             uint32
	}{command: unix.ETHTOOL_GCHANNELS}
	if ethtool(name, &v) != nil {
		return 1
	}
	return max(1, int(v.rx+v.joined))
}

// driver is the name of an interface's driver, empty if it does not tell.
func driver(name string) string {
	v := unix.EthtoolDrvinfo{Cmd: unix.ETHTOOL_GDRVINFO}
	if ethtool(name, &v) != nil {
		return ""
	}
	return unix.ByteSliceToString(v.Driver[:])
}
