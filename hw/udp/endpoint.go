package udp

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// phase is how far a connection is.
//
//	dialing → up       with the Accept
//	up → leaving       our interface closes: what is in the stream is sent, then a Close
//	any → dead         the peer closed, or is gone, or broke the protocol; it is reported, then forgotten
type phase uint32

const (
	dialing phase = iota
	up
	leaving
	dead
)

// Endpoint is one side of a connection. It implements hw.Endpoint. Everything but what is marked belongs to the holder
// of the stripe's lease. Its parts have types of their own, each with what it owns: dialer the handshake until the
// connection is up, sender the outbound stream and the table of packets, receiver the inbound stream and the
// acknowledgements that are owed, transfers the one-sided operations of both sides, liveness whether the peer lives.
type Endpoint struct {
	i     *Iface    // immutable
	s     *stripe   // immutable
	known target    // what the peer is known by; immutable
	addr  sock.Addr // where its packets come from; immutable from phase up on
	key   ifaceKey  // the zero value without authorisation; immutable
	own   wire.Side // immutable
	peer  wire.Side // set with phase up

	// stats has what path measured: written with the lease, read by any thread.
	stats *congestion.Stats

	phase    atomic.Uint32 // written with the lease, read by any thread
	open     atomic.Bool   // the peer's eager window; written with the lease, read by any thread
	attached atomic.Bool   // Connect gave it out; written under Iface.mu with the lease, read with either
	// size of full packets when the last put or get was posted; written with the lease, read by any thread
	packet atomic.Uint32

	dial  dialer
	tx    sender
	rx    receiver
	life  liveness
	began congestion.Time // when it came up
	due   congestion.Time // the next timer, 0: none
	timed bool            // in stripe.timed
	half  bool            // in stripe.halfOpen
	touched,
	listedDead, // in stripe.dead
	ended bool // the peer closes in order, and has nothing more to send
	reason string

	// rested is where the streams were when they were last seen to move; see rest.
	rested struct {
		tail, top uint64
		since     congestion.Time
	}

	ops     transfers
	probe   probeStamps
	deliver delivered // progress lease
}

// newEndpoint makes a connection of a stripe, without a place in its table.
func (s *stripe) newEndpoint(known target, addr sock.Addr, key ifaceKey) *Endpoint {
	c := &Endpoint{i: s.i, s: s, known: known, addr: addr, key: key, stats: new(congestion.Stats)}
	c.dial.c, c.rx.c, c.ops.c, c.life.c = c, c, c, c
	return c
}

// at returns the phase. Any thread may call it.
func (c *Endpoint) at() phase { return phase(c.phase.Load()) }

func (c *Endpoint) alive() bool { p := c.at(); return p == up || p == leaving }

// Address is the address that was given to Connect.
func (c *Endpoint) Address() []byte { return c.known.bytes() }

// EagerOpen reports whether the peer welcomes eager payloads.
func (c *Endpoint) EagerOpen() bool { return c.at() == up && c.open.Load() }

// Err is nil or ErrPeerDead.
func (c *Endpoint) Err() error {
	if c.at() == dead || c.i.closed.Load() {
		return hw.ErrPeerDead
	}
	return nil
}

// Reported reports whether the peer's end has been reported.
func (c *Endpoint) Reported() bool { return c.deliver.reported.Load() }

// Wake does nothing: a message in the socket is the bell.
func (c *Endpoint) Wake() {}

// Check asks whether the peer is there, by a ping.
func (c *Endpoint) Check() error {
	if err := c.Err(); err != nil {
		return err
	}
	if !c.s.lease.spin() {
		return hw.ErrNoResource
	}
	if c.at() == up && c.tx.sent.Flying() == 0 {
		c.tx.ping, c.tx.urgent = true, true
		c.transmit(c.i.now())
	}
	c.s.leave()
	return c.Err()
}

// add gives c a place in its stripe's table, and what it says of itself in a handshake.
func (s *stripe) add(c *Endpoint) {
	index := uint32(len(s.conns))
	if n := len(s.free); n > 0 {
		index = s.free[n-1]
		s.free = s.free[:n-1]
		s.conns[index] = c
	} else {
		s.conns = append(s.conns, c)
	}
	c.own = s.newSide(index)
	s.i.count.Add(1)
}

// remove forgets c.
func (s *stripe) remove(c *Endpoint) {
	if s.conn(c.own.CID) != c {
		return
	}
	s.flush() // nothing built points into its ring any more
	s.conns[c.own.CID.Index()] = nil
	s.free = append(s.free, c.own.CID.Index())
	s.forgetPeer(c)
	c.freeRings()
	s.i.count.Add(-1)
}

// forgetPeer takes c out of the table by the peer's side.
func (s *stripe) forgetPeer(c *Endpoint) {
	k := peerKey{c.addr, c.peer.CID}
	if s.byPeer[k] == c {
		delete(s.byPeer, k)
	}
	if s.byTarget[c.known] == c {
		delete(s.byTarget, c.known)
	}
}

// begin makes a connection ready to carry data, with what the peer said of
// itself.
func (c *Endpoint) begin(now congestion.Time, peer *wire.Side) error {
	mtu, err := sock.RouteMTU(&c.addr)
	if err != nil {
		mtu = 1500
	}
	most := min(mtu-sock.Overhead(&c.addr), int(peer.MaxPacket), c.i.cfg.MaxPacket)
	c.tx.mtu = recovery.NewMTU(minPacket, most)
	cc := *c.i.cfg.Congestion
	cc.Unit = int64(min(max(most, minPacket), 9000))
	if c.tx.path, err = congestion.NewPath(cc, random{}, c.stats); err != nil {
		return err
	}
	// Half of it: the buffer is for all peers, and small packets take more of it
	// than their size.
	c.tx.path.SetSpare(int64(1) << peer.Buffer / 2)
	if c.key.Key != nil {
		client, server := &c.own, peer
		if !c.dial.client {
			client, server = server, client
		}
		if c.tx.seal, c.rx.opener, err = c.key.Connection(client, server, c.dial.client); err != nil {
			return err
		}
	}
	c.peer = *peer
	c.tx.limit, c.tx.window = peer.Window, peer.Window
	c.rx.limit = uint64(c.i.cfg.Window)
	c.began, c.life.heard = now, now
	c.open.Store(true)
	c.s.byPeer[peerKey{c.addr, peer.CID}] = c
	c.phase.Store(uint32(up))
	return nil
}

// die ends the connection for a reason that is logged. Operations that wait for the peer end
// when all that it has sent is delivered, for there may be their outcome in it.
func (c *Endpoint) die(format string, args ...any) {
	was := c.at()
	if was == dead {
		return
	}
	c.phase.Store(uint32(dead))
	c.reason = fmt.Sprintf(format, args...)
	c.due = 0
	if c.rx.offer(); !c.rx.queued {
		c.ops.abandon(hw.ErrPeerDead)
	}
	if !c.listedDead {
		c.listedDead = true
		c.s.dead = append(c.s.dead, c)
	}
	if was == up {
		c.i.logf("connection with %s ends: %s", c.addr.String(), c.reason)
	}
}

// schedule sets the connection's timer.
func (c *Endpoint) schedule() {
	c.due = c.deadline()
	if c.due == 0 {
		return
	}
	if !c.timed {
		c.timed = true
		c.s.timed = append(c.s.timed, c)
	}
	c.s.wake(c.due)
}

func (c *Endpoint) freeRings() {
	c.tx.ring.close()
	c.rx.ring.close()
}
