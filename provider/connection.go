package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	offers "github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/internal/conn"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
)

// connection makes an endpoint a connected one (FI_EP_MSG). The endpoint
// itself is like any other; its private address vector has one entry, the
// peer, and only the peer's messages are taken in. Package conn has the connection, and calls the
// endpoint about it from a goroutine ([conn.Endpoint]), which never touches what the progress lease protects. It leaves
// the end of a connection to the lease holder (step).
type connection struct {
	*conn.Connection
	ep  *Endpoint
	fid uintptr // in events; set before the endpoint is published

	// flush is 1 while the lease holder has to end what is under way.
	// Stored by the goroutine (1) and the lease holder (0); sequentially
	// consistent.
	flush atomic.Uint32
	ended time.Time // before flush is stored
	// taken is how many messages the endpoint had taken in at the last pump after the end, and arrived when that was
	// more than before. The lease holder's.
	taken   uint64
	arrived time.Time
	peerID  uint32 // the lease holder's: identity of peer, 0: not met
}

// Connections, for callers of this package.
type (
	// ConnReq is a connection request, the handle in the info of FI_CONNREQ.
	ConnReq = conn.Request
	// Passive is a passive endpoint (fi_passive_ep).
	Passive = conn.Passive
)

// OpenPassive opens a passive endpoint: see [conn.OpenPassive].
func (f *Fabric) OpenPassive(info *fi.Info) (*Passive, error) {
	if err := offers.CheckEndpoint(f.cfg, info); err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open passive endpoint: %v", err)
	}
	return conn.OpenPassive(passiveOwner{f}, info)
}

// passiveOwner is the fabric of passive endpoints.
type passiveOwner struct{ *Fabric }

func (o passiveOwner) Acquire() error { return o.refs.Acquire() }
func (o passiveOwner) Release()       { o.refs.Release() }
func (o passiveOwner) Iface() string  { return o.cfg.Iface }

// openConn makes the endpoint a connected one and gives it a name: that of the
// passive endpoint which the info's handle names, an address of the request's,
// or the info's source address.
func (e *Endpoint) openConn() error {
	var r *ConnReq
	var err error
	switch h := e.base.info.Handle.(type) {
	case nil:
		err = e.bindName(e.base.info.SrcAddr)
	case *Passive:
		want, ok := h.TakeName()
		if !ok {
			return fmt.Errorf("the passive endpoint listens or has no address any more: %w", fi.EINVAL)
		}
		err = e.takeName(want, e.base.domain.DomainName(), e.base.domain.cfg.Iface)
	default:
		if r, err = conn.Take(h); err != nil {
			return err
		}
		if err = e.takeName(r.Local().WithPort(0), "", ""); err != nil {
			conn.GiveBack(r)
		}
	}
	if err != nil {
		return err
	}
	if e.base.bound.av, err = e.base.domain.openPeer(); err != nil {
		e.socket.Close()
		if r != nil {
			conn.GiveBack(r)
		}
		return err
	}
	e.base.conn = &connection{ep: e}
	e.base.conn.Connection = conn.New(e.base.conn, conn.Settings{
		Key: e.base.auth, ConnectTimeout: e.base.domain.cfg.ConnectTimeout,
		PeerTimeout: e.base.domain.cfg.PeerTimeout}, r)
	return nil
}

// openPeer makes an address vector with room for one peer.
func (d *Domain) openPeer() (*AV, error) { return d.openAV(&fi.AVAttr{Count: 1}, 1) }

