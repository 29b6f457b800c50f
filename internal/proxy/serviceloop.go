package proxy

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// run is the service's thread.
func (s *Service) run() {
	defer s.cleanUp()
	var events [32]unix.EpollEvent
	for {
		n, err := unix.EpollWait(s.epoll, events[:], s.tick())
		if err != nil && err != unix.EINTR {
			s.o.Logf("%s: wait for events: %v", s.name, err)
			return
		}
		for _, ev := range events[:max(n, 0)] {
			s.handle(&ev)
		}
		if s.sendAnswers() {
			return
		}
	}
}

func (s *Service) handle(ev *unix.EpollEvent) {
	switch int(ev.Fd) {
	case s.event:
		var b [8]byte
		_, _ = unix.Read(s.event, b[:]) // what it is for is read after each round
	case s.listen:
		s.accept()
	default:
		c := s.conns[ev.Fd]
		if c == nil {
			s.processEnded(ev.Fd) // or it was closed in this round
			return
		}
		var err error
		if ev.Events&unix.EPOLLOUT != 0 {
			err = s.flush(c)
		}
		if err == nil && ev.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			err = s.read(c)
		}
		if err != nil {
			s.drop(c, err)
		}
	}
}

// accept takes in one peer: whose process it is the kernel says.
func (s *Service) accept() {
	fd, _, err := unix.Accept4(s.listen, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch {
	case err == nil:
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) ||
		errors.Is(err, unix.ENOMEM):
		// It would be ready again at once: wait until a connection ends.
		s.o.Logf("%s: no room for another connection: %v", s.name, err)
		s.paused = s.watch(unix.EPOLL_CTL_MOD, s.listen, 0) == nil
		return
	default:
		return // it is gone already
	}
	peer, err := credentials(fd)
	if err == nil {
		err = s.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN)
	}
	if err != nil {
		s.o.Logf("%s: refused: %v", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.stopping {
		unix.Close(fd)
		s.refused++
		return
	}
	s.number++
	s.conns[int32(fd)] = &conn{fd: fd, number: s.number, pid: peer.Pid}
	s.peers = len(s.conns)
}

// read takes one packet. Descriptors that come with it are none of ours: without
// a buffer for them the kernel drops them.
func (s *Service) read(c *conn) error {
	n, err := unix.Read(c.fd, s.buf)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errClosed
	}
	m, err := parseMessage(s.buf[:n])
	if err != nil {
		return err
	}
	if c.waiting >= maxWaiting {
		return fmt.Errorf("more than %d requests at a time: %w", maxWaiting, errMessage)
	}
	c.waiting++
	s.mu.Lock()
	s.served++
	s.mu.Unlock()
	r := &Request{
		Kind: m.kind, PID: int(c.pid), Body: slices.Clone(m.body),
		service: s, fd: int32(c.fd), number: c.number, id: m.id,
	}
	if handler := s.o.Handlers[m.kind]; handler != nil {
		handler(r)
	} else {
		s.builtIn(r)
	}
	return nil
}

// builtIn answers what every service can.
func (s *Service) builtIn(r *Request) {
	switch r.Kind {
	case KindHello:
		h := Hello{PID: uint32(unix.Getpid()), StartTime: startTime()}
		r.Reply(StatusOK, h.put(nil))
	case KindState:
		text := State()
		r.Reply(StatusOK, []byte(text[:min(len(text), MaxBody)]))
	case KindEvents:
		r.Reply(StatusOK, putEvents())
	default:
		r.Reply(StatusUnknown, nil)
	}
}

// sendAnswers sends what was answered since the last round, and reports whether
// the service is at its end.
func (s *Service) sendAnswers() (done bool) {
	s.mu.Lock()
	answers := s.answers
	s.answers = nil
	stopping, aborted := s.stopping, s.aborted
	s.mu.Unlock()
	for _, r := range answers {
		c := s.conns[r.fd]
		if c == nil || c.number != r.number {
			closeAll(r.fds) // it has gone meanwhile
			continue
		}
		c.queue = append(c.queue, r)
		if err := s.flush(c); err != nil {
			s.drop(c, err)
		}
	}
	if aborted {
		return true
	}
	if !stopping {
		return false
	}
	for _, c := range s.conns {
		if c.waiting != 0 {
			return false
		}
	}
	return true
}

// flush sends a connection's answers as far as the peer takes them.
func (s *Service) flush(c *conn) error {
	had := len(c.queue)
	for len(c.queue) > 0 {
		r := c.queue[0]
		m := message{kind: r.Kind, id: r.id, status: r.status, body: r.answer}
		var rights []byte
		if len(r.fds) > 0 {
			rights = unix.UnixRights(r.fds...)
		}
		err := unix.Sendmsg(c.fd, m.put(nil), rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err == unix.EAGAIN || err == unix.EINTR {
			break
		}
		if err != nil {
			return err
		}
		closeAll(r.fds)
		c.queue = c.queue[1:]
		c.waiting--
	}
	if len(c.queue) > maxQueued {
		return fmt.Errorf("%d answers are not taken: %w", len(c.queue), errMessage)
	}
	if had > 0 || len(c.queue) > 0 {
		events := uint32(unix.EPOLLIN)
		if len(c.queue) > 0 {
			events |= unix.EPOLLOUT
		}
		return s.watch(unix.EPOLL_CTL_MOD, c.fd, events)
	}
	return nil
}

// drop ends a connection.
func (s *Service) drop(c *conn, why error) {
	if !errors.Is(why, errClosed) && !errors.Is(why, unix.ECONNRESET) && !errors.Is(why, unix.EPIPE) {
		s.o.Logf("%s: connection of process %d ends: %v", s.name, c.pid, why)
	}
	delete(s.conns, int32(c.fd))
	for _, r := range c.queue {
		closeAll(r.fds)
	}
	unix.Close(c.fd)
	if s.paused && s.watch(unix.EPOLL_CTL_MOD, s.listen, unix.EPOLLIN) == nil {
		s.paused = false
	}
	s.mu.Lock()
	s.peers = len(s.conns)
	s.mu.Unlock()
}

// cleanUp is the end of the thread.
func (s *Service) cleanUp() {
	if err := recover(); err != nil {
		writeAll(2, fmt.Sprintf("%s: %v\n%s", s.name, err, stack()))
	}
	for _, c := range s.conns {
		s.drop(c, errClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, r := range s.answers {
		closeAll(r.fds)
	}
	s.answers = nil
	for fd := range s.ends {
		unix.Close(int(fd))
	}
	s.ends = nil
	s.closeFDs()
}
