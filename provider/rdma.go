package provider

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/regcache"
	"github.com/weft-fabric/weft/hw/udp"
	devices "github.com/weft-fabric/weft/hw/verbs/exchange"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/nic"
)

// rdmaDomain is a domain's RDMA device, opened when the first endpoint that may
// use one is enabled.
type rdmaDomain struct {
	mu     sync.Mutex      // control operations only
	opened bool            // or that was tried
	device hw.MemoryDomain // nil: there is none
	cache  *regcache.Cache // of device's registrations
	err    error           // why

	telemetry nic.Meter // of a device that matches messages
}

// rdma is an endpoint's interface on the domain's RDMA device. Peers know the
// endpoint by its socket address, so device addresses are exchanged over the
// socket that holds it: by the exchange, which every endpoint with a transport
// to other hosts has, so that one without a device can say so.
type rdma struct {
	ep       *Endpoint
	iface    hw.Iface // nil: none
	exchange *devices.Exchange
}

// errNoRDMA says that there is no RDMA device, or that none is wanted: nothing
// for messages to users.
var errNoRDMA = errors.New("no RDMA")

// rdmaDevice returns the domain's device, opening it the first time.
func (d *Domain) rdmaDevice() (hw.MemoryDomain, error) {
	r := &d.rdma
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened {
		return r.device, r.err
	}
	r.opened = true
	switch {
	case d.Matches():
		r.device, r.err = openMatchDevice(d)
	case d.cfg.Verbs == config.No && d.cfg.CXI == config.No:
		r.err = errNoRDMA
		return nil, r.err
	default:
		r.device, r.err = openDevice(d.cfg, d.DomainName())
	}
	if r.err != nil {
		r.device = nil
		if demanded(d.cfg) {
			log.Warnf(log.Domain, "FI_WEFT_VERBS or FI_WEFT_CXI is yes: %v", r.err)
		} else if named := namedDevice(d.cfg); named != "" {
			log.Warnf(log.Domain, "%s is not used: %v", named, r.err)
		} else if !errors.Is(r.err, errNoRDMA) {
			log.Infof(log.Domain, "no RDMA: %v", r.err)
		}
		return nil, r.err
	}
	watch, err := startWatch()
	if err != nil {
		log.Infof(log.Domain, "registrations of memory are not kept: %v", err)
	}
	r.cache = regcache.New(r.device, regcache.Config{Watch: watch})
	r.cache.Alone(d.gate.Word())
	if d.Matches() {
		r.telemetry.Begin(nic.ThisHost(), d.DomainName(), d.cfg.CXITelemetry)
	}
	return r.device, nil
}

// cacheOf returns the cache of a memory domain's registrations, nil if there is
// none.
func (d *Domain) cacheOf(m hw.MemoryDomain) *regcache.Cache {
	d.rdma.mu.Lock()
	defer d.rdma.mu.Unlock()
	if m == nil || m != d.rdma.device {
		return nil
	}
	return d.rdma.cache
}

// closeRDMA closes the device; nothing is open on it any more.
func (d *Domain) closeRDMA() {
	r := &d.rdma
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.device != nil {
		r.cache.Close()
		if err := r.device.Close(); err != nil {
			log.Warnf(log.Domain, "close the RDMA device: %v", err)
		}
		r.device = nil
		r.telemetry.End()
	}
}

// demanded reports whether the configuration wants no domain without a device.
func demanded(c *config.Config) bool { return c.Verbs == config.Yes || c.CXI == config.Yes }

// namedDevice is the setting that names a device, as the log has it, "" for none.
func namedDevice(c *config.Config) string {
	switch {
	case c.VerbsDevice != "" && c.Verbs != config.No:
		return fmt.Sprintf("FI_WEFT_VERBS_DEVICE=%q", c.VerbsDevice)
	case c.CXIDevice != "" && c.CXI != config.No:
		return fmt.Sprintf("FI_WEFT_CXI_DEVICE=%q", c.CXIDevice)
	}
	return ""
}

