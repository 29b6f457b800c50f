package sock

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Steering says how datagrams find their socket.
type Steering int

// The ways, from the best.
const (
	SteerEBPF Steering = iota // an eBPF program
	SteerCBPF                 // a classic BPF program
	SteerNone                 // there is one socket
)

// String names the way for people.
func (s Steering) String() string {
	return [...]string{"eBPF", "classic BPF", "one socket"}[s]
}

// Socket is one UDP socket.
type Socket struct {
	FD     int
	Buffer int // bytes that wait to be received at most, at least 1
	family int
	stamps bool   // see EnableStamps
	asked  uint32 // stamps
	noGSO  bool   // the kernel or the interface cannot do it
	bypass Bypass // nil: there is none
	inbox  *inbox // nil: there is none
	near   near
	buffer int   // see Options
	class  uint8 // see Options
	// kernelDue is when to poll the kernel next, kernelHad that the
	// last such poll found something. Only with a bypass.
	kernelDue time.Duration
	kernelHad bool
	source    Addr // that datagrams come from where the socket is bound to a wildcard; zero: the kernel chooses
}

// Group is the sockets of one interface.
type Group struct {
	Sockets  []*Socket
	Steering Steering
	Refused  error // why there are not as many sockets as wanted, or no eBPF; nil if that was not tried
	NoInbox  error // why sockets have no inbox; nil if they have, or that was not tried
	steer    steerer
}

// Options of a group.
type Options struct {
	Stripes int   // sockets wanted, at least 1
	Buffer  int   // bytes of each socket's receive and send buffer, as far as the system allows; 0: the system's
	Source  Addr  // see Socket
	Class   uint8 // the code point of differentiated services that datagrams carry (RFC 2474), 0 to 63
	NoEBPF  bool  // do not try
	NoCBPF  bool  // do not try
	NoGSO   bool  // do not try
	NoInbox bool  // do not try
}

// NewGroup makes a group of the bound UDP socket fd and of as many others as
// wanted and possible. It takes fd over, errors included. Errors are of the
// kernel.
func NewGroup(fd int, o Options) (*Group, error) {
	g := &Group{Steering: SteerNone}
	first, err := newSocket(fd, &o)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	g.Sockets = []*Socket{first}
	if o.Stripes > 1 && !(o.NoEBPF && o.NoCBPF) {
		if g.Refused = g.join(&o); g.Steering == SteerNone {
			for _, s := range g.Sockets[1:] {
				_ = unix.Close(s.FD)
			}
			g.Sockets = g.Sockets[:1]
		}
	}
	if len(g.Sockets) == 1 {
		first.openNear()
	}
	if !o.NoInbox {
		g.OpenInboxes()
	}
	return g, nil
}

// join adds the other sockets and has datagrams steered to them, which shows
// in g.Steering. The error says why not, or why not by eBPF.
func (g *Group) join(o *Options) error {
	fd := g.Sockets[0].FD
	name, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fmt.Errorf("share the port: %w", err)
	}
	for range o.Stripes - 1 {
		s, err := g.another(name, o)
		if err != nil {
			return err
		}
		g.Sockets = append(g.Sockets, s)
	}
	if !o.NoEBPF {
		if err = g.steer.attach(g.Sockets); err == nil {
			g.Steering = SteerEBPF
			return nil
		}
	}
	if !o.NoCBPF {
		e := attachClassic(fd, len(g.Sockets))
		if e == nil {
			g.Steering = SteerCBPF
		}
		err = errors.Join(err, e)
	}
	return err
}

