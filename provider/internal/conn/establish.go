package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// rejection is the error of a connection that the peer refused, with its data.
type rejection struct{ data []byte }

func (*rejection) Error() string { return "the peer rejected the connection" }

// Unwrap returns fi.ECONNREFUSED.
func (*rejection) Unwrap() error { return fi.ECONNREFUSED }

// dial establishes the connection from the active side. The TCP connection
// comes from the endpoint's own address, by which the peer knows it.
func (c *Connection) dial(to names.Name, data []byte) error {
	d := net.Dialer{LocalAddr: addrOf(c.own.WithPort(0)), Timeout: c.settings.ConnectTimeout}
	conn, err := d.DialContext(c.ctx, "tcp", addrOf(to).String())
	if err != nil {
		return err
	}
	if err := c.hold(conn.(*net.TCPConn)); err != nil {
		return err
	}
	key, between, nonce := c.settings.Key.Bytes(), ends(c.sock.LocalAddr(), c.sock.RemoteAddr()), cm.NewNonce()
	ask := cm.Message{Kind: cm.Request, Port: c.own.Port, Data: data}
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
	peer := NameOf(c.sock.RemoteAddr()).WithPort(m.Port)
	c.peer.Store(&peer)
	if err := c.ep.Reach(c.ctx, peer); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.establish(m.Data)
}

// answer establishes the connection from the passive side. The peer may send,
// and be gone, as soon as it has the answer; what this side sends before waits
// in the peer's ring, which is not polled while Sender is nil.
func (c *Connection) answer(data []byte) error {
	r := c.request
	defer r.done()
	if err := c.hold(r.conn); err != nil {
		return err
	}
	c.peer.Store(&r.peer)
	if err := c.ep.Reach(c.ctx, r.peer); err != nil {
		return err
	}
	// The event comes before whatever the peer does when it has the answer. If
	// the answer does not get there, the end of the connection follows.
	c.mu.Lock() // so that a shutdown does not come before the answer
	defer c.mu.Unlock()
	if err := c.establish(nil); err != nil {
		return err
	}
	_ = r.reply(cm.Message{Kind: cm.Accept, Port: c.own.Port, Data: data}, c.settings.Key)
	return nil
}

// hold keeps the TCP connection.
func (c *Connection) hold(s *net.TCPConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		_ = s.Close()
		return net.ErrClosed
	}
	c.sock = s
	_ = s.SetDeadline(time.Time{}) // of the reader of the request
	t := max(c.settings.PeerTimeout/3, time.Second)
	return s.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: t, Interval: t, Count: 2})
}

// establish reports to the application that the connection is established. The caller has c.mu.
func (c *Connection) establish(data []byte) error {
	if c.stopped {
		return net.ErrClosed
	}
	c.state.Store(up)
	c.ep.Connected(data)
	return nil
}

// fail reports that there is no connection.
func (c *Connection) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sock != nil {
		_ = c.sock.Close()
	}
	c.state.Store(down)
	if c.stopped {
		return
	}
	log.Infof(log.EPCtrl, "connection of %s: %v", c.own, err)
	var data []byte
	if r := (*rejection)(nil); errors.As(err, &r) {
		data = r.data
	}
	c.ep.Failed(failure(err), data)
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
func (c *Connection) watch() {
	n, err := c.sock.Read(make([]byte, 1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if n != 0 {
		log.Warnf(log.EPCtrl, "%s sent more than the connection protocol has", c.sock.RemoteAddr())
	}
	if c.stopped {
		return
	}
	log.Debugf(log.EPCtrl, "connection of %s with %s ends: %v", c.own, c.sock.RemoteAddr(), err)
	_ = c.sock.Close()
	c.state.Store(down)
	c.ep.Ended()
}
