package provider

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
)

// iface is what an endpoint needs of its transport on this host: the general
// interface, the tables that let C write into peers' rings, and the doorbell
// for threads that sleep.
type iface interface {
	hw.Iface
	hw.Direct
	hw.Waiter
}

// openIface opens the transport that reaches peers on this host, named by a
// socket address; bound tells at which others it answers. This is the one place where backends are chosen by name.
func openIface(addr []byte, bound *boundSocket, stripes int, c *config.Config) (iface, error) {
	var all loopback.Families
	if bound.inet {
		all |= loopback.IPv4
	}
	if bound.inet6 {
		all |= loopback.IPv6
	}
	return loopback.Open(addr, loopback.Config{
		Any:         all,
		Dir:         c.SHMDir,
		RingLog2:    int(log2(c.RingSlots)),
		AttachCount: c.MaxPeers,
		BounceCount: max(c.BounceCount, stripes),
		BounceBytes: c.BounceSize,
		Stripes:     stripes,
		UseCMA:      map[config.Tri]loopback.CMA{config.Auto: loopback.CMAAuto, config.Yes: loopback.CMAYes, config.No: loopback.CMANo}[c.UseCMA],
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
}
