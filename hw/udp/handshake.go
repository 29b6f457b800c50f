package udp

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// dialer is what a connection needs until it is up: it sends the messages of the handshake, again and again until an
// answer comes.
type dialer struct {
	c       *Endpoint // immutable
	client  bool      // we asked
	steer   uint8
	cookie  [wire.CookieSize]byte
	has     bool            // a cookie
	refused bool            // no process has the port, says the network
	moved   bool            // we ask at the port that a Moved named
	wait    time.Duration   // between Inits
	next    congestion.Time // Init
	sentAt  congestion.Time // of the last Init or Accept
	sent    int             // Inits or Accepts since the cookie
	wanted  congestion.Time // last Connect
	expires congestion.Time // of a connection that was accepted and not yet used
}

// newSide draws what we say of ourselves in the handshake of the connection at index.
func (s *stripe) newSide(index uint32) wire.Side {
	side := wire.Side{
		Stripe: s.number, Window: uint64(s.i.cfg.Window), MaxPacket: uint16(s.i.cfg.MaxPacket),
		MaxMessage: uint32(s.i.maxRecord()), Buffer: uint8(bits.Len(uint(s.socket.Buffer)) - 1),
	}
	var b [8]byte
	for side.CID < wire.MaxConnections {
		_, _ = rand.Read(b[:]) // which never fails: crypto/rand ends the process first
		side.CID = wire.NewCID(index, binary.LittleEndian.Uint64(b[:]))
	}
	_, _ = rand.Read(side.Nonce[:])
	return side
}

// newDial begins to ask for a connection.
func (s *stripe) newDial(now congestion.Time, to target, key ifaceKey) *Endpoint {
	c := s.newEndpoint(to, to.Addr, key)
	s.add(c)
	c.dial = dialer{c: c, client: true, steer: uint8(c.own.CID >> 56), wait: dialFirst, wanted: now}
	c.dial.sendInit(now)
	return c
}

// sendInit asks, and sets the timer to ask again.
func (d *dialer) sendInit(now congestion.Time) {
	p := wire.Init{
		Auth: d.c.i.keyed(), Steer: d.steer, HasCookie: d.has, Wanted: d.c.known.number,
		Client: d.c.own, Role: d.c.i.cfg.role, Cookie: d.cookie,
	}
	b := d.c.s.take(wire.InitSize)
	p.Put(b)
	d.c.key.sign(b)
	d.c.s.answer(&d.c.addr, wire.InitSize)
	d.sent++
	d.sentAt = now
	d.next = now.Add(d.wait)
	d.c.schedule()
}

// redial asks again, until no caller waits for the answer any more.
func (d *dialer) redial(now congestion.Time) {
	if now < d.next {
		return
	}
	if now.Sub(d.wanted) > dialForget {
		d.c.die("not wanted any more")
		return
	}
	d.wait = min(2*d.wait, dialMost)
	d.has = d.has && d.sent < 4 // a cookie grows old
	if d.moved && (d.refused || d.sent >= 4) {
		d.dialAt(d.c.known.Addr, false) // where it is now
	}
	d.sendInit(now)
}

// dialAt has the next Init go to addr; moved: a Moved named it.
func (d *dialer) dialAt(addr sock.Addr, moved bool) {
	d.c.addr = addr
	d.moved, d.has, d.refused, d.sent = moved, false, false, 0
}

// onInit answers a client.
func (s *stripe) onInit(now congestion.Time, from *sock.Addr, b []byte) {
	i := s.i
	var p wire.Init
	if p.Parse(b) != nil {
		i.malformed.Add(1)
		return
	}
	if i.closed.Load() || p.Auth != i.keyed() || p.Wanted != i.cfg.role.Number || !from.Usable() ||
		!s.budget.take(now) {
		return
	}
	key, ok := i.signer(b)
	if !ok {
		i.malformed.Add(1)
		return
	}
	if !p.HasCookie || !s.cookies.Check(&p.Cookie, time.Duration(now), claim(from, p.Role), &p.Client) {
		s.sendRetry(now, from, &p, key)
		return
	}
	c := s.byPeer[peerKey{*from, p.Client.CID}]
	if c == nil {
		c = s.accept(now, from, &p, key)
	}
	if c != nil && c.key == key && !c.dial.client && c.peer.Nonce == p.Client.Nonce && c.at() == up {
		c.dial.sendAccept(now)
	}
}

// nameIn is the name of an interface with a role, of which packets come from an address.
func nameIn(from *sock.Addr, r wire.Role) sock.Addr {
	if r.Port == 0 {
		return *from
	}
	return from.WithPort(r.Port)
}

// claim is what the cookie of a client says that it has shown: its address, and its role.
func claim(from *sock.Addr, r wire.Role) []byte {
	b := from.Bytes()
	if r.Port == 0 {
		return b
	}
	return append(b, byte(r.Port), byte(r.Port>>8), r.Number)
}

// sendRetry gives a client a cookie. It goes to the client's name: the holder of
// that gives it to none but an interface of its own (PortMapper), so a stranger
// on the same host cannot take the name.
func (s *stripe) sendRetry(now congestion.Time, from *sock.Addr, init *wire.Init, key ifaceKey) {
	p := wire.Retry{Reply: wire.ReplyTo(s.i.keyed(), &init.Client)}
	s.cookies.Make(&p.Cookie, time.Duration(now), claim(from, init.Role), &init.Client)
	b := s.take(wire.RetrySize)
	p.Put(b)
	key.sign(b)
	to := nameIn(from, init.Role)
	s.answer(&to, wire.RetrySize)
}