// SetFID sets the address of the C object, which events name.
func (e *Endpoint) SetFID(fid uintptr) {
	if e.base.conn != nil {
		e.base.conn.fid = fid
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
	c := e.base.conn
	if c == nil || c.Request() != nil || len(data) > cm.MaxData {
		return refuse(log.EPCtrl, fi.EINVAL,
			"connect with %d bytes of data (at most %d): or not an active endpoint", len(data), cm.MaxData)
	}
	to, err := names.Decode(e.base.format, raw)
	if err == nil && (to.Port == 0 || to.Family != e.base.name.Family) {
		err = errors.New("no port, or another kind of address")
	}
	if err != nil {
		return refuse(log.EPCtrl, fi.EINVAL, "connect from %s to %s: %v", e.base.name, to, err)
	}
	if err := e.enableOnce(); err != nil {
		return err
	}
	return c.Connect(e.base.name, to, data)
}

// Accept accepts the connection request for which the endpoint was opened,
// with data for the peer's application, and enables the endpoint if need be.
// FI_CONNECTED or an error follows on the event queue. Errors: as of Connect,
// fi.EINVAL also when the request was rejected meanwhile.
func (e *Endpoint) Accept(data []byte) error {
	c := e.base.conn
	if c == nil || c.Request() == nil || len(data) > cm.MaxData {
		return refuse(log.EPCtrl, fi.EINVAL,
			"accept with %d bytes of data (at most %d): or not opened for a connection request", len(data), cm.MaxData)
	}
	if err := e.enableOnce(); err != nil {
		return err
	}
	return c.Accept(e.base.name, data)
}

// enableOnce enables the endpoint unless that was done.
func (e *Endpoint) enableOnce() error {
	if e.base.state.Load() == stateCreated {
		return e.Enable()
	}
	return nil
}

// Shutdown disconnects. Operations under way end with fi.ECANCELED before it
// returns, with fi.ECONNRESET if the peer was first. The peer gets FI_SHUTDOWN, and so does this side when the peer has
// seen it. Errors: fi.EBADFLAGS unless flags is 0, fi.ENOTCONN if there was no connection.
func (e *Endpoint) Shutdown(flags uint64) error {
	c := e.base.conn
	switch {
	case flags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, "shutdown: flags %#x", flags)
	case c == nil || errors.Is(c.Ready(), fi.ENOTCONN):
		return fi.ENOTCONN
	}
	r := e.base.rx.acquire()
	defer r.give()
	l := e.leased.Of(r)
	r.progress()
	r.flushOut(l)
	status := fi.ECANCELED
	if !c.Leave() {
		if !c.ending() {
			return nil
		}
		c.flush.Store(0) // the peer was first
		status = fi.ECONNRESET
	}
	(&connected{c, l}).end(status)
	r.publish()
	return nil
}

// Peer is the name of the peer: the passive endpoint's on the side that
// connected. fi.ENOTCONN before FI_CONNECTED.
func (e *Endpoint) Peer() ([]byte, error) {
	if e.base.conn == nil {
		return nil, fi.ENOTCONN
	}
	peer, ok := e.base.conn.Peer()
	if !ok {
		return nil, fi.ENOTCONN
	}
	return names.Encode(e.base.format, peer)
}

// Connected posts the event.
func (c *connection) Connected(data []byte) { c.event(fi.Connected, data) }

// Failed posts the event of an error, and has the lease holder end the receives that are posted.
func (c *connection) Failed(err fi.Errno, data []byte) {
	c.ep.base.bound.eq.Load().PostError(eq.ErrEntry{FID: c.fid, Err: err, ProvErrno: int32(err), ErrData: data})
	c.notify()
}

// Ended takes the peer away from posts, posts the event, and has the lease holder end what is under way.
func (c *connection) Ended() {
	c.ep.base.closeLines()
	c.event(fi.Shutdown, nil)
	c.notify()
}

// event posts an event of the endpoint.
func (c *connection) event(number fi.EQEvent, data []byte) {
	c.ep.base.bound.eq.Load().Post(eq.CMEvent(number, c.fid, nil, data))
}

// Reach opens the path that carries the data.
func (c *connection) Reach(ctx context.Context, peer names.Name) error {
	e := c.ep
	if len(e.base.transports.networks) == 0 && !e.base.domain.cfg.Across() && !e.base.domain.local.Has(peer) {
		return fmt.Errorf("no transport from %s to %s: %w", e.base.name, peer, fi.EHOSTUNREACH)
	}
	if err := e.base.bound.av.Add(peer); err != nil {
		return err
	}
	for {
		l := e.base.links.Hold(peers.Address{Name: peer})
		_, err := e.base.links.Connect(l)
		l.Release()
		if !errors.Is(err, fi.EAGAIN) {
			return err
		}
		select {
		case <-ctx.Done():
			return net.ErrClosed
		case <-time.After(peers.RetryInterval):
		}
	}
}

// disconnected reports whether there was a connection, which has ended; c may be nil. A thread that has seen it before
// asks again under the lock of a link, under which the end takes the peer away.
func (c *connection) disconnected() bool { return c != nil && errors.Is(c.Ready(), fi.ESHUTDOWN) }

// closeLines takes the peer away from the data plane, so that posts ask for the
// connection's state.
func (e *peering) closeLines() {
	for l := range e.links.All() {
		e.links.Forget(l)
	}
}

// notify has the lease holder end what is under way, and wakes sleeping threads. The endpoint is enabled.
func (c *connection) notify() {
	c.ended = time.Now()
	c.flush.Store(1)
	r := c.ep.base.rx
	r.notifyPoll()
	r.ring()
	for _, q := range c.ep.queues() {
		q.Waiter().Wake()
	}
}

// closeConn gives back what openConn took.
func (e *peering) closeConn() {
	if e.conn == nil {
		return
	}
	_ = e.bound.av.Close() // it has no other user
	e.conn.Close()
}