// openDevice opens the device of a domain whose network interface is netdev: an RDMA device, or a NIC of Slingshot
// where there is none, or one is demanded.
func openDevice(c *config.Config, netdev string) (hw.MemoryDomain, error) {
	var err error
	if c.Verbs != config.No && c.CXI != config.Yes {
		var d hw.MemoryDomain
		if d, err = openRDMADevice(c, netdev); err == nil || c.Verbs == config.Yes {
			return d, err
		}
	}
	if c.CXI == config.No {
		return nil, err
	}
	d, cxiErr := openCXIDevice(c, netdev)
	if cxiErr == nil || err == nil || c.CXIDevice != "" || errors.Is(err, errNoRDMA) && !errors.Is(cxiErr, errNoRDMA) {
		return d, cxiErr
	}
	return nil, err
}

// newRDMA begins an endpoint's share of the device.
func newRDMA(e *Endpoint) *rdma { return &rdma{ep: e} }

// open opens the interface if there is a device, and the exchange. Without a
// device, or without room for the interface, there is none, unless
// the configuration demands one.
func (r *rdma) open() error {
	var own []byte
	if err := r.openIface(); err != nil {
		if demanded(r.ep.domain.cfg) {
			return fmt.Errorf("%w: %w", err, fi.ENODEV)
		}
		if !errors.Is(err, errNoRDMA) {
			log.Infof(log.EPCtrl, "%s has no RDMA: %v", r.ep.name, err)
		}
	} else if r.iface != nil {
		own = deviceAddress(r.iface)
	}
	if s := r.ep.scalable; s != nil && r.iface != nil {
		if err := s.setDevice(r.ep.context, own); err != nil {
			return errors.Join(err, r.iface.Close())
		}
		own = nil // questions go to the name's socket
	}
	x, err := devices.Share(own)
	if err != nil && r.iface != nil {
		return errors.Join(err, r.iface.Close())
	}
	r.exchange = x
	return err
}

// mayUseDevice reports whether the endpoint, which is no context, would have an interface on the domain's device.
func (e *peering) mayUseDevice() bool {
	if e.name.IsLoopback() || e.auth != "" || e.keys != nil {
		return false
	}
	device, _ := e.domain.rdmaDevice()
	return device != nil
}

func (r *rdma) openIface() error {
	if r.ep.name.IsLoopback() {
		return nil // its peers are on this host
	}
	if r.ep.scalable != nil && !networked(r.ep.name, r.ep.domain.cfg) {
		return errNoRDMA // without a socket of its own a context cannot ask for its peers' devices
	}
	if r.ep.auth != "" || r.ep.keys != nil {
		return fmt.Errorf("devices know no authorisation keys: %w", errNoRDMA)
	}
	device, err := r.ep.domain.rdmaDevice()
	if err != nil {
		return err
	}
	i, err := openRDMAIface(device, r)
	if err != nil {
		return err
	}
	r.iface = i
	return nil
}

// resolve turns a peer's name into its device address.
func (r *rdma) resolve(name []byte) ([]byte, error) { return r.exchange.Resolve(name) }

// forget says that the interface behind a name is gone.
func (r *rdma) forget(name []byte) { r.exchange.Forget(name) }

// share has the exchange ask over a UDP interface that has its socket.
func (r *rdma) share(i *udp.Iface) { r.exchange.Over(i.SendForeign) }

// alone gives the exchange the socket for itself, if there is something to exchange.
func (r *rdma) alone(fd int) error {
	if r.iface == nil {
		return nil
	}
	x, err := devices.Open(fd, deviceAddress(r.iface))
	if err == nil {
		r.exchange = x
	}
	return err
}

// Close ends the exchange; the interface was closed before.
func (r *rdma) Close() error {
	if s := r.ep.scalable; s != nil && r.iface != nil {
		if err := s.setDevice(r.ep.context, nil); err != nil {
			log.Warnf(log.EPCtrl, "%s: %v", r.ep.name, err)
		}
	}
	return r.exchange.Close()
}