// accept makes the connection of a client that has shown where it is, nil if
// there is no room.
func (s *stripe) accept(now congestion.Time, from *sock.Addr, init *wire.Init, key ifaceKey) *Endpoint {
	client := &init.Client
	if int(s.i.count.Load()) >= s.i.cfg.MaxPeers || client.CID == 0 {
		return nil
	}
	if !s.i.suits(from, client) {
		return nil
	}
	if len(s.halfOpen) >= maxHalfOpen {
		oldest := s.halfOpen[0]
		s.offList(oldest)
		oldest.die("others want to connect too")
	}
	known := target{nameIn(from, init.Role), init.Role.Number, key.number}
	c := s.newEndpoint(known, *from, key)
	s.add(c)
	if err := c.begin(now, client); err != nil {
		s.i.logf("connection of %s: %v", from.String(), err)
		s.remove(c)
		return nil
	}
	c.half = true
	s.halfOpen = append(s.halfOpen, c)
	c.dial.expires = now.Add(halfOpenLife)
	c.schedule()
	return c
}

// suits reports whether a peer takes our largest messages.
func (i *Iface) suits(from *sock.Addr, peer *wire.Side) bool {
	ours := recordOf(i.cfg.MaxBcopy)
	if int64(peer.MaxMessage) < int64(ours) {
		i.logf("%s takes messages of %d bytes, ours have up to %d", from.String(), peer.MaxMessage, ours)
		return false
	}
	return true
}

// offList takes c off the list of those that their clients have not used yet.
func (s *stripe) offList(c *Endpoint) {
	c.half = false
	if n := slices.Index(s.halfOpen, c); n >= 0 {
		s.halfOpen = slices.Delete(s.halfOpen, n, n+1)
	}
}

// confirm takes in that the client of c uses it.
func (s *stripe) confirm(c *Endpoint) {
	s.offList(c)
	if c.dial.sent == 1 { // one Accept: how long it took is a round trip
		c.tx.path.RTT().Add(s.i.now(), s.i.now().Sub(c.dial.sentAt), 0)
	}
	s.byTarget[c.known] = c // the newest: the client does not know the others any more, likely
}

func (d *dialer) sendAccept(now congestion.Time) {
	p := wire.Accept{Reply: wire.ReplyTo(d.c.i.keyed(), &d.c.peer), Server: d.c.own}
	b := d.c.s.take(wire.AcceptSize)
	p.Put(b)
	d.c.key.sign(b)
	d.c.s.answer(&d.c.addr, wire.AcceptSize)
	d.sent++
	d.sentAt = now
}

// dialed returns the connection that an answer is for, nil if there is none. The
// sender of an answer has seen the Init.
func (s *stripe) dialed(r *wire.Reply, b []byte) *Endpoint {
	c := s.conn(r.CID)
	if c == nil || c.at() != dialing || c.own.Nonce != r.Nonce || r.Auth != s.i.keyed() {
		return nil
	}
	if s.i.keyed() && !c.key.Verify(b) {
		s.i.malformed.Add(1)
		return nil
	}
	return c
}

// onRetry takes in a cookie.
func (s *stripe) onRetry(now congestion.Time, from *sock.Addr, b []byte) {
	var p wire.Retry
	if p.Parse(b) != nil {
		s.i.malformed.Add(1)
		return
	}
	c := s.dialed(&p.Reply, b)
	if c == nil || c.addr != *from || c.dial.has && c.dial.cookie == p.Cookie {
		return
	}
	c.dial.has, c.dial.cookie, c.dial.sent = true, p.Cookie, 0
	c.dial.sendInit(now)
}

// onMoved takes in at which port the interface is that we asked for. It comes
// once: an interface that has one moves no client on.
func (s *stripe) onMoved(now congestion.Time, b []byte) {
	var p wire.Moved
	if p.Parse(b) != nil {
		s.i.malformed.Add(1)
		return
	}
	c := s.dialed(&p.Reply, b)
	if c == nil || c.dial.moved {
		return
	}
	c.dial.dialAt(c.known.WithPort(p.Port), true)
	c.dial.sendInit(now)
}

// onAccept takes in that the connection is there.
func (s *stripe) onAccept(now congestion.Time, from *sock.Addr, b []byte) {
	var p wire.Accept
	if p.Parse(b) != nil {
		s.i.malformed.Add(1)
		return
	}
	c := s.dialed(&p.Reply, b)
	if c == nil || c.addr != *from || p.Server.CID == 0 {
		return
	}
	if !s.i.suits(from, &p.Server) {
		c.die("message sizes differ")
		return
	}
	if err := c.begin(now, &p.Server); err != nil {
		c.die("%v", err)
		return
	}
	if c.dial.sent == 1 {
		c.tx.path.RTT().Add(now, now.Sub(c.dial.sentAt), 0)
	}
	c.tx.ping, c.tx.urgent = true, true // so that the server knows
	s.touch(c)
}
