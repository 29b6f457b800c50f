package provider

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// connection makes an endpoint a connected one (FI_EP_MSG). The endpoint
// itself is like any other; its private address vector has one entry, the
// peer, and only the peer's messages are taken in.
//
// Beside the path that carries the data there is a TCP connection, which a
// goroutine watches:
//
//	idle → starting → up → leaving → down
//	           └─────┬─┴───────────────↑
//	starting: Connect or Accept was called, FI_CONNECTED is to come, or an error
//	leaving:  Shutdown was called, the peer has not answered yet
//
// The goroutine never touches what the progress lease protects, because an
// application may have promised that one thread at a time does. It leaves the
// end of a connection to the lease holder (step).
type connection struct {
	ep *Endpoint
	// request is what the endpoint accepts, nil on the active side. Immutable.
	request *ConnReq
	fid     uintptr // in events; set before the endpoint is published

	// peer is the sender of the messages that are taken in, nil: none is. Set once, before the
	// peer can send; read by the lease holder.
	peer atomic.Pointer[names.Name]
	// state is written under mu, and read by posts.
	state atomic.Uint32
	// flush is connFlush while the lease holder has to end what is under way.
	// Stored by the goroutine (1) and the lease holder (0); sequentially
	// consistent.
	flush  atomic.Uint32
	ended  time.Time // before flush is stored
	peerID uint32    // the lease holder's: identity of peer, 0: not met

	// mu is not on the data path.
	mu      sync.Mutex
	sock    *net.TCPConn
	stopped bool // no events, no attention: the endpoint closes
	ctx     context.Context
	cancel  context.CancelFunc
	over    sync.WaitGroup
}

// States of a connection.
const (
	connIdle uint32 = iota
	connStarting
	connUp
	connLeaving
	connDown
)

// openConn makes the endpoint a connected one and gives it a name: that of the
// passive endpoint which the info's handle names, an address of the request's,
// or the info's source address.
func (e *Endpoint) openConn() error {
	c := &connection{ep: e}
	var err error
	switch h := e.info.Handle.(type) {
	case nil:
		err = e.bindName(e.info.SrcAddr)
	case *Passive:
		want, ok := h.takeName()
		if !ok {
			return fmt.Errorf("the passive endpoint listens or has no address any more: %w", fi.EINVAL)
		}
		e.socket, e.name, err = e.domain.bind(want, e.domain.DomainName(), e.domain.cfg.Iface)
	default:
		if c.request, err = takeRequest(h); err != nil {
			return err
		}
		if e.socket, e.name, err = e.domain.bind(c.request.local.WithPort(0), "", ""); err != nil {
			c.request.giveBack()
		}
	}
	if err != nil {
		return err
	}
	if e.av, err = e.domain.openPeer(); err != nil {
		e.socket.close()
		if c.request != nil {
			c.request.giveBack()
		}
		return err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	e.conn = c
	return nil
}

// openPeer makes an address vector with room for one peer.
func (d *Domain) openPeer() (*AV, error) { return d.openAV(&fi.AVAttr{Count: 1}, 1) }

// SetFID sets the address of the C object, which events name.
func (e *Endpoint) SetFID(fid uintptr) {
	if e.conn != nil {
		e.conn.fid = fid
	}
}

// Connect asks the passive endpoint at an address for a connection, with data
// for its application, and enables the endpoint if need be. FI_CONNECTED or an
// error follows on the event queue; then transfers name the peer by address 0.
// More data than fits is refused rather than cut, which fi_cm(3) would allow:
// libfabric's own test of it expects that. Errors: fi.EINVAL (not an active endpoint,
// a malformed address, more than FI_OPT_CM_DATA_SIZE bytes), fi.EALREADY and
// fi.EISCONN for a second call, fi.EOPBADSTATE after the connection's end, and
// those of Enable.
func (e *Endpoint) Connect(raw, data []byte) error {
	c := e.conn
	if c == nil || c.request != nil || len(data) > cm.MaxData {
		return refuse(log.EPCtrl, fi.EINVAL, "connect with %d bytes of data (at most %d): or not an active endpoint", len(data), cm.MaxData)
	}
	to, err := names.Decode(e.format, raw)
	if err != nil || to.Port == 0 || to.Family != e.name.Family {
		return refuse(log.EPCtrl, fi.EINVAL, "connect from %s to %s: %v", e.name, to, err)
	}
	data = slices.Clone(data) // the caller's until this returns
	return c.start(func() error { return c.dial(to, data) })
}

// Accept accepts the connection request for which the endpoint was opened,
// with data for the peer's application, and enables the endpoint if need be.
// FI_CONNECTED or an error follows on the event queue. Errors: as of Connect,
// fi.EINVAL also when the request was rejected meanwhile.
func (e *Endpoint) Accept(data []byte) error {
	c := e.conn
	if c == nil || c.request == nil || len(data) > cm.MaxData {
		return refuse(log.EPCtrl, fi.EINVAL, "accept with %d bytes of data (at most %d): or not opened for a connection request", len(data), cm.MaxData)
	}
	data = slices.Clone(data) // the caller's until this returns
	return c.start(func() error { return c.answer(data) })
}

// start enables the endpoint and has run establish the connection and watch it.
func (c *connection) start(run func() error) error {
	if c.ep.state.Load() == stateCreated {
		if err := c.ep.Enable(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fi.EOPBADSTATE
	}
	switch c.state.Load() {
	case connIdle:
	case connStarting:
		return fi.EALREADY
	case connUp:
		return fi.EISCONN
	default:
		return fi.EOPBADSTATE
	}
	if c.request != nil && !c.request.end(reqTaken) {
		return refuse(log.EPCtrl, fi.EINVAL, "accept: the request was rejected")
	}
	c.state.Store(connStarting)
	c.over.Go(func() {
		if err := run(); err != nil {
			c.fail(err)
			return
		}
		c.watch()
	})
	return nil
}

// Shutdown disconnects. Operations under way end with fi.ECANCELED before it
// returns. The peer gets FI_SHUTDOWN, and so does this side when the peer has
// seen it. Nothing happens if the peer was first. Errors: fi.EBADFLAGS unless
// flags is 0, fi.ENOTCONN if there was no connection.
func (e *Endpoint) Shutdown(flags uint64) error {
	c := e.conn
	switch {
	case flags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, "shutdown: flags %#x", flags)
	case c == nil || c.state.Load() <= connStarting:
		return fi.ENOTCONN
	}
	r := e.rx.acquire()
	defer r.give()
	l := r.of(e)
	r.progress()
	r.flushOut(l)
	if c.leave() {
		(&connected{c, l}).finish(fi.ECANCELED)
		r.publish()
	}
	return nil
}

// leave sends the peer word that the connection ends; false: it has ended.
func (c *connection) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != connUp {
		return false
	}
	c.state.Store(connLeaving)
	_ = c.sock.CloseWrite() // it fails if the peer is gone, which the goroutine sees too
	return true
}

