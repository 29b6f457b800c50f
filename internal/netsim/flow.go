package netsim

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// ackSize is the bytes of an acknowledgement on the wire.
const ackSize = 64

// Flow is a reliable transport in small, from one host to another: what hw/udp
// does to congestion.Path, in simulated time.
//
// Every packet has its own number and carries one chunk of data; a lost chunk
// is sent again under another number. A receiver without a host answers every
// packet; for one with see [Host]. An answer stands for all arrivals before it, so
// a lost answer costs only time.
type Flow struct {
	// Path is the congestion control under test.
	Path *congestion.Path

	// Clock is the receiver's.
	Clock Clock

	// OnRTT, if set, sees every measured RTT.
	OnRTT func(now congestion.Time, rtt time.Duration)

	// OnDelivered, if set, is called for each chunk that arrives for the first time.
	OnDelivered func(now congestion.Time)

	// Delivered counts the bytes of chunks that arrived, each once. Sent,
	// Resent, Spurious (chunks that arrived twice) and Timeouts count packets
	// and timers.
	Delivered, Sent, Resent, Spurious, Timeouts int64

	net           *Net
	near, far     *Host // may be nil
	forth, back   Route
	size          int64
	remaining     int64 // chunks never sent yet, <0 for no end
	next          uint64
	first         uint64 // oldest number not yet settled
	flight        []sent // of numbers [first, next)
	again         []uint64
	chunk         uint64
	added         uint64           // chunks, by AddBytes
	short         map[uint64]int64 // bytes of chunks that fill no packet
	arrived       map[uint64]bool  // chunks at the receiver at or above whole
	whole         uint64           // chunks below this all arrived
	log           []arrival        // at the receiver, not yet learnt by the sender
	logged        uint64           // number of arrivals before log
	answered      uint64           // arrivals that were answered
	highest       uint64           // number at the receiver, plus 1
	highestAt     congestion.Time  // when it arrived
	asked         bool             // an answer is owed at once
	answerAt      congestion.Time  // when one is owed in any case
	newest        uint64           // the highest number acknowledged, plus 1
	news          bool             // an answer was taken in that settle has not seen
	probed        bool             // the retransmission timer ran out, and one packet went again
	rtt           time.Duration
	timer         congestion.Time // when the earliest timer event is due, 0 for none
	deadline      congestion.Time // when the RTO runs out
	wake          congestion.Time
	started       congestion.Time
	ended         congestion.Time
	receiverEnd   flowReceiver
	retransmitEnd flowTimer
	paceEnd       flowPace
	answerEnd     flowAnswer
}

// sent is a packet in flight, or settled (acknowledged or lost) behind one that
// is.
type sent struct {
	state   congestion.PacketState
	chunk   uint64
	asked   bool
	settled bool
}

// arrival is a packet at the receiver.
type arrival struct {
	number uint64
	at     uint32 // by the receiver's clock
	marked bool
}

// Clock is a host's clock: so much later than the simulation's at its beginning, and so much faster in parts of a
// million.
type Clock struct {
	Later  time.Duration
	Faster float64
}

// read is the clock's time modulo 2^32 ns.
func (c Clock) read(now congestion.Time) uint32 {
	return uint32(now.Add(c.Later + time.Duration(float64(now)*c.Faster/1e6)))
}

// What events deliver to a flow.
type (
	flowReceiver struct{ *Flow }
	flowTimer    struct{ *Flow }
	flowPace     struct{ *Flow }
	flowAnswer   struct{ *Flow }
)

// Flow makes a flow of bytes (less than 0: without end) in packets of
// cfg.Unit, over forth, answered over back. It begins at once,
// on a path that a handshake has measured.
func (n *Net) Flow(cfg congestion.Config, forth, back Route, bytes int64) *Flow {
	return n.FlowBetween(cfg, nil, nil, forth, back, bytes)
}

// FlowBetween makes a flow from one host to another; nil is a host that takes no
// time.
func (n *Net) FlowBetween(cfg congestion.Config, from, to *Host, forth, back Route, bytes int64) *Flow {
	path, err := congestion.NewPath(cfg, n.Rand, nil)
	if err != nil {
		panic(err) // a test's mistake
	}
	f := &Flow{
		Path: path, net: n, near: from, far: to, forth: forth, back: back, size: cfg.Unit,
		remaining: -1, arrived: map[uint64]bool{}, started: n.now,
	}
	if bytes >= 0 {
		f.remaining = (bytes + f.size - 1) / f.size
	}
	if to != nil {
		path.SetSpare(to.Room / 2)
	}
	path.RTT().Add(n.now, forth.takes(f.size)+back.takes(ackSize), 0)
	f.receiverEnd, f.retransmitEnd, f.paceEnd, f.answerEnd = flowReceiver{f}, flowTimer{f}, flowPace{f}, flowAnswer{f}
	n.At(n.now, f.pump)
	return f
}

