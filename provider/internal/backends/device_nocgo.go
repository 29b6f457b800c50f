//go:build !cgo

package backends

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/authkey"
)

// openRDMADevice fails: libibverbs is called through cgo.
func openRDMADevice(*config.Config, string) (hw.MemoryDomain, error) {
	return nil, fmt.Errorf("this program was built without cgo, so without libibverbs: %w", hw.ErrUnreachable)
}

// probeRDMA finds what a program with libweft finds when it opens the device that the
// configuration names, or any.
func probeRDMA(c *config.Config) error { return nic.ThisHost().Verbs(c.VerbsDevice) }

// openCXIDevice fails: libcxi is called through cgo.
func openCXIDevice(*config.Config, string) (hw.MemoryDomain, error) {
	return nil, fmt.Errorf("this program was built without cgo, so without libcxi: %w", hw.ErrUnreachable)
}

// probeCXI finds what a program with libweft finds when it opens the NIC that the configuration names, or any.
func probeCXI(c *config.Config) error { return nic.ThisHost().CXI(c.CXIDevice) }

// MatchDevices fails likewise.
func MatchDevices(*config.Config) ([]info.MatchDevice, error) {
	return nil, fmt.Errorf("this program was built without cgo, so without libcxi: %w", hw.ErrUnreachable)
}

// openMatchDevice fails likewise.
func openMatchDevice(string, authkey.Key) (hw.MemoryDomain, error) { return nil, hw.ErrUnreachable }

// OwnMatchKey has no key to judge.
func OwnMatchKey(*config.Config, string, authkey.Key, authkey.Key) (authkey.Key, error) {
	return "", hw.ErrUnreachable
}

// AdmitsMatchKey, MatchAtomic and OpenMatched are not called without a device.
func AdmitsMatchKey(hw.MemoryDomain, authkey.Key) error { return hw.ErrUnreachable }

// MatchAtomic is false.
func MatchAtomic(hw.MatchOp, hw.MatchType, bool) bool { return false }

// MatchAttr is nothing.
func MatchAttr() hw.MatchAttr { return hw.MatchAttr{} }

// OpenMatched fails.
func OpenMatched(hw.MemoryDomain, *Matched) (hw.Iface, error) { return nil, hw.ErrUnreachable }

// openRDMAIface, deviceAddress and startWatch are not called without a device.
func openRDMAIface(hw.MemoryDomain, *rdma) (hw.Iface, error) { return nil, hw.ErrUnreachable }

func deviceAddress(hw.Iface) []byte { return nil }

func startWatch() (regcache.Watch, error) { return nil, hw.ErrUnreachable }
