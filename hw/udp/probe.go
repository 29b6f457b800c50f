package udp

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

// Probes travel in packets of their own, beside the stream: they are sent once,
// wait for no window, and are acknowledged by their echo. The peer answers as
// soon as it polls its socket, whether its application polls or not, and takes
// the time since the kernel received the probe out of the round trip. A peer
// answers every probe, of which a connection's other side alone can send; an echo
// is as long as its probe.

// SetProbes gives p the results of probes from now on. Before, probes are answered
// without PTP times, and echoes are ignored.
func (i *Iface) SetProbes(p congestion.Probes) {
	i.probes.Store(&p)
	if p.Echoed == nil || i.cfg.Impair != nil {
		return
	}
	for _, s := range i.stripes {
		s.lease.lock()
		if err := s.socket.EnableStamps(); err != nil {
			i.logf("probes: %v", err)
		}
		s.leave()
	}
}

// Now reads the clock that round-trip times are measured with.
func (i *Iface) Now() congestion.Time { return i.now() }

// Stats is what is known about the path to the peer. Data and probes report to
// it, by the interface's clock. Any thread may use it.
func (c *Endpoint) Stats() *congestion.Stats { return c.stats }

// MaxProbe is the longest probe in bytes.
const MaxProbe = 1024

// Probe sends a probe and returns when it left. Errors: hw.ErrNoResource while the connection is being
// made or others use it, hw.ErrTooLong above MaxProbe, hw.ErrPeerDead.
func (c *Endpoint) Probe(m congestion.ProbeMessage) (congestion.Time, error) {
	if m.Size > MaxProbe {
		return 0, hw.ErrTooLong
	}
	if err := c.Err(); err != nil {
		return 0, err
	}
	if !c.s.lease.spin() {
		return 0, hw.ErrNoResource
	}
	defer c.s.leave()
	if c.at() != up {
		return 0, hw.ErrNoResource
	}
	c.probe = probeStamps{token: m.Token, left: c.i.now()}
	c.sendProbe(m)
	c.probe.returned = c.probe.left
	return c.probe.returned, nil
}

// ProbeLost takes in that a probe was not answered in time.
func (c *Endpoint) ProbeLost() {
	if !c.s.lease.spin() {
		return // the next that is lost counts
	}
	if c.at() == up {
		c.tx.path.OnProbe(c.i.now(), 0)
	}
	c.s.leave()
}

// sendProbe sends a probe or an echo.
func (c *Endpoint) sendProbe(m congestion.ProbeMessage) {
	t, s := &c.tx, c.s
	t.number()
	size := wire.HeaderSize + wire.ProbeHeader + m.Size
	total := size
	if t.seal != nil {
		total += wire.TagSize
	}
	s.flush()
	b := s.out.Take(total)[:size]
	c.header(b, 0)
	wire.PutProbe(b[wire.HeaderSize:], m.Size)
	m.Append(b[wire.HeaderSize+wire.ProbeHeader : wire.HeaderSize+wire.ProbeHeader])
	c.ship(b, nil, false)
	t.sent.Void()
	if m.Echo {
		s.flush()
		return
	}
	s.flushProbe(c)
}

// handleProbe answers a probe, or takes in an echo.
func (c *Endpoint) handleProbe(now, at congestion.Time, b []byte) {
	m, err := congestion.ParseProbe(b)
	if err != nil || m.Size > MaxProbe {
		c.i.malformed.Add(1)
		return
	}
	p := c.i.probes.Load()
	if !m.Echo {
		if !c.alive() {
			return
		}
		delay := max(c.i.now().Sub(at), 0)
		var arrived congestion.PTPTime
		if p != nil && p.Clock != nil {
			arrived = p.Clock(delay)
		}
		c.sendProbe(m.Reply(arrived, delay))
		return
	}
	if p == nil || p.Echoed == nil {
		return
	}
	if rtt := p.Echoed(c, c.arrival(at, &m), m); rtt > 0 && c.alive() {
		c.tx.path.OnProbe(now, rtt)
	}
}