// Peer is the name of the peer: the passive endpoint's on the side that
// connected. fi.ENOTCONN before FI_CONNECTED.
func (e *Endpoint) Peer() ([]byte, error) {
	c := e.conn
	if c == nil || c.state.Load() < connUp || c.peer.Load() == nil {
		return nil, fi.ENOTCONN
	}
	if c.request != nil {
		return names.Encode(e.format, c.request.peer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return names.Encode(e.format, tcpName(c.sock.RemoteAddr()))
}

// ready reports whether data may be sent: fi.ENOTCONN, fi.ESHUTDOWN.
func (c *connection) ready() error {
	switch c.state.Load() {
	case connUp:
		return nil
	case connIdle, connStarting:
		return fi.ENOTCONN
	}
	return fi.ESHUTDOWN
}

// event posts an event of the endpoint. The caller has c.mu.
func (c *connection) event(number fi.EQEvent, data []byte) {
	c.ep.eq.Load().Post(eq.CMEvent(number, c.fid, nil, data))
}

// stop ends the goroutine, so that the endpoint can be closed. The TCP
// connection stays for hangUp.
func (c *connection) stop() {
	c.mu.Lock()
	c.stopped = true
	c.cancel()
	if c.sock != nil {
		_ = c.sock.SetDeadline(time.Unix(1, 0)) // wakes the reader
	}
	c.mu.Unlock()
	c.over.Wait()
}

// hangUp ends the TCP connection, after the last data went out, and forgets
// the unread events.
func (c *connection) hangUp() {
	if c.sock != nil {
		_ = c.sock.Close()
	}
	if q := c.ep.eq.Load(); q != nil {
		q.Forget(c.fid)
	}
}

// closeConn gives back what openConn took.
func (e *peering) closeConn() {
	if e.conn == nil {
		return
	}
	e.conn.cancel()
	_ = e.av.Close() // it has no other user
	if r := e.conn.request; r != nil {
		r.giveBack()
	}
}
