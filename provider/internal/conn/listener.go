package conn

import (
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// Listener is the TCP socket of a passive endpoint, and the connection requests that came to it. Its methods may be
// called from any thread.
//
// A goroutine takes connections as long as fewer requests than the backlog are
// unanswered; more wait in the kernel. One goroutine each reads the request of
// a connection.
type Listener struct {
	key    authkey.Key // of the peers that are heard, and of the answers; immutable
	report func(*Request) error

	// mu guards what follows. It is not on the data path.
	mu       sync.Mutex
	room     sync.Cond // fewer requests, or closed
	fd       int       // the socket, -1 before it is bound, and once closed or taken over
	want     names.Name
	backlog  int
	listener *net.TCPListener // nil: not listening
	greeting []*net.TCPConn   // that said nothing yet, oldest first
	requests map[*Request]bool
	closed   bool
	over     sync.WaitGroup
}

const (
	defaultBacklog = 128
	greetMax       = 128
	greetTime      = 5 * time.Second
)

// NewListener returns a listener without a name, for peers that have a key. report makes a request known to the
// application; with an error the request is dropped. It is called by a goroutine, with the listener locked.
func NewListener(key authkey.Key, report func(*Request) error) *Listener {
	l := &Listener{key: key, report: report, fd: -1, backlog: defaultBacklog, requests: map[*Request]bool{}}
	l.room.L = &l.mu
	return l
}

// Bind binds the listener to a name, of any port if that is 0, in the place of the one that it has, and returns the
// name that it got. An IPv6 wildcard takes IPv4 connections too if both. Errors: fi.EADDRINUSE, fi.EADDRNOTAVAIL,
// fi.EACCES, fi.EMFILE.
func (l *Listener) Bind(want names.Name, both bool) (names.Name, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fd, got, err := bindTCP(want, both)
	if err != nil {
		return names.Name{}, err
	}
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
	}
	l.fd, l.want = fd, got
	return got, nil
}

// Bound reports whether the listener has a name and does not listen.
func (l *Listener) Bound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listener == nil && l.fd >= 0
}

// SetBacklog sets how many requests may be unanswered, 1 or more, at any time.
func (l *Listener) SetBacklog(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog = n
	l.room.Broadcast()
	if l.listener == nil {
		return nil
	}
	return l.listen()
}

func (l *Listener) listen() error {
	if err := unix.Listen(l.fd, l.backlog); err != nil {
		return fmt.Errorf("listen at %s: %w", l.want, fi.ErrnoOf(err))
	}
	return nil
}

// Listen begins to take connection requests. Errors: fi.EOPBADSTATE when it
// does already or has no name, fi.EADDRINUSE.
func (l *Listener) Listen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil || l.fd < 0 {
		return fi.EOPBADSTATE
	}
	if err := l.listen(); err != nil {
		return err
	}
	t, err := listener(l.fd)
	if err != nil {
		return err
	}
	l.listener = t
	l.over.Go(l.accept)
	return nil
}

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	for l.waitRoom() {
		c, err := l.listener.AcceptTCP()
		if err == nil {
			l.greet(c)
			continue
		}
		l.mu.Lock()
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return
		}
		log.Warnf(log.EPCtrl, "take a connection at %s: %v", l.want, err) // no descriptors, likely
		time.Sleep(100 * time.Millisecond)
	}
}

// waitRoom waits until there are fewer requests than the backlog; false: closed.
func (l *Listener) waitRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.requests) >= l.backlog {
		l.room.Wait()
	}
	return !l.closed
}

// greet has the request of a connection read.
func (l *Listener) greet(c *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return
	}
	if len(l.greeting) == greetMax {
		_ = l.greeting[0].Close() // its reader takes it off the list
		l.greeting = l.greeting[1:]
	}
	l.greeting = append(l.greeting, c)
	l.over.Go(func() { l.hear(c) })
}

// hear reads a connection's request and reports it.
func (l *Listener) hear(c *net.TCPConn) {
	r, err := readRequest(c, l.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.greeting {
		if l.greeting[i] == c {
			l.greeting = append(l.greeting[:i:i], l.greeting[i+1:]...)
			break
		}
	}
	if err == nil && l.closed {
		err = net.ErrClosed
	}
	if err == nil {
		err = l.enter(r)
	}
	if err != nil {
		if !l.closed {
			log.Infof(log.EPCtrl, "connection from %s to %s: %v", c.RemoteAddr(), l.want, err)
		}
		_ = c.Close()
	}
}

// enter makes a request known to the application. The caller has l.mu.
func (l *Listener) enter(r *Request) error {
	r.listener = l
	l.requests[r] = true
	if err := l.report(r); err != nil {
		delete(l.requests, r)
		return err
	}
	return nil
}

// answered takes a request off the list.
func (l *Listener) answered(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.requests, r)
	l.room.Broadcast()
}

// Reject refuses a connection request with data for the peer, at most cm.MaxData bytes. False: the request is another
// listener's, or was answered already.
func (l *Listener) Reject(r *Request, data []byte) bool {
	if r.listener != l || !r.end(reqOpen) && !r.end(reqTaken) {
		return false
	}
	_ = r.reply(cm.Message{Kind: cm.Reject, Data: data}, l.key) // a peer that is gone needs no answer
	_ = r.conn.Close()
	r.done()
	return true
}

// TakeName gives the listener's name away: it takes no requests
// from now on, and the port is free. False if it has none any more, or listens.
func (l *Listener) TakeName() (names.Name, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 || l.listener != nil {
		return names.Name{}, false
	}
	_ = unix.Close(l.fd)
	l.fd = -1
	return l.want, true
}

// Close ends the listener: when it returns, report is not called any more. Drop then ends the requests.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	if l.listener != nil {
		_ = l.listener.Close()
	}
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
	}
	for _, c := range l.greeting {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.over.Wait()
}

// Drop refuses the requests of a closed listener that no endpoint has taken. One that is given back later is refused
// then.
func (l *Listener) Drop() {
	l.mu.Lock()
	var open []*Request
	for r := range l.requests {
		open = append(open, r)
	}
	l.mu.Unlock()
	for _, r := range open {
		if r.end(reqOpen) {
			r.drop()
		}
	}
}