// Ended returns when the last byte was acknowledged, 0 if it was not yet.
func (f *Flow) Ended() congestion.Time { return f.ended }

// Add lets the flow send so many packets more. It has an end.
func (f *Flow) Add(packets int64) {
	f.remaining += packets
	f.ended = 0
	f.pump()
}

// AddBytes lets the flow send so many bytes more. The last packet has what is left, on the wire: what is counted are
// whole ones. All that the flow sends is added so.
func (f *Flow) AddBytes(bytes int64) {
	packets := (bytes + f.size - 1) / f.size
	f.added += uint64(packets)
	if rest := bytes % f.size; rest != 0 {
		if f.short == nil {
			f.short = map[uint64]int64{}
		}
		f.short[f.added-1] = rest
	}
	f.Add(packets)
}

// wire is the bytes of a chunk's packet.
func (f *Flow) wire(chunk uint64) int64 {
	if n, ok := f.short[chunk]; ok {
		return n
	}
	return f.size
}

// pump sends as much as window and pace allow.
func (f *Flow) pump() {
	now := f.net.now
	for f.Path.Open() {
		if len(f.again) == 0 && f.remaining == 0 {
			f.Path.Limited()
			break
		}
		if at := f.Path.Next(); at > now {
			f.wakeAt(at)
			break
		}
		f.transmit(now)
	}
	f.arm()
}

// wakeAt has the flow send at a time.
func (f *Flow) wakeAt(at congestion.Time) {
	if f.wake <= f.net.now || at < f.wake {
		f.wake = at
		f.net.at(at, f.paceEnd, nil)
	}
}

func (f flowPace) handle(*Packet) {
	if at := f.near.busy(); at > f.net.now {
		f.wakeAt(at)
		return
	}
	f.pump()
}

// transmit sends one packet: a lost chunk, or the next.
func (f *Flow) transmit(now congestion.Time) {
	chunk := f.chunk
	if len(f.again) > 0 {
		chunk = f.again[0]
		f.again = f.again[1:]
		f.Resent++
	} else {
		f.chunk++
		if f.remaining > 0 {
			f.remaining--
		}
	}
	p := f.net.packet()
	p.Size, p.Number, p.Stamp = f.wire(chunk), f.next, congestion.Time(chunk)
	p.Asks = f.Path.Inflight()+f.size >= f.Path.Control().Window()
	f.flight = append(f.flight, sent{state: f.Path.OnSend(now, f.size), chunk: chunk, asked: p.Asks})
	f.next++
	f.Sent++
	if f.deadline == 0 {
		f.deadline = f.rto(now)
	}
	f.near.work(1)
	f.net.send(p, f.forth, f.receiverEnd)
}

// rto is when the retransmission timer runs out that is set now.
func (f *Flow) rto(now congestion.Time) congestion.Time {
	due := now.Add(f.Path.RTT().RTO())
	if f.far != nil {
		due = due.Add(max(ackHold, f.Path.AckDelay()))
	}
	return due
}

func (f flowReceiver) receive(p *Packet) { f.net.deliver(f.far, f, p) }

// take is the receiver's: it notes the packet.
func (f flowReceiver) take(p *Packet, at congestion.Time) {
	chunk := uint64(p.Stamp)
	switch {
	case chunk < f.whole || f.arrived[chunk]:
		f.Spurious++
	default:
		f.arrived[chunk] = true
		f.Delivered += f.size
		if f.OnDelivered != nil {
			f.OnDelivered(at)
		}
		for f.arrived[f.whole] {
			delete(f.arrived, f.whole)
			f.whole++
		}
	}
	f.log = append(f.log, arrival{p.Number, f.Clock.read(at), p.Marked})
	f.asked = f.asked || p.Asks || p.Number != f.highest
	if p.Number >= f.highest {
		f.highest, f.highestAt = p.Number+1, at
	}
}

// settle is the receiver's: it answers.
func (f flowReceiver) settle() {
	owed := f.logged + uint64(len(f.log)) - f.answered
	switch {
	case owed == 0:
	case f.far == nil || f.asked || owed >= ackEvery:
		f.answer()
	case f.answerAt == 0:
		f.answerAt = f.net.now.Add(ackHold)
		f.net.at(f.answerAt, f.answerEnd, nil)
	}
}

// answer answers all that has arrived.
func (f *Flow) answer() {
	f.answered = f.logged + uint64(len(f.log))
	f.asked, f.answerAt = false, 0
	p := f.net.packet()
	p.Size, p.Number = ackSize, f.answered
	if f.far != nil {
		p.Stamp = congestion.Time(f.net.now.Sub(f.highestAt))
	}
	f.far.work(1)
	f.net.send(p, f.back, f)
}

// handle is the timer of the receiver.
func (f flowAnswer) handle(*Packet) {
	switch at := f.far.busy(); {
	case f.answerAt == 0 || f.net.now < f.answerAt:
	case at > f.net.now:
		f.net.at(at, f, nil)
	default:
		f.answer()
	}
}

