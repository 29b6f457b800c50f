package nettest

import (
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/ethtool"
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
	return ethtool.Do(iface, &value)
}

// setChannels sets the number of queues of an interface in each direction.
func setChannels(iface string, n uint32) error {
	return ethtool.Do(iface, &ethtool.Channels{Command: unix.ETHTOOL_SCHANNELS, Rx: n, Tx: n})
}
