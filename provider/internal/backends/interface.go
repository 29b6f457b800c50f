package backends

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp"
	devices "github.com/weft-fabric/weft/internal/devaddr"
	"github.com/weft-fabric/weft/internal/log"
)

// rdma is an endpoint's interface on the domain's RDMA device. Peers know the
// endpoint by its socket address, so device addresses are exchanged over the
// socket that holds it: by the exchange, which every endpoint with a transport
// to other hosts has, so that one without a device can say so.
type rdma struct {
	ep       *Endpoint
	iface    hw.Iface // nil: none
	exchange *devices.Exchange
	unbelled bool // peers may write what rings no bell
}

// newRDMA begins an endpoint's share of the device.
func newRDMA(e *Endpoint) *rdma { return &rdma{ep: e} }

// open opens the interface if there is a device, and the exchange. Without a
// device, or without room for the interface, there is none, unless
// the configuration demands one.
func (r *rdma) open() error {
	var own []byte
	if err := r.openIface(); err != nil {
		if demanded(r.ep.Config) {
			return fmt.Errorf("%w: %w", err, fi.ENODEV)
		}
		if !errors.Is(err, errNoRDMA) {
			log.Infof(log.EPCtrl, "%s has no RDMA: %v", r.ep.Name, err)
		}
	} else if r.iface != nil {
		own = deviceAddress(r.iface)
	}
	if m := r.ep.Mapper; m != nil && r.iface != nil {
		if err := m.setDevice(r.ep.Context, own); err != nil {
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

func (r *rdma) openIface() error {
	if r.ep.Name.IsLoopback() {
		return nil // its peers are on this host
	}
	if r.ep.Mapper != nil && !Networked(r.ep.Name, r.ep.Config) {
		return errNoRDMA // without a socket of its own a context cannot ask for its peers' devices
	}
	if r.ep.keyed() {
		return fmt.Errorf("devices know no authorisation keys: %w", errNoRDMA)
	}
	device, err := r.ep.Device.Domain()
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
	if m := r.ep.Mapper; m != nil && r.iface != nil {
		if err := m.setDevice(r.ep.Context, nil); err != nil {
			log.Warnf(log.EPCtrl, "%s: %v", r.ep.Name, err)
		}
	}
	return r.exchange.Close()
}
