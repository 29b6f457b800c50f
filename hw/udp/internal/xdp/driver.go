package xdp

import (
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/ethtool"
)

// channels is the number of receive queues of an interface, 1 if its driver does
// not say.
func channels(name string) int {
	v := ethtool.Channels{Command: unix.ETHTOOL_GCHANNELS}
	if ethtool.Do(name, &v) != nil {
		return 1
	}
	return max(1, int(v.Rx+v.Joined))
}

// driver is the name of an interface's driver, empty if it does not say.
func driver(name string) string {
	v := unix.EthtoolDrvinfo{Cmd: unix.ETHTOOL_GDRVINFO}
	if ethtool.Do(name, &v) != nil {
		return ""
	}
	return unix.ByteSliceToString(v.Driver[:])
}