// another makes one more socket bound to name.
func (g *Group) another(name unix.Sockaddr, o *Options) (*Socket, error) {
	fd, err := unix.Socket(g.Sockets[0].family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s, err := newSocket(fd, o)
	if err == nil && s.family == unix.AF_INET6 {
		only, e := unix.GetsockoptInt(g.Sockets[0].FD, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		err = errors.Join(e, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only))
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.Bind(fd, name)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("another socket of the group: %w", err)
	}
	return s, nil
}

// newSocket makes fd a socket of a group.
func newSocket(fd int, o *Options) (*Socket, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return nil, fmt.Errorf("socket family: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("set non-blocking: %w", err)
	}
	s := &Socket{FD: fd, family: family, source: o.Source, noGSO: o.NoGSO, buffer: o.Buffer, class: o.Class,
		near: near{fd: -1}}
	if err := s.setOptions(fd); err != nil {
		return nil, err
	}
	// The kernel doubles what is asked for, because it counts its own too.
	buffer, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return nil, fmt.Errorf("size of the receive buffer: %w", err)
	}
	s.Buffer = max(buffer/2, 1)
	return s, nil
}

// setOptions sets the options of fd, which has the name of the socket. What only makes
// things faster or gives more information may fail.
func (s *Socket) setOptions(fd int) error {
	if err := s.setDiscover(fd); err != nil {
		return err
	}
	set := func(level, name, value int) { _ = unix.SetsockoptInt(fd, level, name, value) }
	if s.buffer > 0 {
		set(unix.SOL_SOCKET, unix.SO_RCVBUF, s.buffer)
		set(unix.SOL_SOCKET, unix.SO_SNDBUF, s.buffer)
	}
	set(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	set(unix.SOL_UDP, unix.UDP_GRO, 1)
	const ect0 = 2 // RFC 3168: capable of ECN
	setClass(set, s.family, s.class, ect0)
	set(unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	set(unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	if s.family == unix.AF_INET6 {
		set(unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
		set(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	}
	return nil
}

// setClass has a socket of a family send with a code point, and with ECN's bits. A socket of IPv6
// may send by IPv4 too.
func setClass(set func(level, name, value int), family int, class uint8, ecn int) {
	value := int(class)<<2 | ecn
	set(unix.IPPROTO_IP, unix.IP_TOS, value)
	if family == unix.AF_INET6 {
		set(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, value)
	}
}

// SetClass has the UDP socket fd, of which nothing else is set, send with a code point of differentiated
// services, 0 to 63. Errors are of the kernel.
func SetClass(fd int, class uint8) error {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("socket family: %w", err)
	}
	setClass(func(level, name, value int) { err = errors.Join(err, unix.SetsockoptInt(fd, level, name, value)) },
		family, class, 0)
	return err
}

// setDiscover forbids fragments, and leaves finding the path's MTU to us.
func (s *Socket) setDiscover(fd int) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	if s.family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	}
	if err != nil {
		return fmt.Errorf("forbid fragments: %w", err)
	}
	return nil
}

// Close closes all sockets.
func (g *Group) Close() {
	g.steer.close()
	for _, s := range g.Sockets {
		_ = unix.Close(s.FD)
		s.closeNear()
		if s.inbox != nil {
			_ = s.inbox.close()
		}
	}
	g.Sockets = nil
}

// Overhead is what IP and UDP headers take of an MTU towards to, in bytes.
func Overhead(to *Addr) int {
	if to.Is4() {
		return 28
	}
	return 48
}

// RouteMTU returns the MTU of the interface that leads to a peer, or what the
// kernel has learned of the path, in bytes. Errors are of the kernel:
// ENETUNREACH when no interface does.
func RouteMTU(to *Addr) (int, error) {
	family := unix.AF_INET6
	if to.Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sockaddr(to)); err != nil {
		return 0, fmt.Errorf("route to %s: %w", to.String(), err)
	}
	var mtu int
	if family == unix.AF_INET {
		mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
	} else {
		mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
	}
	if err != nil {
		return 0, fmt.Errorf("MTU towards %s: %w", to.String(), err)
	}
	return mtu, nil
}

func sockaddr(a *Addr) unix.Sockaddr {
	ap := a.AddrPort()
	if a.Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	var scope uint32
	for i := range 4 {
		scope |= uint32(a.raw[24+i]) << (8 * i)
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), ZoneId: scope, Addr: ap.Addr().As16()}
}
