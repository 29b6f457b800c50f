package udp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/sock"
)

// errClosed is what calls after Close return.
var errClosed = fmt.Errorf("udp: interface is closed: %w", unix.EBADF)

// parse reads a socket address and, if they follow, in four bytes each which of the
// interfaces of that name is meant, and the number of a key.
func parse(address []byte) (t target, err error) {
	if t.Addr, err = sock.Parse(address); err != nil {
		return t, fmt.Errorf("udp: %w: %w", err, hw.ErrInvalid)
	}
	if !t.Usable() {
		return t, fmt.Errorf("udp: no peer can be reached at %s: %w", t.String(), hw.ErrInvalid)
	}
	rest := address[sock.Size(address):]
	if len(rest) < 4 {
		return t, nil
	}
	number := binary.LittleEndian.Uint32(rest)
	if number >= wire.MaxInterfaces {
		return t, fmt.Errorf("udp: interface %d of %s: %w", number, t.String(), hw.ErrInvalid)
	}
	t.number = uint8(number)
	t.key, err = hw.ParseKey(rest[4:])
	return t, err
}

// Connect returns the endpoint to the interface at address. The first calls
// begin to connect and return ErrUnreachable; the caller progresses and tries
// again. A connection that the peer made is used too.
func (i *Iface) Connect(address []byte) (hw.Endpoint, error) {
	a, err := parse(address)
	if err != nil {
		return nil, err
	}
	key, ok := i.keyOf(a.key)
	if !ok {
		return nil, fmt.Errorf("udp: no authorisation key for %s: %w", a.String(), hw.ErrPermission)
	}
	if i.closed.Load() {
		return nil, errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.peers[a]; c != nil {
		return i.await(c)
	}
	if c := i.accepted(&a); c != nil {
		i.peers[a] = c
		return i.await(c)
	}
	if int(i.count.Load()) >= i.cfg.MaxPeers {
		return nil, fmt.Errorf("udp: all %d connections are taken: %w", i.cfg.MaxPeers, hw.ErrNoResource)
	}
	s := i.stripes[int(i.nextOne.Add(1)-1)%len(i.stripes)]
	s.lease.lock()
	c := s.newDial(i.now(), a, key)
	i.peers[a] = c
	s.leave()
	return i.await(c)
}

// accepted returns a connection that the peer at a made.
func (i *Iface) accepted(a *target) *Endpoint {
	for _, s := range i.stripes {
		s.lease.lock()
		c := s.byTarget[*a]
		s.leave()
		if c != nil && c.at() == up {
			return c
		}
	}
	return nil
}

// await returns c if it is up, and polls its socket if it is not.
func (i *Iface) await(c *Endpoint) (hw.Endpoint, error) {
	if c.at() == up && c.attached.Load() {
		return c, nil
	}
	s := c.s
	s.lease.lock()
	if c.at() != up {
		c.dial.wanted = i.now()
		s.work()
	}
	refused, at := c.dial.refused, c.at()
	if at == up {
		c.attached.Store(true) // its end is reported from here on: see reclaim
	}
	s.leave()
	switch {
	case at == up:
		return c, nil
	case at == dead:
		if !c.attached.Load() || c.deliver.reported.Load() {
			delete(i.peers, c.known)
		}
		return nil, fmt.Errorf("udp: %s: %w", c.known.String(), hw.ErrUnreachable)
	case refused:
		return nil, fmt.Errorf("udp: no interface is at %s: %w", c.known.String(), hw.ErrUnreachable)
	}
	return nil, fmt.Errorf("udp: %s has not answered yet: %w", c.known.String(), hw.ErrUnreachable)
}
