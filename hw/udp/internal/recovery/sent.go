package recovery

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

// ErrAck is what an acknowledgement of a packet that was never sent gives.
var ErrAck = errors.New("acknowledgement of a packet that was not sent")

// Packet is what is kept of a packet that asks for an acknowledgement.
type Packet struct {
	Offset   uint64 // of the content, for its owner
	Number   uint64 // set by Add
	Op       uint32 // for its owner
	Len      uint32 // of the content, for its owner
	Size     uint32 // bytes on the wire, which count against the window; 0: the packet does not
	Kind     uint8  // of the content, for its owner
	Asked    bool   // it asks for an answer at once
	state    status
	more     uint8                  // packets that follow and are alike, as a run
	Reported Reported               // by the acknowledgement that went along
	Flight   congestion.PacketState // from Path.OnSend
}

// Late reports of a packet in Acked that it was taken for lost.
func (p *Packet) Late() bool { return p.state == lost }

// status is what became of a packet number.
//
//	flying → acked    by an acknowledgement
//	flying → lost     by Detect, Timeout or Drop
//	lost → acked      when the acknowledgement comes after all
//	void              a number without content to keep, or skipped (mute)
type status uint8

const (
	void status = iota
	mute        // skipped: it cannot have arrived
	flying
	acked
	lost
)

// Loss detection's constants (RFC 8985, section 7; RFC 9002, section 6).
const (
	dupThreshold = 3
	maxReoMult   = 20
	reoPersist   = 16 // loss episodes without a spurious one until the window shrinks again
)

// Sent knows what became of the packets that a connection sent. The zero value
// has sent nothing. One owner at a time.
type Sent struct {
	table
	fly int // packets in flight

	largest    uint64 // largest number acknowledged
	anyAcked   bool
	rackSent   congestion.Time // when the newest of the acknowledged packets left
	rackRTT    time.Duration
	rackNumber uint64
	reordered  bool
	mult       int // of the reordering window, in quarters of the least round trip
	persist    int
	spuriousAt congestion.Time

	lossAt   congestion.Time // when a packet becomes lost by time, 0: none
	lastSent congestion.Time // of the newest packet that asks for an acknowledgement

	// Acked and Lost are the packets of the last call that returned some;
	// valid until the next. In Acked the packets of a train are one, with the
	// number of the last, the offset of the first and the length of all.
	Acked, Lost []Packet
	// Forgotten are packets in flight that thousands of Void ones have pushed
	// out of the table. Their owner discards their sizes from the path, sends
	// their content again and empties the slice.
	Forgotten []Packet
}

// Number returns the number that the next packet gets.
func (s *Sent) Number() uint64 { return s.next }

// Largest returns the largest number that was acknowledged, 0 before the first.
func (s *Sent) Largest() uint64 { return s.largest }

// Flying returns how many packets are under way.
func (s *Sent) Flying() int { return s.fly }

// Room reports whether another packet can be kept. Packets that need no
// acknowledgement (Void) always can.
func (s *Sent) Room() bool { return s.next-s.low < maxTable-64 }

// Free returns how many packets Room is true for, one after the other.
func (s *Sent) Free() int { return max(maxTable-64-int(s.next-s.low), 0) }

// keep adds p and its like to the table. Void numbers may push out unsettled ones only
// beyond maxTable, which Room keeps far away.
func (s *Sent) keep(p Packet) {
	n := uint64(p.more) + 1
	if s.next+n-s.low > uint64(len(s.entries)) {
		s.settle(0)
	}
	for !s.grow(n) {
		s.forget()
	}
	s.add(p)
}

// forget gives up the oldest number: its entry is needed.
func (s *Sent) forget() {
	if p := s.single(s.low); p.state == flying {
		s.fly--
		s.Forgotten = append(s.Forgotten, *p)
	}
	s.low++
}

// Add keeps p, which leaves now under Number.
func (s *Sent) Add(now congestion.Time, p Packet) { s.AddMany(now, p, 1) }

// AddMany keeps n packets like p, 1 to 256, that leave now under the numbers from Number on,
// with Offset growing by Len. If p asks for an answer at once, the last of them does. Free
// has said that there is room for them.
func (s *Sent) AddMany(now congestion.Time, p Packet, n int) {
	p.state, p.more = flying, uint8(n-1)
	s.keep(p)
	s.fly += n
	s.lastSent = now
}

