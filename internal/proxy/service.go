package proxy

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ServiceOptions are what a service needs.
type ServiceOptions struct {
	Name    string // of the thread, at most 15 bytes
	Address string // of the socket; see [Address]
	Place   Placement
	// Handlers answer requests, on the service's thread, which they must not
	// hold up: what takes long is handed on, and answered from there. Kinds
	// that have none are answered StatusUnknown.
	Handlers map[Kind]func(*Request)
	// Logf takes what went wrong with peers. It may be nil.
	Logf func(format string, args ...any)
}

// Limits of one connection, which a peer cannot exceed.
const (
	maxWaiting = 64 // requests that are not answered yet
	maxQueued  = 64 // answers that the peer has not taken
)

// Service is a thread that answers other processes of the same user: names,
// descriptors, state. It sleeps until something comes on one of its
// sockets; connections are as many as there are peers. Its methods may be called
// by any thread but its own.
type Service struct {
	thread
	o      ServiceOptions
	listen int
	epoll  int
	event  int // raised for answers, stop and abort

	mu       sync.Mutex // taken by threads that answer and by the loop, for a few words; not on the data path
	answers  []*Request // to be sent
	stopping bool
	aborted  bool
	ended    bool
	served   uint64 // requests
	peers    int    // connections
	refused  uint64

	ticks []*tick          // under mu
	ends  map[int32]func() // by descriptors of processes; under mu

	// The loop's.
	conns  map[int32]*conn
	number uint64
	paused bool // no descriptor was left for another connection
	buf    []byte
}

// conn is a connection, of the loop alone.
type conn struct {
	fd      int
	number  uint64 // never used again, unlike fd
	pid     int32
	waiting int
	queue   []*Request // answers that wait for room
}

// Request is a question of another process.
type Request struct {
	Kind Kind
	PID  int    // of the process that asks, as the kernel says
	Body []byte // the receiver's to keep

	service *Service
	fd      int32
	number  uint64
	id      uint32
	status  Status
	answer  []byte
	fds     []int // sent with the answer, and closed
}

// Reply answers the request, from any goroutine, once. A body that is too
// long is answered StatusBad.
func (r *Request) Reply(status Status, body []byte) { r.ReplyWith(status, body) }

// ReplyWith is Reply with descriptors, which it takes over.
func (r *Request) ReplyWith(status Status, body []byte, fds ...int) {
	if len(body) > MaxBody || len(fds) > maxRights {
		closeAll(fds)
		status, body, fds = StatusBad, nil, nil
	}
	r.status, r.answer, r.fds = status, body, fds
	s := r.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		closeAll(fds)
		return
	}
	s.answers = append(s.answers, r)
	s.raise()
}

// raise wakes the loop. The caller holds mu, which keeps the event file open.
func (s *Service) raise() { _, _ = unix.Write(s.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) } // full is raised

// StartService starts a service. The error wraps unix.EADDRINUSE when the
// address is in use.
func StartService(o ServiceOptions) (*Service, error) {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	s := &Service{o: o, listen: -1, epoll: -1, event: -1, conns: map[int32]*conn{},
		buf: make([]byte, headerBytes+MaxBody+1)}
	if err := s.open(); err != nil {
		s.closeFDs()
		return nil, err
	}
	if err := s.start(o.Name, o.Place, s.run); err != nil {
		s.closeFDs()
		return nil, err
	}
	register(s)
	return s, nil
}

func (s *Service) open() (err error) {
	if s.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("service: eventfd: %w", err)
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("service: epoll: %w", err)
	}
	if s.listen, err = listen(s.o.Address); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err = s.watch(unix.EPOLL_CTL_ADD, s.event, unix.EPOLLIN); err != nil {
		return err
	}
	return s.watch(unix.EPOLL_CTL_ADD, s.listen, unix.EPOLLIN)
}

func (s *Service) watch(op, fd int, events uint32) error {
	if err := unix.EpollCtl(s.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("service: watch descriptor %d: %w", fd, err)
	}
	return nil
}

// watchEnd has f called once on the thread when the process of a descriptor, which it takes over, has ended.
func (s *Service) watchEnd(pidfd int, f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := ErrStopped
	if !s.ended {
		err = s.watch(unix.EPOLL_CTL_ADD, pidfd, unix.EPOLLIN)
	}
	if err != nil {
		unix.Close(pidfd)
		return err
	}
	if s.ends == nil {
		s.ends = map[int32]func(){}
	}
	s.ends[int32(pidfd)] = f
	return nil
}

// processEnded takes in that a descriptor of a process is ready, if it is one.
func (s *Service) processEnded(pidfd int32) {
	s.mu.Lock()
	f := s.ends[pidfd]
	delete(s.ends, pidfd)
	s.mu.Unlock()
	if f != nil {
		unix.Close(int(pidfd))
		f()
	}
}

func (s *Service) closeFDs() {
	for _, fd := range []*int{&s.listen, &s.epoll, &s.event} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

// Address is where the service is reached.
func (s *Service) Address() string { return s.o.Address }

// Stop ends the service when all requests are answered, or after the time
// limit. New connections are refused meanwhile.
func (s *Service) Stop(limit time.Duration) {
	s.end(&s.stopping)
	select {
	case <-s.done:
	case <-time.After(limit):
	}
	s.Abort()
}

// Abort ends the service at once.
func (s *Service) Abort() {
	s.end(&s.aborted)
	<-s.done
	unregister(s)
}

func (s *Service) end(flag *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*flag = true
	if !s.ended {
		s.raise()
	}
}

// State describes the service on one line.
func (s *Service) State() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%s: thread %d, processors %s, address %s, connections %d, requests %d, refused %d\n",
		s.name, s.tid.Load(), s.cpus, s.o.Address, s.peers, s.served, s.refused)
}

// errClosed ends a connection whose peer has.
var errClosed = errors.New("closed by the peer")
