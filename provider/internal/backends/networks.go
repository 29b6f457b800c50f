package backends

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/sock"
	"github.com/weft-fabric/weft/provider/names"
)

// Networked reports whether endpoints of a name are reached over UDP.
func Networked(name names.Name, c *config.Config) bool {
	return c.UDP == config.Yes || c.UDP == config.Auto && !name.IsLoopback()
}

// networked reports whether the endpoint is reached over UDP.
func (e *Endpoint) networked() bool {
	return Networked(e.Name, e.Config) || e.Apart && e.Config.UDP != config.No
}

// Networks are an endpoint's transports to other hosts.
type Networks struct {
	Ifaces []hw.Iface
	// Names answers for the endpoint's name. It is closed after the interfaces.
	Names io.Closer
	// Unbelled says that peers may write what rings no bell.
	Unbelled bool
}

// OpenNetworks opens the transports to other hosts of an endpoint that is about to be enabled, and what answers for its
// name. There may be none. Errors: those of the transports, and fi.ENODEV for a device that the configuration demands.
func (e *Endpoint) OpenNetworks() (*Networks, error) {
	over := newRDMA(e)
	if err := over.open(); err != nil {
		return nil, err
	}
	n := &Networks{Names: over, Unbelled: over.unbelled}
	if over.iface != nil {
		n.Ifaces = append(n.Ifaces, over.iface)
	}
	var err error
	if n.Ifaces, err = e.openProgram(n.Ifaces); err == nil {
		err = e.openSocket(n, over)
	}
	if err != nil {
		for _, i := range n.Ifaces {
			err = errors.Join(err, i.Close())
		}
		return nil, errors.Join(err, over.Close())
	}
	return n, nil
}

// openSocket adds the transport over UDP, if the endpoint has it, or prepares the socket for exchanges without it.
func (e *Endpoint) openSocket(n *Networks, over *rdma) error {
	if !e.networked() {
		if err := sock.SetClass(e.Socket.FD, e.Class); err != nil {
			return err
		}
		return over.alone(e.Socket.FD)
	}
	i, err := openUDP(e, over)
	if err == nil {
		over.share(i)
		n.Ifaces = append(n.Ifaces, i)
	}
	return err
}

// openUDP opens the transport over UDP: on the endpoint's own socket, which it
// shares with the exchange of device addresses, or on one of a context.
func openUDP(e *Endpoint, over *rdma) (*udp.Iface, error) {
	cc, err := udpCongestion(e.Config)
	if err != nil {
		return nil, err
	}
	i, err := openUDPSocket(e, udp.Config{
		Stripes:     e.Config.UDPStripes,
		Congestion:  cc,
		Source:      e.Name.AppendSockaddr(nil),
		MaxBcopy:    max(e.Config.BounceSize, e.Config.UDPEagerSize),
		Eager:       e.Config.UDPEagerSize,
		Memory:      udp.NewMemoryDomain(),
		Key:         e.Auth.Bytes(),
		Keys:        e.Keys,
		PeerTimeout: e.Config.PeerTimeout,
		Foreign:     over.exchange.Take,
		XDP:         udpXDP[e.Config.UDPXDP],
		NoInbox:     !e.Config.UDPInbox,
		Class:       e.Class,
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err == nil && i.XDP() != "" {
		log.Infof(log.EPData, "udp by AF_XDP: %s", i.XDP())
	}
	return i, err
}

func openUDPSocket(e *Endpoint, c udp.Config) (*udp.Iface, error) {
	if e.Mapper != nil {
		m, err := e.Mapper.open()
		if err != nil {
			return nil, err
		}
		return m.Open(e.Context, c)
	}
	fd, err := unix.FcntlInt(uintptr(e.Socket.FD), unix.F_DUPFD_CLOEXEC, 0)
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