// Left corrects when the packet of a number left that is still in flight and no part of a train.
func (s *Sent) Left(number uint64, at congestion.Time) {
	if p, _ := s.run(number); p.state == flying && p.Number == number && p.more == 0 {
		p.Flight.Sent = at
	}
}

// Void uses up a number for a packet that is not acknowledged.
func (s *Sent) Void() { s.keep(Packet{state: void}) }

// Skip uses up a number for no packet at all.
func (s *Sent) Skip() { s.keep(Packet{state: mute}) }

// settle moves low past what needs no more care. Lost packets are kept
// for hold, to learn whether they were lost.
func (s *Sent) settle(lostBefore congestion.Time) {
	for s.low < s.next {
		p, _ := s.run(s.low)
		switch {
		case p.state == flying:
			return
		case p.state == lost && p.Flight.Sent > lostBefore && s.next-s.low < maxTable/2:
			return
		}
		s.low += uint64(p.more) + 1
	}
}

// OnAck takes in an acknowledgement that arrived at arrival, which may be earlier than now, and passes it on to path;
// marked of the packets it acknowledges came with ECN's mark. Acked then holds what is newly acknowledged, those that
// were taken for lost included (Late), which path does not count again. Errors: ErrAck.
func (s *Sent) OnAck(now, arrival congestion.Time, a *wire.Ack, marked uint32, path *congestion.Path) error {
	s.Acked = s.Acked[:0]
	if a.Ranges[0].Last >= s.next {
		return fmt.Errorf("number %d of %d: %w", a.Ranges[0].Last, s.next, ErrAck)
	}
	before := s.largest
	had := s.anyAcked
	for i := range a.N {
		r := a.Ranges[i]
		if r.Last < s.low {
			break
		}
		if err := s.ackRange(now, arrival, max(r.First, s.low), r.Last, had, before, &marked, path); err != nil {
			return err
		}
	}
	if len(s.Acked) == 0 {
		return nil
	}
	rtt, delay := time.Duration(0), now.Sub(arrival)
	if newest := &s.Acked[0]; newest.Number == a.Ranges[0].Last {
		if newest.Size > 0 && !newest.Late() {
			rtt = sample(arrival, newest, a.Delay, path)
			path.Arrival(a.Arrived - uint32(newest.Flight.Sent))
		}
		if newest.Asked { // else the peer may have waited for company
			delay += max(a.Delay, 0)
		}
	}
	path.Hold(now, delay)
	path.EndAck(now, rtt)
	s.settle(now.Add(-3 * path.RTT().SRTT()))
	return nil
}

// ackRange acknowledges numbers from last down to first.
func (s *Sent) ackRange(now, at congestion.Time, first, last uint64, had bool, before uint64, marked *uint32,
	path *congestion.Path) error {
	for n := last; n+1 > first; n-- {
		p, begin := s.run(n)
		switch p.state {
		case mute:
			return fmt.Errorf("number %d was skipped: %w", n, ErrAck)
		case acked:
			n = max(begin, first)
		case flying:
			if begin = max(begin, first); *marked > 0 {
				begin = n
			}
			s.ackRun(now, begin, n, *marked > 0, path)
			if p.Size > 0 {
				*marked -= min(*marked, 1)
			}
			n = begin
			s.rack(&s.Acked[len(s.Acked)-1], had && n < before, at)
		case lost:
			s.spurious(at, path)
			s.Acked = append(s.Acked, *p)
			p.state = acked
		}
	}
	s.largest, s.anyAcked = max(s.largest, last), true
	return nil
}

// ackRun acknowledges numbers first to last of one run that flies.
func (s *Sent) ackRun(now congestion.Time, first, last uint64, marked bool, path *congestion.Path) {
	p := s.cut(first)
	if first+uint64(p.more) > last {
		s.cut(last + 1)
	}
	k := int(p.more) + 1
	s.fly -= k
	switch {
	case p.Size == 0:
	case marked:
		path.OnAck(now, &p.Flight, int64(p.Size), true)
	default:
		path.OnAckMany(now, &p.Flight, int64(p.Size), k)
	}
	p.state = acked
	s.Acked = append(s.Acked, *p)
	all := &s.Acked[len(s.Acked)-1]
	all.Number = last
	all.Len *= uint32(k)
}

