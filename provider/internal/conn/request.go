package conn

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// Request is a connection request, the handle in the info of FI_CONNREQ.
type Request struct {
	listener *Listener
	conn     *net.TCPConn
	local    names.Name // to which it came: address and port of the passive endpoint
	peer     names.Name // of the endpoint that asks
	data     []byte
	nonce    [cm.NonceSize]byte // of the request's proof

	// state goes open ⇄ taken → answered, or open → answered. Changed by
	// compare-and-swap of any thread.
	state atomic.Uint32
	// onDone is called when the request was answered, nil: nothing to do. Set
	// before the request is published.
	onDone atomic.Pointer[func()]
}

// States of a request.
const (
	reqOpen     uint32 = iota
	reqTaken           // by an endpoint that may accept it
	reqAnswered        // accepted, rejected or dropped
)

// ends names the ends of a TCP connection for proofs, the active one first. Each host has scopes of its own for
// link-local addresses, so they are left out.
func ends(active, passive net.Addr) string {
	a, p := NameOf(active), NameOf(passive)
	a.Scope, p.Scope = 0, 0
	return a.String() + " " + p.String()
}

// readRequest reads the request of a new connection within greetTime, from a peer that has
// a key. Errors: those of the connection, what wraps cm.ErrMalformed, and fi.EACCES,
// after the peer was rejected.
func readRequest(c *net.TCPConn, key authkey.Key) (*Request, error) {
	_ = c.SetReadDeadline(time.Now().Add(greetTime))
	m, err := cm.Read(c)
	if err != nil {
		return nil, err
	}
	if m.Kind != cm.Request {
		return nil, fmt.Errorf("message of kind %d before the request: %w", m.Kind, cm.ErrMalformed)
	}
	if !m.Shows(key.Bytes(), ends(c.RemoteAddr(), c.LocalAddr())) {
		_ = send(c, cm.Message{Kind: cm.Reject}) // a peer that is gone needs no answer
		return nil, fmt.Errorf("another authorisation key: %w", fi.EACCES)
	}
	r := &Request{conn: c, local: NameOf(c.LocalAddr()), data: m.Data}
	r.peer = NameOf(c.RemoteAddr()).WithPort(m.Port)
	if m.Proof != nil {
		r.nonce = m.Proof.Nonce
	}
	return r, nil
}

// reply sends the answer to the request, with a proof of a key.
func (r *Request) reply(m cm.Message, key authkey.Key) error {
	m.Sign(key.Bytes(), ends(r.conn.RemoteAddr(), r.conn.LocalAddr()), r.nonce)
	return send(r.conn, m)
}

// Local is the name to which the request came: address and port of the passive endpoint.
func (r *Request) Local() names.Name { return r.local }

// Peer is the name of the endpoint that asks.
func (r *Request) Peer() names.Name { return r.peer }

// Data is what the application there sent with the request.
func (r *Request) Data() []byte { return r.data }

// OnDone sets what is called once when the request was answered. To be called
// by the caller that makes the request known to an application.
func (r *Request) OnDone(f func()) { r.onDone.Store(&f) }

// take reserves the request for an endpoint.
func (r *Request) take() bool { return r.state.CompareAndSwap(reqOpen, reqTaken) }

// GiveBack undoes [Take], unless the request was answered: another endpoint may take it, or the passive
// endpoint reject it. If that is closed, the request ends.
func GiveBack(r *Request) {
	r.listener.mu.Lock()
	closed := r.listener.closed
	if !closed {
		r.state.CompareAndSwap(reqTaken, reqOpen)
	}
	r.listener.mu.Unlock()
	if closed && r.end(reqTaken) {
		r.drop()
	}
}

// drop rejects a request without data. The caller has ended it.
func (r *Request) drop() {
	_ = r.reply(cm.Message{Kind: cm.Reject}, r.listener.key) // a peer that is gone needs no answer
	_ = r.conn.Close()
	r.done()
}

// end reports whether the caller is the one to answer a request that is in a state.
func (r *Request) end(from uint32) bool { return r.state.CompareAndSwap(from, reqAnswered) }

// done is called when the request was answered.
func (r *Request) done() {
	r.listener.answered(r)
	if f := r.onDone.Swap(nil); f != nil {
		(*f)()
	}
}

// Take returns the request that an info's handle names, reserved for an
// endpoint. fi.EINVAL for another handle, or one that was taken or answered.
func Take(handle any) (*Request, error) {
	r, ok := handle.(*Request)
	if !ok || !r.take() {
		return nil, fmt.Errorf("the handle is not an unanswered connection request: %w", fi.EINVAL)
	}
	return r, nil
}

// send sends one message of the connection protocol.
func send(c *net.TCPConn, m cm.Message) error {
	_ = c.SetWriteDeadline(time.Now().Add(greetTime)) // it fits into any socket's buffer
	_, err := c.Write(m.Append(nil))
	if err != nil {
		return fmt.Errorf("send to %s: %w", c.RemoteAddr(), err)
	}
	return nil
}
