package sock

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A socket that is connected to one peer needs no search for the route of each
// message, on either way. So the peer to which most go, datagrams and trains, gets such a
// socket, bound to the same name: its near peer. The kernel gives it what comes from
// there and nothing else. Several stripes cannot have it: the kernel would not ask the
// program that steers.
type near struct {
	fd   int  // made with the socket, in its network namespace; -1: none
	used bool // it is bound and connected
	to   Addr

	// The near peer is the one that has the majority of the first messages of a system
	// call (Boyer and Moore's vote, 1981).
	candidate Addr
	votes     int
	refused   bool // it cannot be done

	// mainDue is when to poll next for what strangers sent, mainHad that the last such poll
	// found something. Only without an inbox, which says so.
	mainDue time.Duration
	mainHad bool
}

// nearVotes is by how many messages a peer must be ahead of the others. Making
// a near socket takes as long as some ten of them.
const nearVotes = 256

// has reports whether a is the near peer.
func (n *near) has(a *Addr) bool { return n.used && n.to == *a }

// vote takes in that a message goes to a, the first of a system call.
func (n *near) vote(a *Addr) {
	switch {
	case n.has(a):
		n.votes = max(n.votes-1, 0)
	case n.votes == 0:
		n.candidate, n.votes = *a, 1
	case n.candidate == *a:
		n.votes++
	default:
		n.votes--
	}
}

// WantsNear reports whether a peer should get a socket of its own: see MakeNear.
func (s *Socket) WantsNear() bool { return s.near.votes >= nearVotes && !s.near.refused }

// MakeNear connects the near peer's socket to the peer that has the votes. Files changes, and no thread may
// be waiting for them. Errors are of the kernel, and errors.ErrUnsupported; it is not tried
// again then.
func (s *Socket) MakeNear() error {
	n := &s.near
	n.votes = 0
	if err := s.connect(&n.candidate); err != nil {
		n.refused = true
		s.closeNear()
		return fmt.Errorf("socket for %s: %w", n.candidate.String(), err)
	}
	n.used, n.to = true, n.candidate
	return nil
}

// openNear makes what can become the near peer's socket.
func (s *Socket) openNear() {
	fd, err := unix.Socket(s.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		fd = -1
	}
	s.near.fd = fd
}

// connect connects the near peer's socket to a peer.
func (s *Socket) connect(to *Addr) error {
	fd := s.near.fd
	if s.bypass != nil || fd < 0 || !s.source.IsZero() {
		return errors.ErrUnsupported
	}
	if !s.near.used {
		if err := s.twin(fd); err != nil {
			return err
		}
	}
	if err := unix.Connect(fd, sockaddr(to)); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// twin gives fd the socket's options and name.
func (s *Socket) twin(fd int) error {
	name, err := unix.Getsockname(s.FD)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	if err := s.setOptions(fd); err != nil {
		return err
	}
	if s.family == unix.AF_INET6 {
		only, err := unix.GetsockoptInt(s.FD, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		if err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)); err != nil {
			return fmt.Errorf("IPv6 only: %w", err)
		}
	}
	if s.inbox != nil {
		if err := s.inbox.attach(fd); err != nil {
			return err
		}
	}
	return s.share(fd, name)
}

// share binds fd to the name that the socket has. Others may not do that before and
// afterwards.
func (s *Socket) share(fd int, name unix.Sockaddr) error {
	allow := func(yes int) error {
		return errors.Join(unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_REUSEPORT, yes),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, yes))
	}
	err := allow(1)
	if err == nil {
		err = unix.Bind(fd, name)
	}
	err = errors.Join(err, allow(0))
	if err != nil {
		return fmt.Errorf("another socket of the name: %w", err)
	}
	return nil
}

// closeNear gives the near peer's socket back.
func (s *Socket) closeNear() {
	if s.near.fd >= 0 {
		_ = unix.Close(s.near.fd)
	}
	s.near.fd, s.near.used = -1, false
}

// receiveSockets takes what the kernel has of the near peer, and what it has of others
// if it is time to poll that.
func (s *Socket) receiveSockets(in *In, now time.Duration) (n int, full bool, err error) {
	if !s.near.used {
		return s.receiveKernel(in, s.FD)
	}
	q := &s.near
	if n, full, err = s.receiveKernel(in, q.fd); n > 0 || err != nil {
		return n, full || s.inbox != nil, err
	}
	if s.inbox == nil && now < q.mainDue && !q.mainHad {
		return 0, false, nil
	}
	n, full, err = s.receiveKernel(in, s.FD)
	q.mainHad, q.mainDue = n > 0 || err != nil, now+kernelPoll
	return n, full, err
}