// sample returns the round-trip time that an acknowledgement of p measures.
func sample(arrival congestion.Time, p *Packet, delay time.Duration, path *congestion.Path) time.Duration {
	rtt := arrival.Sub(p.Flight.Sent)
	if rtt <= 0 {
		return 1
	}
	// A peer that claims to have kept it back for longer than it took lies, or
	// its clock does: the least round trip falls by half in one step at most.
	return max(rtt-delay, min(rtt, path.RTT().Min()/2), 1)
}

// rack takes in that p has arrived (RFC 8985, section 6.2).
func (s *Sent) rack(p *Packet, late bool, now congestion.Time) {
	if late {
		s.reordered = true
	}
	if p.Flight.Sent > s.rackSent || p.Flight.Sent == s.rackSent && p.Number > s.rackNumber {
		s.rackSent, s.rackNumber, s.rackRTT = p.Flight.Sent, p.Number, now.Sub(p.Flight.Sent)
	}
}

// spurious takes in that a packet taken for lost was not: wait longer, but not
// twice for one episode.
func (s *Sent) spurious(now congestion.Time, path *congestion.Path) {
	s.reordered = true
	if s.spuriousAt != 0 && now.Sub(s.spuriousAt) < path.RTT().SRTT() {
		return
	}
	s.spuriousAt = now
	s.mult = min(max(s.mult, 1)+1, maxReoMult)
	s.persist = reoPersist
}

// patience is how much later than its round trip a packet may come.
func (s *Sent) patience(path *congestion.Path) time.Duration {
	e := path.RTT()
	return min(time.Duration(max(s.mult, 1))*e.Min()/4, e.SRTT())
}

// Detect finds packets that are lost by now, reports them to path, and leaves them in
// Lost. [Sent.Timer] says when to call it again.
func (s *Sent) Detect(now congestion.Time, path *congestion.Path) {
	s.Lost = s.Lost[:0]
	s.lossAt = 0
	if !s.anyAcked {
		return
	}
	patience := s.patience(path)
	for n := s.low; n < s.rackNumber; n++ {
		p, _ := s.run(n)
		if p.state != flying || p.Flight.Sent > s.rackSent {
			n += uint64(p.more)
			continue
		}
		p = s.single(n)
		wait := patience
		if !s.reordered && s.largest >= n+dupThreshold {
			wait = 0
		}
		due := p.Flight.Sent.Add(s.rackRTT + wait)
		if due <= now {
			s.lose(p, path, now)
		} else if s.lossAt == 0 || due < s.lossAt {
			s.lossAt = due
		}
	}
	if len(s.Lost) > 0 {
		if s.persist--; s.persist <= 0 {
			s.mult = 1
		}
		path.EndLoss(now)
	}
}

func (s *Sent) lose(p *Packet, path *congestion.Path, now congestion.Time) {
	p.state = lost
	s.fly--
	if p.Size > 0 {
		path.OnLoss(now, &p.Flight, int64(p.Size))
	}
	s.Lost = append(s.Lost, *p)
}

// Timer returns when Detect or the retransmission timer is next due, 0 for
// never. hold is how long the peer may hold an acknowledgement back; as long as
// hosts did lately counts anyway.
func (s *Sent) Timer(path *congestion.Path, hold time.Duration) congestion.Time {
	if s.lossAt != 0 {
		return s.lossAt
	}
	if s.fly == 0 {
		return 0
	}
	return s.lastSent.Add(path.RTT().RTO() + max(hold, path.AckDelay()))
}

// LossTimer reports whether what Timer returned is Detect's.
func (s *Sent) LossTimer() bool { return s.lossAt != 0 }

// Timeout takes everything in flight for lost and leaves it in Lost: the
// retransmission timer ran out and no probe was answered.
func (s *Sent) Timeout(now congestion.Time, path *congestion.Path) {
	s.Lost = s.Lost[:0]
	s.lossAt = 0
	for n := s.low; n < s.next; n++ {
		if p := s.single(n); p.state == flying {
			s.lose(p, path, now)
		}
	}
	path.EndLoss(now)
	path.OnTimeout(now)
}

// Oldest returns the oldest packet in flight, nil if there is none.
func (s *Sent) Oldest() *Packet {
	for n := s.low; n < s.next; n++ {
		p, _ := s.run(n)
		if p.state == flying {
			return s.single(n)
		}
		n += uint64(p.more)
	}
	return nil
}
