package conn

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/names"
)

// Endpoint is what a connection asks of the endpoint that it connects. The connection's goroutine calls the methods;
// but for Reach it has the connection locked, so they call none of its methods.
type Endpoint interface {
	// Reach opens the path that carries the data to the peer. It gives up when ctx ends. Errors: those of
	// connecting to a peer, fi.EHOSTUNREACH also if no transport leads to it.
	Reach(ctx context.Context, peer names.Name) error
	// Connected reports that the connection is established, with data of the peer's application.
	Connected(data []byte)
	// Failed reports that there will be no connection: fi.ECONNREFUSED with data of the peer's application if that
	// refused, fi.EPROTO for a peer that does not keep to the protocol, fi.ECONNRESET for one that hung up, and
	// those of the system and of Reach.
	Failed(err fi.Errno, data []byte)
	// Ended reports that the connection is over: the peer has left or is gone, or PeerGone was called.
	Ended()
}

// Settings are what connections of an endpoint have in common.
type Settings struct {
	Key            authkey.Key   // which the peer has to show
	ConnectTimeout time.Duration // of the TCP connection
	PeerTimeout    time.Duration // after which a silent peer is gone
}

// Connection is the connection of one endpoint. Its methods may be called from any thread.
type Connection struct {
	ep       Endpoint
	settings Settings
	request  *Request // that is accepted, nil on the active side; immutable
	// own is the endpoint's name. Written under mu before the goroutine starts.
	own names.Name

	// peer is the sender of the messages that are taken in, nil: none is. Set once, before the
	// peer can send; read by the lease holder.
	peer atomic.Pointer[names.Name]
	// state is written under mu, and read by posts.
	state atomic.Uint32

	// mu is not on the data path.
	mu      sync.Mutex
	sock    *net.TCPConn
	stopped bool // the endpoint is not called any more
	ctx     context.Context
	cancel  context.CancelFunc
	over    sync.WaitGroup
}

// States of a connection.
const (
	idle uint32 = iota
	starting
	up
	leaving
	down
)

// New returns the connection of an endpoint: one that accepts a request, which [Take] has reserved, or with nil one
// that connects.
func New(e Endpoint, s Settings, r *Request) *Connection {
	c := &Connection{ep: e, settings: s, request: r}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Request returns the request that the endpoint accepts, nil on the active side.
func (c *Connection) Request() *Request { return c.request }

// Connect asks the passive endpoint at an address for a connection, with data for its application, for an endpoint of a
// name. Errors: fi.EALREADY and fi.EISCONN for a second call, fi.EOPBADSTATE after the connection's end.
func (c *Connection) Connect(own, to names.Name, data []byte) error {
	data = slices.Clone(data) // the caller's until this returns
	return c.start(own, func() error { return c.dial(to, data) })
}

// Accept accepts the request with data for the peer's application, for an endpoint of a name. Errors: as of Connect,
// fi.EINVAL also when the request was rejected meanwhile.
func (c *Connection) Accept(own names.Name, data []byte) error {
	data = slices.Clone(data) // the caller's until this returns
	return c.start(own, func() error { return c.answer(data) })
}

// start has run establish the connection, and watches it.
func (c *Connection) start(own names.Name, run func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fi.EOPBADSTATE
	}
	switch c.state.Load() {
	case idle:
	case starting:
		return fi.EALREADY
	case up:
		return fi.EISCONN
	default:
		return fi.EOPBADSTATE
	}
	if c.request != nil && !c.request.end(reqTaken) {
		return log.Refuse(log.EPCtrl, fi.EINVAL, "accept: the request was rejected")
	}
	c.own = own
	c.state.Store(starting)
	c.over.Go(func() {
		if err := run(); err != nil {
			c.fail(err)
			return
		}
		c.watch()
	})
	return nil
}

// Leave sends the peer word that the connection ends; false: it has ended, or there was none.
func (c *Connection) Leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != up {
		return false
	}
	c.state.Store(leaving)
	_ = c.sock.CloseWrite() // it fails if the peer is gone, which the goroutine sees too
	return true
}

// Ready reports whether data may be sent: fi.ENOTCONN before the connection is established, fi.ESHUTDOWN after it has
// ended or could not be established.
func (c *Connection) Ready() error {
	switch c.state.Load() {
	case up:
		return nil
	case idle, starting:
		return fi.ENOTCONN
	}
	return fi.ESHUTDOWN
}

// Sender returns the name of the endpoint that messages are taken in from, nil while none is known.
func (c *Connection) Sender() *names.Name { return c.peer.Load() }

// Peer returns the name of the peer: the passive endpoint's on the side that connected. False: it was not connected.
func (c *Connection) Peer() (names.Name, bool) {
	if errors.Is(c.Ready(), fi.ENOTCONN) || c.peer.Load() == nil {
		return names.Name{}, false
	}
	if c.request != nil {
		return c.request.peer, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return NameOf(c.sock.RemoteAddr()), true
}

// PeerGone ends the connection because the path that carries the data has no
// peer any more: the goroutine sees it.
func (c *Connection) PeerGone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sock != nil {
		_ = c.sock.Close()
	}
}

// Stop ends the goroutine, so that the endpoint can be closed: it is not called any more when Stop returns. The TCP
// connection stays for HangUp.
func (c *Connection) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.cancel()
	if c.sock != nil {
		_ = c.sock.SetDeadline(time.Unix(1, 0)) // wakes the reader
	}
	c.mu.Unlock()
	c.over.Wait()
}

// HangUp ends the TCP connection, after the last data went out. Stop was called before.
func (c *Connection) HangUp() {
	if c.sock != nil {
		_ = c.sock.Close()
	}
}

// Close rejects a request that was not accepted: no other endpoint may take it. The goroutine has ended, or was not
// started.
func (c *Connection) Close() {
	c.cancel()
	if r := c.request; r != nil && r.end(reqTaken) {
		r.drop()
	}
}
