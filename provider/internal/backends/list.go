package backends

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

// Backend describes a transport of this build for people ("weft info").
type Backend struct {
	Name    string
	Reaches string  // which peers
	Attr    hw.Attr // valid if Err is nil
	Err     error   // why it is not usable here
}

// List tries every transport, in the order in which they are
// preferred: each is opened once and closed again. A program without cgo, as the command
// weft, says of RDMA devices what one with libweft would find.
func List(c *config.Config) []Backend {
	local, localErr := tryLocal(c)
	overUDP, udpErr := tryUDP(c)
	return []Backend{
		{Name: "shm", Reaches: "peers on this host", Attr: local, Err: localErr},
		{Name: "verbs", Reaches: "peers on other hosts", Err: tryRDMA(c)},
		{Name: "cxi", Reaches: "peers on other hosts", Err: tryCXI(c)},
		{Name: "udp", Reaches: "peers on other hosts", Attr: overUDP, Err: udpErr},
	}
}

// freePort binds a name of this host that the kernel says is free.
func freePort() (*names.Socket, names.Name, error) {
	local, err := names.FromSockaddr([]byte{unix.AF_INET, 0, 0, 0, 127, 0, 0, 1, 15: 0}) // any port
	if err != nil {
		return nil, names.Name{}, err
	}
	s, n, err := names.Reserve(local, "", "")
	if err != nil {
		return nil, names.Name{}, fmt.Errorf("reserve a name: %w", err)
	}
	return s, n, nil
}

// tryUDP opens the transport over UDP.
func tryUDP(c *config.Config) (hw.Attr, error) {
	if c.UDP == config.No {
		return hw.Attr{}, errors.New("FI_WEFT_UDP is no")
	}
	s, n, err := freePort()
	if err != nil {
		return hw.Attr{}, err
	}
	defer s.Close()
	fd, err := unix.FcntlInt(uintptr(s.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return hw.Attr{}, fmt.Errorf("duplicate a socket: %w", err)
	}
	i, err := udp.Open(fd, udp.Config{Stripes: c.UDPStripes, Source: n.AppendSockaddr(nil),
		MaxBcopy: max(c.BounceSize, c.UDPEagerSize), Eager: c.UDPEagerSize, Memory: udp.NewMemoryDomain()})
	if err != nil {
		return hw.Attr{}, err
	}
	attr := i.Attr()
	return attr, i.Close()
}

// tryRDMA tries a device, no interface: that takes an endpoint.
func tryRDMA(c *config.Config) error {
	if c.Verbs == config.No {
		return errors.New("FI_WEFT_VERBS is no")
	}
	return probeRDMA(c)
}

// tryCXI is tryRDMA for the NICs of Slingshot.
func tryCXI(c *config.Config) error {
	if c.CXI == config.No {
		return errors.New("FI_WEFT_CXI is no")
	}
	return probeCXI(c)
}

// tryLocal opens the transport to peers on this host under a name that the
// kernel says is free.
func tryLocal(c *config.Config) (hw.Attr, error) {
	s, n, err := freePort()
	if err != nil {
		return hw.Attr{}, err
	}
	defer s.Close()
	i, err := openLocal(n.AppendSockaddr(nil), s, loopback.Config{Stripes: 1, BounceCount: c.Bounces(1, 0)}, c)
	if err != nil {
		return hw.Attr{}, err
	}
	attr := i.Attr()
	return attr, i.Close()
}
