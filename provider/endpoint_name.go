package provider

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/names"
)

// endpointName is the name of an endpoint and the socket that holds it, of which the kernel gives each port once in a
// network namespace. Under the endpoint's mu; the socket is immutable from Enable on.
type endpointName struct {
	socket *names.Socket
	// another gives the endpoint a name with another port. It is nil where the port was asked for, once
	// Name has returned it, and while peers reach the endpoint by it.
	another func() error
}

// bindName takes the name that raw asks for.
func (e *Endpoint) bindName(raw []byte) error {
	want, err := decodeName(e.base.format, raw)
	if err != nil {
		return err
	}
	return e.takeName(want, e.base.domain.DomainName(), e.base.domain.cfg.Iface)
}

// takeName takes the name that names.Reserve finds, and gives up the one that the endpoint has.
func (e *Endpoint) takeName(want names.Name, domainIface, only string) error {
	s, n, err := e.base.domain.bind(want, domainIface, only)
	if err != nil {
		return err
	}
	if e.socket != nil {
		e.socket.Close()
	}
	e.socket, e.base.name, e.another = s, n, nil
	if want.Port == 0 {
		e.another = func() error { return e.takeName(want, domainIface, only) }
	}
	return nil
}

// openNamed opens the transport to peers on this host under the endpoint's name. An endpoint of another network
// namespace that shares their memory may have taken that since it was chosen; then another is chosen.
func (e *Endpoint) openNamed() (backends.Local, error) {
	for try := 0; ; try++ {
		i, err := openLocal(e)
		if err == nil || e.another == nil || try == bindTries || !errors.Is(err, unix.EADDRINUSE) {
			return i, err
		}
		log.Infof(log.EPCtrl, "%s has been taken in another network namespace: another port is chosen", e.base.name)
		if err = e.another(); err != nil {
			return nil, err
		}
	}
}

// bindName binds a socket to the name that raw asks for.
func (d *Domain) bindName(format fi.AddrFormat, raw []byte) (*names.Socket, names.Name, error) {
	want, err := decodeName(format, raw)
	if err != nil {
		return nil, want, err
	}
	return d.bind(want, d.DomainName(), d.cfg.Iface)
}

// decodeName decodes a source address; none is the zero name.
func decodeName(format fi.AddrFormat, raw []byte) (names.Name, error) {
	if len(raw) == 0 {
		return names.Name{}, nil
	}
	n, err := names.Decode(format, raw)
	if err != nil {
		return n, fmt.Errorf("source address: %w", err)
	}
	return n, nil
}

// bindTries is how many ports are tried, of which another network namespace may have each.
const bindTries = 16

// bind is names.Reserve for an endpoint of the domain. A port that the kernel chooses is one
// that no endpoint has with which the domain's share memory.
func (d *Domain) bind(want names.Name, domainIface, only string) (*names.Socket, names.Name, error) {
	for try := 0; ; try++ {
		s, n, err := names.Reserve(want, domainIface, only)
		if err != nil || want.Port != 0 || try == bindTries || !backends.NameTaken(n, d.cfg) {
			return s, n, err
		}
		s.Close()
	}
}
