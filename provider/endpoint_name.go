package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/backends"
	"github.com/weft-fabric/weft/provider/names"
)

// bindName takes the name that raw asks for.
func (e *Endpoint) bindName(raw []byte) error {
	s, n, err := e.domain.bindName(e.format, raw)
	if err != nil {
		return err
	}
	if e.socket != nil {
		e.socket.Close()
	}
	e.socket, e.name = s, n
	return nil
}

// bindName binds a socket to the name that raw asks for.
func (d *Domain) bindName(format fi.AddrFormat, raw []byte) (*names.Socket, names.Name, error) {
	want := names.Name{}
	if len(raw) != 0 {
		n, err := names.Decode(format, raw)
		if err != nil {
			return nil, n, fmt.Errorf("source address: %w", err)
		}
		want = n
	}
	return d.bind(want, d.DomainName(), d.cfg.Iface)
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
