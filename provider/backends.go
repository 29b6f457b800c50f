package provider

import (
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// iface is what an endpoint needs of its transport on this host: the general
// interface, the tables that let C write into peers' rings, and the doorbell
// for threads that sleep.
type iface interface {
	hw.Iface
	hw.Direct
	hw.Waiter
}

// publishedKeys is the number of regions that peers on this host find without
// messages.
const publishedKeys = 1024

// newMemoryDomain opens the memory domain of the transport on this host.
func newMemoryDomain() hw.MemoryDomain { return loopback.NewMemoryDomain() }

// networked tells whether endpoints of a name are reached from other hosts.
func networked(name names.Name, c *config.Config) bool {
	return c.UDP == config.Yes || c.UDP == config.Auto && !name.IsLoopback()
}

// openNetwork opens the transport to other hosts, on the endpoint's own socket,
// nil if there is none.
func openNetwork(bound *boundSocket, name names.Name, c *config.Config) (hw.Iface, error) {
	if !networked(name, c) {
		return nil, nil
	}
	fd, err := unix.FcntlInt(uintptr(bound.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	i, err := udp.Open(fd, udp.Config{
		Source:      name.AppendSockaddr(nil),
		MaxBcopy:    c.BounceSize,
		PeerTimeout: c.PeerTimeout,
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err != nil {
		return nil, err // not i: an interface that holds a nil pointer is not nil
	}
	return i, nil
}

// openIface opens the transport that reaches peers on this host, named by a
// socket address and perhaps a number (address.raw); bound tells at which others it answers; exclusive
// that one thread at a time sends. There are at least as
// many bounce buffers as stripes. The regions of memory, which may be nil, are published. This is the one place where backends are chosen by name.
func openIface(addr []byte, bound *boundSocket, stripes, bounces int, exclusive bool, memory hw.MemoryDomain, c *config.Config) (iface, error) {
	keys := publishedKeys
	domain, ok := memory.(*loopback.MemoryDomain)
	if !ok {
		keys = 0
	}
	var all loopback.Families
	if bound.inet {
		all |= loopback.IPv4
	}
	if bound.inet6 {
		all |= loopback.IPv6
	}
	i, err := loopback.Open(addr, loopback.Config{
		Any:         all,
		Dir:         c.SHMDir,
		RingLog2:    int(log2(c.RingSlots)),
		AttachCount: c.MaxPeers,
		BounceCount: max(bounces, stripes),
		BounceBytes: c.BounceSize,
		Stripes:     stripes,
		KeyCount:    keys,
		Memory:      domain,
		Exclusive:   exclusive,
		UseCMA:      map[config.Tri]loopback.CMA{config.Auto: loopback.CMAAuto, config.Yes: loopback.CMAYes, config.No: loopback.CMANo}[c.UseCMA],
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err != nil {
		return nil, err // not i: an interface that holds a nil pointer is not nil
	}
	return i, nil
}
