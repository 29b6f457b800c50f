package congestion

import "time"

// agenda is the adaptive strategy's order of peers: a heap of when each wants to
// be probed, by a clock that stands still while more are due than the limit
// lets through. So under a limit all wait in proportion to their intervals, and
// none starves.
type agenda struct {
	heap  []appointment
	lag   time.Duration // how far the clock is behind
	slack time.Duration // lateness that is the timer's, not the limit's
}

type appointment struct {
	due  Time
	peer int32
}

// init gives every peer a first appointment within the interval.
func (a *agenda) init(start Time, interval time.Duration, peers []probedPeer, self int, rnd Rand) {
	a.heap, a.slack = make([]appointment, 0, len(peers)), interval/8
	for i := range peers {
		if i != self {
			a.push(appointment{start + Time(rnd.Uint64()%uint64(interval)), int32(i)})
		}
	}
}

// next returns the real time at which the first appointment is due.
func (a *agenda) next() Time {
	if len(a.heap) == 0 {
		return forever
	}
	return a.heap[0].due.Add(a.lag)
}

// add makes an appointment in d from now.
func (a *agenda) add(now Time, d time.Duration, peer int) {
	a.push(appointment{now.Add(d - a.lag), int32(peer)})
}

func (a *agenda) push(p appointment) {
	a.heap = append(a.heap, p)
	i := len(a.heap) - 1
	for i > 0 && a.heap[i].due < a.heap[(i-1)/2].due {
		a.heap[i], a.heap[(i-1)/2] = a.heap[(i-1)/2], a.heap[i]
		i = (i - 1) / 2
	}
}

// pop takes the first appointment if it is due, and lets the clock fall behind
// by how late it is.
func (a *agenda) pop(now Time) (peer int, ok bool) {
	if a.next() > now {
		return 0, false
	}
	first := a.heap[0]
	a.lag += max(now.Sub(a.next())-a.slack, 0)
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap = a.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return int(first.peer), true
		}
		if child+1 < last && a.heap[child+1].due < a.heap[child].due {
			child++
		}
		if a.heap[i].due <= a.heap[child].due {
			return int(first.peer), true
		}
		a.heap[i], a.heap[child] = a.heap[child], a.heap[i]
		i = child
	}
}

// quietest is how often the interval of a quiet peer doubles.
const quietest = 4

// due takes the next peer from the agenda of which data says too little.
func (p *Prober) due(now Time) (int, bool) {
	for {
		peer, ok := p.agenda.pop(now)
		if !ok {
			return 0, false
		}
		state := &p.peers[peer]
		s := p.table.Peer(peer).Read()
		wait := p.cfg.PeerGap - now.Sub(state.last)
		if state.last == 0 {
			wait = 0
		}
		if s.Updated > state.heard && !p.congested(&s) {
			wait = max(wait, p.interval(peer)-now.Sub(s.Updated))
		}
		if wait <= 0 {
			return peer, true
		}
		p.agenda.add(now, wait, peer)
	}
}

// interval is how long a peer may go without being heard of.
func (p *Prober) interval(peer int) time.Duration { return p.cfg.Interval << p.peers[peer].quiet }

// congested judges a peer by its statistics.
func (p *Prober) congested(s *Snapshot) bool {
	return s.Samples > 0 && s.SRTT-s.Min > max(p.cfg.Excess, s.Min/2)
}

// reschedule makes the next appointment after a probe came to its end.
func (p *Prober) reschedule(now Time, peer int, lost bool) {
	p.peers[peer].heard = now
	if p.cfg.Strategy != Adaptive {
		return
	}
	s := p.table.Peer(peer).Read()
	if lost || p.congested(&s) {
		p.peers[peer].quiet = 0
	} else {
		p.peers[peer].quiet = min(p.peers[peer].quiet+1, quietest)
	}
	p.agenda.add(now, p.interval(peer), peer)
}
