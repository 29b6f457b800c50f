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
	value := struct{ cmd, data uint32 }{unix.ETHTOOL_STXCSUM, 0}
	return ethtool(iface, unsafe.Pointer(&value))
}

// setChannels sets the number of queues of an interface in each direction.
func setChannels(iface string, n uint32) error {
	value := struct { // the kernel's struct ethtool_channels
		cmd                               uint32
		maxRx, maxTx, maxOther, maxJoined uint32
		rx, tx, other, joined             uint32
	}{cmd: unix.ETHTOOL_SCHANNELS, rx: n, tx: n}
	return ethtool(iface, unsafe.Pointer(&value))
}

// ethtool tells the driver of an interface something.
func ethtool(iface string, value unsafe.Pointer) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: value}
	copy(request.name[:], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
