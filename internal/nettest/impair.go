package nettest

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"github.com/weft-fabric/weft/internal/impair"
)

// Impairment says what happens to what comes to a host.
type Impairment = impair.Impairment

// Impair has what comes to the host impaired, until the test ends. It skips the
// test where the kernel does not allow the program.
func (h *Host) Impair(p Impairment) {
	h.t.Helper()
	detour := 0
	if p.Delay > 0 {
		detour = h.detour(p.Detour)
	}
	var attached io.Closer
	var err error
	h.Do(func() { attached, err = impair.Attach(p, h.Index, detour) })
	if errors.Is(err, unix.EPERM) || errors.Is(err, ebpf.ErrNotSupported) {
		h.t.Skipf("no eBPF program on an interface: %v", err)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = attached.Close() })
	if p.Damage > 0 {
		h.checksums()
	}
}

// detour makes a slow way that leads back to the host, and returns where it begins.
func (h *Host) detour(kbit int) int {
	h.t.Helper()
	index, mac := 0, ""
	h.Do(func() {
		if i, err := net.InterfaceByName(h.Iface); err == nil {
			mac = i.HardwareAddr.String()
		}
	})
	h.Run("ip", "link", "add", "slow0", "type", "veth", "peer", "name", "slow1")
	h.Run("ip", "link", "set", "slow1", "address", mac)
	for _, name := range []string{"slow0", "slow1"} {
		h.Run("ip", "link", "set", name, "up")
	}
	h.Run("tc", "qdisc", "replace", "dev", "slow0", "root", "tbf", "rate", fmt.Sprintf("%dkbit", kbit),
		"burst", "1600", "limit", "60000")
	h.Do(func() {
		if i, err := net.InterfaceByName("slow0"); err == nil {
			index = i.Index
		}
	})
	return index
}
