package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
)

// Endpoints that are made first and joined later, in pairs of their own: an
// interface may have several with the same peer. Packets name such an endpoint by
// its token, and count only from the peer that it was joined to. The hand-shake is
// that of Connect; packets that come before this side's Join are dropped, and the
// peer sends them again.

// tokenBytes is the length of an EndpointAddress: the token.
const tokenBytes = 4

// NewEndpoint makes an endpoint that is not joined yet. Until it is and the peer
// has answered, its operations give hw.ErrNoResource. Errors: hw.ErrNoResource.
func (i *Iface) NewEndpoint() (hw.Unjoined, error) {
	if i.closed.Load() {
		return nil, errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e := &Endpoint{i: i, answered: make(chan struct{})}
	e.name.Store(new([]byte))
	for e.ours == 0 || i.halves[e.ours] != nil {
		var b [tokenBytes]byte
		rand.Read(b[:]) // never fails
		e.ours = binary.LittleEndian.Uint32(b[:])
	}
	if err := i.enter(e); err != nil {
		return nil, err
	}
	i.halves[e.ours] = e
	return e, nil
}

// EndpointAddress is what the other half is joined to, empty for an endpoint of
// Connect.
func (e *Endpoint) EndpointAddress() []byte {
	if e.ours == 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, e.ours)
}

// Join joins an endpoint of NewEndpoint to one of a peer's, given the address of
// the peer's interface, as for Connect, and that of the endpoint. It does not wait
// for the peer. Errors: hw.ErrInvalid for what is no address, for an endpoint of
// Connect and for one that is joined; those of Config.Resolve; hw.ErrNoPath.
func (e *Endpoint) Join(ifaceAddress, endpointAddress []byte) error {
	i := e.i
	if len(endpointAddress) != tokenBytes || binary.LittleEndian.Uint32(endpointAddress) == 0 {
		return fmt.Errorf("verbs: endpoint address of %d bytes: %w", len(endpointAddress), hw.ErrInvalid)
	}
	device := ifaceAddress
	if i.cfg.Resolve != nil {
		var err error
		if device, err = i.cfg.Resolve(ifaceAddress); err != nil {
			return err
		}
	}
	a, err := parseAddress(device)
	if err != nil {
		return err
	}
	if err := i.reachable(&a); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if e.ours == 0 || e.theirs != 0 {
		return fmt.Errorf("verbs: an endpoint that is joined: %w", hw.ErrInvalid)
	}
	name := append([]byte(nil), ifaceAddress...)
	e.addr, e.theirs = a, binary.LittleEndian.Uint32(endpointAddress)
	a.appendTo(e.key[:0])
	e.name.Store(&name)
	e.asked = append(e.asked, name)
	e.lease.connected.Store(true)
	i.svc.do(func() { i.svc.connect(e) })
	return nil
}

// joins reports whether the endpoint has a peer, or is to get one by itself.
func (e *Endpoint) joins() bool { return e.ours == 0 || e.lease.connected.Load() }