func (f *Flow) receive(p *Packet) { f.net.deliver(f.near, f, p) }

// take takes in an answer that stands for the first p.Number arrivals, and takes off
// how long the receiver kept it back.
func (f *Flow) take(p *Packet, at congestion.Time) {
	if p.Number <= f.logged {
		return // overtaken by a later answer
	}
	f.news, f.probed = true, false
	now := f.net.now
	ackDelay := time.Duration(p.Stamp)
	n := int(p.Number - f.logged)
	var rtt time.Duration
	late := now.Sub(at)
	for i, a := range f.log[:n] {
		if a.number < f.first {
			continue
		}
		packet := &f.flight[a.number-f.first]
		if packet.settled {
			continue // declared lost before
		}
		packet.settled = true
		f.Path.OnAck(now, &packet.state, f.size, a.marked)
		f.newest = max(f.newest, a.number+1)
		if i == n-1 {
			rtt = at.Sub(packet.state.Sent)
			rtt = max(rtt-ackDelay, min(rtt, f.Path.RTT().Min()/2))
			f.Path.Arrival(a.at - uint32(packet.state.Sent))
			if packet.asked {
				late += ackDelay
			}
		}
	}
	f.log = append(f.log[:0], f.log[n:]...)
	f.logged = p.Number
	if rtt > 0 {
		f.rtt = rtt
		if f.OnRTT != nil {
			f.OnRTT(now, rtt)
		}
	}
	if f.near != nil {
		f.Path.Hold(now, late)
	}
	f.Path.EndAck(now, rtt)
	f.deadline = f.rto(now)
}

// settle sends what answers allow.
func (f *Flow) settle() {
	if !f.news {
		return
	}
	f.news = false
	f.detect(f.net.now)
	f.forget()
	f.pump()
}

// forget forgets settled packets at the front.
func (f *Flow) forget() {
	i := 0
	for i < len(f.flight) && f.flight[i].settled {
		i++
	}
	f.flight = f.flight[i:]
	f.first += uint64(i)
	if len(f.flight) == 0 {
		f.deadline = 0
		if f.remaining == 0 && len(f.again) == 0 && f.ended == 0 {
			f.ended = f.net.now
		}
	}
}

// patience is how much later than the newest packet acknowledged a packet's
// answer may come before it counts as lost (RFC 8985's reordering window).
func (f *Flow) patience() time.Duration { return max(f.Path.RTT().SRTT()/4, time.Microsecond) }

// detect finds packets lost that were sent before the newest acknowledged one
// and have waited for an RTT and the reordering window.
func (f *Flow) detect(now congestion.Time) {
	limit := max(f.rtt, f.Path.RTT().SRTT()) + f.patience()
	for i := range f.flight {
		p := &f.flight[i]
		if f.first+uint64(i) >= f.newest {
			break
		}
		if !p.settled && now.Sub(p.state.Sent) >= limit {
			f.lose(now, p)
		}
	}
	f.Path.EndLoss(now)
}

// lose settles a packet as lost and sends its chunk again.
func (f *Flow) lose(now congestion.Time, p *sent) {
	p.settled = true
	f.Path.OnLoss(now, &p.state, f.size)
	f.again = append(f.again, p.chunk)
}

// arm makes sure that an event comes when a loss or the RTO is due.
func (f *Flow) arm() {
	due := f.deadline
	for i := range f.flight {
		p := &f.flight[i]
		if f.first+uint64(i) >= f.newest {
			break
		}
		if !p.settled {
			due = min(due, p.state.Sent.Add(max(f.rtt, f.Path.RTT().SRTT())+f.patience()))
			break
		}
	}
	if due == 0 || f.timer > f.net.now && f.timer <= due {
		return
	}
	f.timer = max(due, f.net.now+1)
	f.net.at(f.timer, f.retransmitEnd, nil)
}

// handle is the timer's.
func (f flowTimer) handle(*Packet) {
	now := f.net.now
	if now < f.timer {
		return // an earlier one took its place
	}
	if at := f.near.busy(); at > now {
		f.timer = at
		f.net.at(at, f, nil)
		return
	}
	f.detect(now)
	if f.deadline != 0 && now >= f.deadline {
		f.timeout(now)
	}
	f.forget()
	f.pump()
}

// timeout sends the oldest packet again, beside the others, whatever the window is; nothing counts as lost by that.
// When the timer runs out a second time without an answer everything in flight is lost.
func (f *Flow) timeout(now congestion.Time) {
	f.Timeouts++
	if !f.probed {
		f.probed = true
		f.again = slices.Insert(f.again, 0, f.flight[0].chunk) // which is not settled: forget has seen to it
		f.transmit(now)
		f.deadline = f.rto(now)
		return
	}
	f.Path.OnTimeout(now)
	for i := range f.flight {
		if p := &f.flight[i]; !p.settled {
			f.lose(now, p)
		}
	}
	f.Path.EndLoss(now)
	f.deadline = f.rto(now)
}
