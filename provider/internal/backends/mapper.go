package backends

import (
	"sync"

	"github.com/weft-fabric/weft/hw/udp"
	devices "github.com/weft-fabric/weft/internal/devaddr"
	"github.com/weft-fabric/weft/provider/names"
)

// Mapper answers peers on other hosts for a scalable endpoint: at which UDP port each of its contexts is, and at which
// address of an RDMA device. It is opened when a context is that can be reached from there. Its methods may be called
// from any thread.
type Mapper struct {
	socket *names.Socket // that holds the endpoint's name
	class  uint8         // of its packets (DSCP)

	mu      sync.Mutex // control operations only
	ports   *udp.PortMapper
	devices *devices.Exchange
}

// NewMapper makes the mapper of an endpoint whose name a socket holds, which is closed after it.
func NewMapper(socket *names.Socket, class uint8) *Mapper {
	return &Mapper{socket: socket, class: class}
}

// open returns the port mapper, opening it for the first context.
func (m *Mapper) open() (*udp.PortMapper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ports == nil {
		x, err := devices.Share(nil)
		if err != nil {
			return nil, err
		}
		ports, err := udp.OpenPortMapper(m.socket.FD, m.class, x.Take)
		if err != nil {
			return nil, err
		}
		m.ports, m.devices = ports, x
	}
	return m.ports, nil
}

// setDevice sets the address of a context's RDMA device with which peers are answered, nil: it has none.
func (m *Mapper) setDevice(context uint8, address []byte) error {
	_, err := m.open()
	if err == nil {
		m.devices.Set(context, address)
	}
	return err
}

// Close closes what is open. No context is.
func (m *Mapper) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ports == nil {
		return nil
	}
	return m.ports.Close()
}
