package provider

import (
	"crypto/rand"
	"errors"
	"io"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/hw/udp/sock"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/keys"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/peers"
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
const publishedKeys = keys.DirectSize

// newMemoryDomain opens the memory domain of the transport on this host.
func newMemoryDomain() hw.MemoryDomain { return loopback.NewMemoryDomain() }

// networked reports whether endpoints of a name are reached over UDP.
func networked(name names.Name, c *config.Config) bool {
	return c.UDP == config.Yes || c.UDP == config.Auto && !name.IsLoopback()
}

// networked reports whether the endpoint is reached over UDP.
func (e *peering) networked() bool {
	return networked(e.name, e.domain.cfg) || e.apart && e.domain.cfg.UDP != config.No
}

// openNetworks opens the transports to other hosts of an endpoint that is about
// to be enabled, and what answers for its name, which is closed after them.
// There may be none.
func openNetworks(e *Endpoint) (list []hw.Iface, names io.Closer, err error) {
	over := newRDMA(e)
	if err := over.open(); err != nil {
		return nil, nil, err
	}
	if over.iface != nil {
		list = append(list, over.iface)
	}
	if e.networked() {
		var i *udp.Iface
		if i, err = openUDP(e, over); err == nil {
			over.share(i)
			list = append(list, i)
		}
	} else if err = sock.SetClass(e.socket.FD, e.domain.dscp(e.info)); err == nil {
		err = over.alone(e.socket.FD)
	}
	if err != nil {
		for _, i := range list {
			err = errors.Join(err, i.Close())
		}
		return nil, nil, errors.Join(err, over.Close())
	}
	return list, over, nil
}

// openUDP opens the transport over UDP: on the endpoint's own socket, which it
// shares with the exchange of device addresses, or on one of a context.
func openUDP(e *Endpoint, over *rdma) (*udp.Iface, error) {
	cc, err := udpCongestion(e.domain.cfg)
	if err != nil {
		return nil, err
	}
	i, err := openUDPSocket(e, udp.Config{
		Stripes:     e.domain.cfg.UDPStripes,
		Congestion:  cc,
		Source:      e.name.AppendSockaddr(nil),
		MaxBcopy:    max(e.domain.cfg.BounceSize, e.domain.cfg.UDPEagerSize),
		Eager:       e.domain.cfg.UDPEagerSize,
		Memory:      udp.NewMemoryDomain(),
		Key:         e.auth.Bytes(),
		Keys:        e.keys,
		PeerTimeout: e.domain.cfg.PeerTimeout,
		Foreign:     over.exchange.Take,
		XDP:         udpXDP[e.domain.cfg.UDPXDP],
		NoInbox:     !e.domain.cfg.UDPInbox,
		Class:       e.domain.dscp(e.info),
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err == nil && i.XDP() != "" {
		log.Infof(log.EPData, "udp by AF_XDP: %s", i.XDP())
	}
	return i, err
}

func openUDPSocket(e *Endpoint, c udp.Config) (*udp.Iface, error) {
	if e.scalable != nil {
		m, err := e.scalable.portMapper()
		if err != nil {
			return nil, err
		}
		return m.Open(e.context, c)
	}
	fd, err := unix.FcntlInt(uintptr(e.socket.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return udp.Open(fd, c)
}

// udpXDP is FI_WEFT_UDP_XDP as the transport takes it.
var udpXDP = map[config.Tri]udp.XDP{config.No: udp.XDPOff, config.Auto: udp.XDPTry, config.Yes: udp.XDPMust}

// fixedWindow is the window of FI_WEFT_CC=fixed in packets.
const fixedWindow = 128

// udpCongestion is how the UDP transport's windows are computed.
func udpCongestion(c *config.Config) (*congestion.Config, error) {
	cc := udp.DefaultCongestion()
	cc.Alpha, cc.Beta = c.RTTAlpha, c.RTTBeta
	var err error
	if cc.Algorithm, err = congestion.ParseAlgorithm(c.CC); err != nil {
		return nil, err
	}
	if cc.Algorithm == congestion.Fixed {
		cc.Initial = fixedWindow
	}
	return &cc, nil
}

// openOwn opens the transport by which an endpoint that is about to be enabled
// reaches peers on this host. Its regions are published to peers with the same key.
func openOwn(e *Endpoint, stripes int) (iface, error) {
	own := loopback.Config{
		Here:        func(a netip.Addr) bool { return e.domain.local.Has(names.New(a, 0)) },
		BounceCount: e.bounces(stripes),
		Stripes:     stripes,
		Cookie:      e.incarnation,
		Key:         e.auth.Bytes(),
		Keys:        e.keys,
		Exclusive:   e.domain.exclusiveShared(),
	}
	if memory, ok := e.published().(*loopback.MemoryDomain); ok {
		own.Memory, own.KeyCount = memory, publishedKeys
	} else if e.collectivePuts() {
		// without the application's regions
		own.Memory, own.KeyCount = loopback.NewMemoryDomain(), publishedKeys
	}
	if e.apart {
		return openIface(unboundName(), &names.Socket{}, own, e.domain.cfg) // no peer asks for it
	}
	return openIface(peers.Address{Name: e.name, Number: e.context}.Raw(), e.socket, own, e.domain.cfg)
}

// openIface opens the transport that reaches peers on this host, named by a
// socket address and perhaps a number (peers.Address.Raw); bound says at which others it
// answers. own is completed. This file is the one place where backends are chosen by
// name.
func openIface(addr []byte, bound *names.Socket, own loopback.Config, c *config.Config) (iface, error) {
	if bound.Inet {
		own.Any |= loopback.IPv4
	}
	if bound.Inet6 {
		own.Any |= loopback.IPv6
	}
	own.Dir, own.RingLog2 = c.SHMDir, int(log2(c.RingSlots))
	own.Eager = shmEager(c)
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

// shmEager is FI_WEFT_SHM_EAGER_SIZE in bytes. The kernel's copies are not measured where they are not to be used.
func shmEager(c *config.Config) int {
	switch {
	case c.SHMEagerSize != config.Measured:
		return c.SHMEagerSize
	case c.UseCMA == config.No:
		return config.SHMEagerMost
	}
	return measuredEager()
}

// nameTaken reports whether an endpoint of another network namespace that shares our
// memory has a name.
func nameTaken(n names.Name, c *config.Config) bool {
	return c.Across() && loopback.Taken(c.SHMDir, n.AppendSockaddr(nil))
}

// unboundName is a socket address that no endpoint has, of the prefix for documentation (RFC 3849).
func unboundName() []byte {
	addr := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	rand.Read(addr[4:]) // never fails
	return peers.Address{Name: names.New(netip.AddrFrom16(addr), 1)}.Raw()
}
