package udp

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// PortMapper answers for a name that several interfaces share, each of which has a
// number and a socket of its own (as RFC 1833's port mapper does for programs). It
// answers at which port the interface is that a client asks for, and gives its interfaces the cookies
// that servers send to the name. What is on the name's own port is only asked for
// when a connection is made.
type PortMapper struct {
	conn    *net.UDPConn
	name    sock.Addr // that the socket is bound to; immutable
	only6   int       // IPV6_V6ONLY of the socket; immutable
	foreign func(from netip.AddrPort, b []byte) []byte
	start   time.Time
	done    sync.WaitGroup

	mu     sync.Mutex // connecting only
	open   map[uint8]*Iface
	budget bucket // of handshake packets
}

// OpenPortMapper answers for the name that UDP socket fd is bound to, of which it keeps
// a duplicate. foreign takes datagrams of another protocol, as Config.Foreign does; nil:
// there is none. class is the code point of differentiated services that answers carry, 0 to
// 63. Errors: hw.ErrInvalid for another kind of socket, and those of the kernel.
func OpenPortMapper(fd int, class uint8, foreign func(from netip.AddrPort, b []byte) []byte) (*PortMapper, error) {
	name, err := sock.Bound(fd)
	if err != nil {
		return nil, fmt.Errorf("udp: address of the socket: %w: %w", err, hw.ErrInvalid)
	}
	m := &PortMapper{
		name: name, foreign: foreign, start: time.Now(), open: map[uint8]*Iface{},
		budget: bucket{rate: answerRate, burst: answerBurst, left: answerBurst},
	}
	if !name.Is4() {
		if m.only6, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); err != nil {
			return nil, fmt.Errorf("udp: %s: %w", name.String(), err)
		}
	}
	if err = sock.SetClass(fd, class); err != nil {
		return nil, fmt.Errorf("udp: traffic class of %s: %w", name.String(), err)
	}
	if m.conn, err = sock.Conn(fd); err != nil {
		return nil, fmt.Errorf("udp: %s: %w", name.String(), err)
	}
	m.done.Go(func() { sock.Serve(m.conn, minPacket, m.take) }) // what is longer is cut off, and then is none
	return m, nil
}

// Open opens the interface with a number, below wire.MaxInterfaces, on a port that the
// kernel chooses. Errors: as Open, and hw.ErrInvalid for a number that is taken.
func (m *PortMapper) Open(number uint8, cfg Config) (*Iface, error) {
	if number >= wire.MaxInterfaces || m.at(number) != nil {
		return nil, fmt.Errorf("udp: interface %d of %s is taken: %w", number, m.name.String(), hw.ErrInvalid)
	}
	fd, err := m.another()
	if err != nil {
		return nil, fmt.Errorf("udp: a port for interface %d of %s: %w", number, m.name.String(), err)
	}
	cfg.role, cfg.mapper = wire.Role{Port: m.name.Port(), Number: number}, m
	i, err := Open(fd, cfg)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.open[number] = i
	m.mu.Unlock()
	return i, nil
}

// another makes a socket with the name's address and another port.
func (m *PortMapper) another() (int, error) {
	family := unix.AF_INET6
	if m.name.Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, m.only6)
	}
	if err == nil {
		err = sock.Bind(fd, m.name.WithPort(0))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// at returns the interface with a number, nil if there is none.
func (m *PortMapper) at(number uint8) *Iface {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[number]
}

// leave takes an interface that is being closed away.
func (m *PortMapper) leave(i *Iface) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[i.cfg.role.Number] == i {
		delete(m.open, i.cfg.role.Number)
	}
}

// Close stops answering. Interfaces that are open stay, but no client finds them.
func (m *PortMapper) Close() error {
	err := m.conn.Close()
	m.done.Wait()
	return err
}

// take takes in a datagram and returns what is to be sent back.
func (m *PortMapper) take(from netip.AddrPort, b []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !wire.Ours(b) {
		if m.foreign == nil {
			return nil
		}
		return m.foreign(from, b)
	}
	if m.budget.take(congestion.Time(time.Since(m.start)) + 1) {
		switch wire.TypeOf(b) {
		case wire.TypeInit:
			return m.onInit(b)
		case wire.TypeRetry:
			m.onRetry(from, b)
		}
	}
	return nil
}

// onInit returns where to ask. A client without one of the interface's keys is not answered.
func (m *PortMapper) onInit(b []byte) []byte {
	var p wire.Init
	if p.Parse(b) != nil {
		return nil
	}
	i := m.open[p.Wanted]
	if i == nil || p.Auth != i.keyed() {
		return nil
	}
	key, ok := i.signer(b)
	if !ok {
		return nil
	}
	a := make([]byte, wire.MovedSize)
	(&wire.Moved{Reply: wire.ReplyTo(p.Auth, &p.Client), Port: i.name.Port()}).Put(a)
	key.sign(a)
	return a
}

// onRetry gives a server's cookie to the interface that asked for it, which it knows by
// the nonce.
func (m *PortMapper) onRetry(from netip.AddrPort, b []byte) {
	var p wire.Retry
	if p.Parse(b) != nil {
		return
	}
	server := sock.FromAddrPort(from)
	for _, i := range m.open {
		if int(p.Stripe) < len(i.stripes) {
			s := i.stripes[p.Stripe]
			s.lease.lock()
			s.onRetry(i.now(), &server, b)
			s.leave()
		}
	}
}
