package nettest

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// checksums has both ends of the cable compute checksums, which veth interfaces
// otherwise leave out: damage would go unseen. Their names differ, so each host
// sets the one that it has.
func (h *Host) checksums() {
	h.t.Helper()
	peer := h.peer
	for _, end := range []*Host{h, peer} {
		var err error
		end.Do(func() { err = txChecksum(end.Iface) })
		if err != nil {
			h.t.Skipf("checksums of a veth interface: %v", err)
		}
	}
}

// txChecksum turns the offloading of checksums off.
func txChecksum(iface string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ cmd, data uint32 }{unix.ETHTOOL_STXCSUM, 0}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
