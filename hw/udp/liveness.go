package udp

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// liveness is what a connection knows of whether its peer lives: when it was heard, since when it owes an answer, and
// the hints of others that it is gone. It belongs to the lease holder.
type liveness struct {
	c      *Endpoint       // immutable
	heard  congestion.Time // when the last authentic packet of the peer came
	asked  congestion.Time // since when the peer owes us an answer, 0: it does not
	hints  int             // messages of others that the peer is gone, since heard
	hintAt congestion.Time // the first of them
	doomed string          // why the connection ends when the socket is empty; empty: it does not
}

// hear notes that an authentic packet of the peer came: the peer lives.
func (l *liveness) hear(now congestion.Time) {
	l.heard, l.hints = now, 0
	l.asked = 0
	if l.c.tx.sent.Flying() > 0 {
		l.asked = now
	}
	if l.c.half {
		l.c.s.confirm(l.c)
	}
}

// hint takes in a Reset or an ICMP error that says that the peer is gone. Its sender has seen a packet of this
// connection. Without an authorisation key it is believed; with one, only if the peer does not answer within hintTime.
func (l *liveness) hint(now congestion.Time, why string) {
	if l.c.at() == leaving {
		l.c.die("%s", why)
		return
	}
	if l.c.at() != up || l.c.ended {
		return
	}
	if l.c.tx.seal == nil {
		l.doom(why)
		return
	}
	if l.hints++; l.hints == 1 {
		l.hintAt = now
	}
	if l.hints >= hints && now.Sub(l.hintAt) >= hintTime {
		l.doom(why + ", and does not answer")
		return
	}
	l.c.schedule()
}

// doom has the connection end when the socket has been read empty: the kernel reports errors first, and what the
// peer sent before its end may stand in the queue.
func (l *liveness) doom(why string) {
	if l.doomed == "" {
		l.c.s.doomed = append(l.c.s.doomed, l.c)
	}
	l.doomed = why
}

// endDoomed ends the connections of which it is known that their peers are gone, but not those that their peers have
// closed.
func (s *stripe) endDoomed() {
	if len(s.doomed) == 0 {
		return
	}
	for n, c := range s.doomed {
		if c.at() == up && !c.ended {
			c.die("%s", c.life.doomed)
		}
		c.life.doomed, s.doomed[n] = "", nil
	}
	s.doomed = s.doomed[:0]
}

// expired ends the connection if its time is up.
func (l *liveness) expired(now congestion.Time) bool {
	switch {
	case l.c.half && now >= l.c.dial.expires:
		l.c.s.offList(l.c)
		l.c.die("never used")
	case l.asked != 0 && now.Sub(l.asked) >= l.c.i.cfg.PeerTimeout:
		l.c.die("no answer for %v", now.Sub(l.asked).Round(time.Millisecond))
	case l.hints > 0 && now.Sub(l.hintAt) >= hintTime*2:
		l.hints, l.hintAt = 0, 0 // no more of them came: forget it
	case l.hints > 0 && now.Sub(l.hintAt) >= hintTime:
		l.c.tx.ping, l.c.tx.urgent = true, true
	}
	return l.c.at() == dead
}
