package proxy

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ErrTimeout is returned, wrapped, when a service does not answer in time.
var ErrTimeout = errors.New("proxy: no answer in time")

// Client asks another process's service. Its methods may be called from any
// goroutine; one request is under way at a time.
type Client struct {
	address string
	pid     int // of the service, as the kernel says

	mu     sync.Mutex // taken for one request and its answer
	fd     int        // -1: closed
	nextID uint32
	// closing says that the connection ends with the request under way. Stored by Close before it tries mu, read by
	// calls after they have given mu up: one of the two closes.
	closing atomic.Bool
}

// StatusError is an answer other than [StatusOK].
type StatusError struct {
	Kind   Kind
	Status Status
}

// Error says what was refused.
func (e *StatusError) Error() string {
	return fmt.Sprintf("proxy: request of kind %d: %v", e.Kind, e.Status)
}

// Dial connects to the service at an [Address]. Every later request must be
// answered within timeout. The error wraps [ErrPeer] for a process of another
// user, or the system's: ECONNREFUSED where no process listens.
func Dial(address string, timeout time.Duration) (*Client, error) {
	fd, peer, err := dial(address, timeout)
	if err != nil {
		return nil, err
	}
	return &Client{address: address, fd: fd, pid: int(peer.Pid)}, nil
}

// PID is the process that answers.
func (c *Client) PID() int { return c.pid }

// Close ends the connection: at once, or when the request under way is answered, for which it does not wait.
func (c *Client) Close() error {
	c.closing.Store(true)
	var err error
	if c.mu.TryLock() {
		if fd := c.fd; fd >= 0 {
			c.fd, err = -1, unix.Close(fd)
		}
		c.unlock()
	}
	return err
}

// unlock gives mu up, and ends a connection that was to be closed meanwhile.
func (c *Client) unlock() {
	open := c.fd >= 0
	if c.mu.Unlock(); open && c.closing.Load() {
		_ = c.Close() // there is no caller to say it to
	}
}

// Call asks and returns the answer's body. The error is a *[StatusError], wraps
// [ErrTimeout], or says why the connection does not work; then it is closed.
func (c *Client) Call(kind Kind, body []byte) ([]byte, error) {
	answer, fds, err := c.call(kind, body)
	closeAll(fds)
	return answer, err
}

// Hello asks the process for its identity.
func (c *Client) Hello() (Hello, error) {
	b, err := c.Call(KindHello, nil)
	if err != nil {
		return Hello{}, err
	}
	return parseHello(b)
}

// call is Call with the descriptors that came with the answer, which are the
// caller's to close.
func (c *Client) call(kind Kind, body []byte) (answer []byte, fds []int, err error) {
	if len(body) > MaxBody {
		return nil, nil, fmt.Errorf("request of %d bytes, at most %d: %w", len(body), MaxBody, errMessage)
	}
	c.mu.Lock()
	defer c.unlock()
	if c.fd < 0 || c.closing.Load() {
		return nil, nil, fmt.Errorf("request to %s: %w", c.address, unix.EBADF)
	}
	c.nextID++
	request := message{kind: kind, id: c.nextID, body: body}
	m, fds, err := c.exchange(&request)
	if err != nil {
		unix.Close(c.fd) // what comes later would be taken for the next answer
		c.fd = -1
		return nil, nil, fmt.Errorf("request of kind %d to %s: %w", kind, c.address, err)
	}
	if m.status != StatusOK {
		closeAll(fds)
		return nil, nil, &StatusError{kind, m.status}
	}
	return m.body, fds, nil
}

func (c *Client) exchange(request *message) (m message, fds []int, err error) {
	for {
		err = unix.Sendmsg(c.fd, request.put(nil), nil, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return m, nil, timeout(err)
	}
	buf := make([]byte, headerBytes+MaxBody+1)
	n, fds, err := receive(c.fd, buf)
	if err != nil {
		return m, nil, timeout(err)
	}
	if m, err = parseMessage(buf[:n]); err == nil && (m.kind != request.kind || m.id != request.id) {
		err = fmt.Errorf("answer %d of kind %d to request %d of kind %d: %w", m.id, m.kind, request.id, request.kind,
			errMessage)
	}
	if err != nil {
		closeAll(fds)
		return m, nil, err
	}
	return m, fds, nil
}

func timeout(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return ErrTimeout
	}
	return err
}
