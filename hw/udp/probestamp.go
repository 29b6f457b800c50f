package udp

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// Of each probe the kernel says when it left, and the interface where it has a
// clock that is switched on. What a program measures includes the system
// call; these stamps do not.

// probeStamps are what is known about the latest probe of a connection.
type probeStamps struct {
	token    uint64
	returned congestion.Time // what Probe returned
	left     congestion.Time // when it left, as far as is known by now
	hardware time.Duration   // likewise, by the interface's clock; 0: not known
}

// stamping has what waits for stamps, by their numbers. The stripe's lease holder's.
type stamping struct {
	waits   [16]stampWait // the latest, by number
	owed    int           // stamps that have not come
	patient int           // polls until they are given up
}

type stampWait struct {
	id uint32
	c  *Endpoint
	of uint64 // token of the probe
}

// stampPolls is how often an idle socket is asked for stamps that are owed: an
// interface that gives none costs no more than that.
const stampPolls = 64

// flushProbe sends the probe that was just built, and takes its stamp in if it is
// there at once.
func (s *stripe) flushProbe(c *Endpoint) {
	w := &s.stamping
	id, ok := s.out.FlushStamped(s.socket)
	s.stale = true
	if !ok {
		return
	}
	w.waits[id%uint32(len(w.waits))] = stampWait{id, c, c.probe.token}
	w.owed, w.patient = w.owed+1, stampPolls
	s.drainStamps()
}

// drainStamps takes in the stamps that have come.
func (s *stripe) drainStamps() {
	w := &s.stamping
	if w.owed == 0 {
		return
	}
	s.socket.Errors(s.onSendError)
	if w.patient--; w.patient <= 0 {
		w.owed = 0
	}
}

// left takes in when a probe left. The kernel's stamp is of the wall clock, which
// may have been set: it counts if it lies between the post and now.
func (s *stripe) left(l *sock.Left) {
	w := &s.stamping
	w.owed = max(w.owed-1, 0)
	wait := &w.waits[l.ID%uint32(len(w.waits))]
	c := wait.c
	if c == nil || wait.id != l.ID || c.probe.token != wait.of {
		return
	}
	if l.Hardware != 0 {
		c.probe.hardware = l.Hardware
	}
	if l.Software == 0 {
		return
	}
	now, wall := s.i.now(), time.Duration(time.Now().UnixNano())
	if at := now.Add(l.Software - wall); at >= c.probe.left && at <= now {
		c.probe.left = at
	}
}

// arrival returns when the echo of a probe came, such that the time since what
// Probe returned is the round trip by the best stamps that there are.
func (c *Endpoint) arrival(at congestion.Time, m *congestion.ProbeMessage) congestion.Time {
	c.s.drainStamps()
	q := &c.probe
	if q.token != m.Token || q.returned == 0 {
		return at
	}
	var sent, received congestion.Stamp
	if q.hardware != 0 && c.s.message.Hardware != 0 {
		sent = congestion.Stamp{Clock: 1, At: int64(q.hardware)}
		received = congestion.Stamp{Clock: 1, At: int64(c.s.message.Hardware)}
	}
	rtt, _ := congestion.RoundTrip(at.Sub(q.left), sent, received)
	return q.returned.Add(max(rtt, 0))
}
