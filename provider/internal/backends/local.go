package backends

import (
	"crypto/rand"
	"math/bits"
	"net/netip"
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
)

// Local is what an endpoint needs of its transport on this host: the general
// interface, the tables that let C write into peers' rings, and the doorbell
// for threads that sleep.
type Local interface {
	hw.Iface
	hw.Direct
	hw.Waiter
}

// PublishedKeys is the number of regions that peers on this host find without
// messages.
const PublishedKeys = 1024

// NewMemoryDomain opens the memory domain of the transport on this host.
func NewMemoryDomain() hw.MemoryDomain { return loopback.NewMemoryDomain() }

// LocalOptions are what the transport on this host needs to know beside the Endpoint.
type LocalOptions struct {
	Here        func(a netip.Addr) bool // reports whether an address is this host's
	BounceCount int                     // bounce buffers
	Incarnation uint64                  // of the endpoint, which another one of its name has not
	Exclusive   bool                    // one thread at a time uses it
	// Published is where regions are that peers reach by themselves, nil: nowhere. With Collectives they reach memory
	// of collective operations all the same.
	Published   hw.MemoryDomain
	Collectives bool
}

// OpenLocal opens the transport by which an endpoint that is about to be enabled reaches peers on this host. Errors:
// those of loopback.Open.
func (e *Endpoint) OpenLocal(o *LocalOptions) (Local, error) {
	own := loopback.Config{
		Here:        o.Here,
		BounceCount: o.BounceCount,
		Stripes:     e.Stripes,
		Cookie:      o.Incarnation,
		Key:         e.Auth.Bytes(),
		Keys:        e.Keys,
		Exclusive:   o.Exclusive,
	}
	if memory, ok := o.Published.(*loopback.MemoryDomain); ok {
		own.Memory, own.KeyCount = memory, PublishedKeys
	} else if o.Collectives {
		// without the application's regions
		own.Memory, own.KeyCount = loopback.NewMemoryDomain(), PublishedKeys
	}
	if e.Apart {
		return openLocal(unboundName(), &names.Socket{}, own, e.Config) // no peer asks for it
	}
	return openLocal(e.address(), e.Socket, own, e.Config)
}

// openLocal opens the transport that reaches peers on this host, named by a
// socket address and perhaps a number (peers.Address.Raw); bound says at which others it
// answers. own is completed.
func openLocal(addr []byte, bound *names.Socket, own loopback.Config, c *config.Config) (Local, error) {
	if bound.Inet {
		own.Any |= loopback.IPv4
	}
	if bound.Inet6 {
		own.Any |= loopback.IPv6
	}
	own.Dir, own.RingLog2 = c.SHMDir, bits.Len(uint(c.RingSlots))-1
	own.Eager = SHMEager(c)
	own.AttachCount, own.BounceBytes = c.MaxPeers, max(c.BounceSize, own.Eager)
	own.Across = c.Across()
	own.UseCMA = map[config.Tri]loopback.CMA{config.Auto: loopback.CMAAuto, config.Yes: loopback.CMAYes,
		config.No: loopback.CMANo}[c.UseCMA]
	own.Logf = func(format string, args ...any) { log.Warnf(log.EPData, format, args...) }
	i, err := loopback.Open(addr, own)
	if err != nil {
		return nil, err // not i: an interface that holds a nil pointer is not nil
	}
	return i, nil
}

// measuredEager is the measured FI_WEFT_SHM_EAGER_SIZE in bytes, the same for all endpoints of the process.
var measuredEager = sync.OnceValue(func() int {
	n := loopback.EagerLimit(config.SHMEagerMost)
	log.Infof(log.EPCtrl, "FI_WEFT_SHM_EAGER_SIZE=auto: measured %d bytes", n)
	return n
})

// SHMEager is FI_WEFT_SHM_EAGER_SIZE in bytes. The kernel's copies are not measured where they are not to be used.
func SHMEager(c *config.Config) int {
	switch {
	case c.SHMEagerSize != config.Measured:
		return c.SHMEagerSize
	case c.UseCMA == config.No:
		return config.SHMEagerMost
	}
	return measuredEager()
}

// NameTaken reports whether an endpoint of another network namespace that shares our
// memory has a name.
func NameTaken(n names.Name, c *config.Config) bool {
	return c.Across() && loopback.Taken(c.SHMDir, n.AppendSockaddr(nil))
}

// unboundName is a socket address that no endpoint has, of the prefix for documentation (RFC 3849).
func unboundName() []byte {
	addr := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	rand.Read(addr[4:]) // never fails
	return peers.Address{Name: names.New(netip.AddrFrom16(addr), 1)}.Raw()
}
