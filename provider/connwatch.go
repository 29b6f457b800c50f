package provider

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// What a connection's goroutine does.

// rejection is the error of a connection that the peer refused, with its data.
type rejection struct{ data []byte }

func (*rejection) Error() string { return "the peer rejected the connection" }

// Unwrap returns fi.ECONNREFUSED.
func (*rejection) Unwrap() error { return fi.ECONNREFUSED }

// dial establishes the connection from the active side. The TCP connection
// comes from the endpoint's own address, by which the peer knows it.
func (c *connection) dial(to names.Name, data []byte) error {
	d := net.Dialer{LocalAddr: tcpAddr(c.ep.name.WithPort(0)), Timeout: c.ep.domain.cfg.ConnectTimeout}
	conn, err := d.DialContext(c.ctx, "tcp", tcpAddr(to).String())
	if err != nil {
		return err
	}
	if err := c.hold(conn.(*net.TCPConn)); err != nil {
		return err
	}
	key, between, nonce := c.ep.auth.Bytes(), ends(c.sock.LocalAddr(), c.sock.RemoteAddr()), cm.NewNonce()
	ask := cm.Message{Kind: cm.Request, Port: c.ep.name.Port, Data: data}
	ask.Sign(key, between, nonce)
	if err := send(c.sock, ask); err != nil {
		return err
	}
	m, err := cm.Read(c.sock) // when the application there decides
	if err != nil {
		return err
	}
	if !m.Shows(key, between) || m.Proof != nil && m.Proof.Nonce != nonce {
		m.Data = nil // its sender is not proved
		if m.Kind == cm.Accept {
			return fmt.Errorf("accepted with another authorisation key: %w", fi.EACCES)
		}
	}
	switch {
	case m.Kind == cm.Reject:
		return &rejection{m.Data}
	case m.Kind != cm.Accept:
		return fmt.Errorf("message of kind %d instead of an answer: %w", m.Kind, cm.ErrMalformed)
	}
	peer := tcpName(c.sock.RemoteAddr()).WithPort(m.Port)
	c.peer.Store(&peer)
	if err := c.reach(peer); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up(m.Data)
}

// answer establishes the connection from the passive side. The peer may send,
// and be gone, as soon as it has the answer; what this side sends before waits
// in the peer's ring (mute).
func (c *connection) answer(data []byte) error {
	r := c.request
	defer r.done()
	if err := c.hold(r.conn); err != nil {
		return err
	}
	c.peer.Store(&r.peer)
	if err := c.reach(r.peer); err != nil {
		return err
	}
	// The event comes before whatever the peer does when it has the answer. If
	// the answer does not get there, the end of the connection follows.
	c.mu.Lock() // so that a shutdown does not come before the answer
	defer c.mu.Unlock()
	if err := c.up(nil); err != nil {
		return err
	}
	_ = r.reply(cm.Message{Kind: cm.Accept, Port: c.ep.name.Port, Data: data}, c.ep.auth)
	return nil
}

// hold keeps the TCP connection.
func (c *connection) hold(s *net.TCPConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		_ = s.Close()
		return net.ErrClosed
	}
	c.sock = s
	_ = s.SetDeadline(time.Time{}) // of the reader of the request
	t := max(c.ep.domain.cfg.PeerTimeout/3, time.Second)
	return s.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: t, Interval: t, Count: 2})
}

// reach opens the path that carries the data. Errors: those of connecting to a
// peer, fi.EHOSTUNREACH also if no transport leads to it.
func (c *connection) reach(peer names.Name) error {
	e := c.ep
	if len(e.networks) == 0 && !e.domain.cfg.Across() && !e.domain.local.has(peer) {
		return fmt.Errorf("no transport from %s to %s: %w", e.name, peer, fi.EHOSTUNREACH)
	}
	if err := e.av.Add(peer); err != nil {
		return err
	}
	for {
		l := e.holdLinkTo(address{Name: peer})
		_, err := e.connect(l)
		l.release()
		if err != fi.EAGAIN {
			return err
		}
		select {
		case <-c.ctx.Done():
			return net.ErrClosed
		case <-time.After(retryInterval):
		}
	}
}

// up reports to the application that the connection is established. The caller has c.mu.
func (c *connection) up(data []byte) error {
	if c.stopped {
		return net.ErrClosed
	}
	c.state.Store(connUp)
	c.event(fi.Connected, data)
	return nil
}

// fail reports that there is no connection.
func (c *connection) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sock != nil {
		_ = c.sock.Close()
	}
	c.state.Store(connDown)
	if c.stopped {
		return
	}
	log.Infof(log.EPCtrl, "connection of %s: %v", c.ep.name, err)
	entry := eq.ErrEntry{FID: c.fid, Err: failure(err)}
	entry.ProvErrno = int32(entry.Err)
	if r := (*rejection)(nil); errors.As(err, &r) {
		entry.ErrData = r.data
	}
	c.ep.eq.Load().PostError(entry)
	c.attend()
}

// failure is the errno for an error of a connection: fi.EPROTO for a peer that
// does not keep to the protocol, fi.ECONNRESET for one that hung up.
func failure(err error) fi.Errno {
	var n net.Error
	switch {
	case errors.Is(err, cm.ErrMalformed):
		return fi.EPROTO
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fi.ECONNRESET
	case errors.As(err, &n) && n.Timeout():
		return fi.ETIMEDOUT
	}
	return fi.ErrnoOf(err)
}

// watch waits for the end of an established connection.
func (c *connection) watch() {
	n, err := c.sock.Read(make([]byte, 1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if n != 0 {
		log.Warnf(log.EPCtrl, "%s sent more than the connection protocol has", c.sock.RemoteAddr())
	}
	if c.stopped {
		return
	}
	log.Debugf(log.EPCtrl, "connection of %s with %s ends: %v", c.ep.name, c.sock.RemoteAddr(), err)
	_ = c.sock.Close()
	c.state.Store(connDown)
	c.ep.closeLines()
	c.event(fi.Shutdown, nil)
	c.attend()
}

// closeLines takes the peer away from the C path, so that posts ask for the
// connection's state.
func (e *peering) closeLines() {
	for _, l := range *e.links.Load() {
		if l != nil {
			l.mu.Lock()
			e.forget(l)
			l.mu.Unlock()
		}
	}
}

// peerGone ends the connection when the path that carries the data has no
// peer any more: the goroutine sees it.
func (c *connection) peerGone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sock != nil {
		_ = c.sock.Close()
	}
}

// attend has the lease holder end what is under way, and wakes sleeping threads.
// c.mu is held and the endpoint is enabled.
func (c *connection) attend() {
	c.ended = time.Now()
	c.flush.Store(1)
	r := c.ep.rx
	atomic.StoreUint32(&r.hot.Attention, 1)
	r.ring()
	for _, q := range c.ep.queues() {
		q.Waiter().Wake()
	}
}
