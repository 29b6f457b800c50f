package verbs

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// receiver is the consumer's state. It belongs to the lease holder, but for
// what is marked.
type receiver struct {
	i        *Iface
	handlers [hw.MaxAM]hw.Handler
	onPeer   func(hw.PeerEvent)
	port     *ibv.VPort // what C drives too: polling, what was polled, and the buffers to be given back
	cqs      []*ibv.CQ  // immutable: for arrivals, then sendCQs
	fresh    bool       // this Progress has delivered messages: its caller may still ask for their sources

	// postponed says that the last message's handler has left it where it is.
	postponed bool
	clock     reading // of the device's clock
	turn      int     // counts Progress: by turns rings have the greater half of it

	// What Stats counts: added to by the lease holder and the service, loaded by any
	// thread; relaxed.
	delivered, malformed, lost atomic.Uint64
}

func (r *receiver) init(i *Iface) {
	r.i = i
	r.onPeer = func(hw.PeerEvent) {}
}

// openPort makes the port; all buffers go to the shared receive queue with the
// first poll. Errors: those of mmap.
func (r *receiver) openPort() error {
	i := r.i
	r.cqs = []*ibv.CQ{i.recvCQ}
	var ends []*ibv.SendCQ
	for _, q := range i.sendCQs {
		r.cqs, ends = append(r.cqs, q.cq), append(ends, q.SendCQ)
	}
	p, err := ibv.NewVPort(ibv.VPortConfig{SRQ: i.srq, Base: i.first, BufferBytes: i.stride, Buffers: i.cfg.RxBuffers,
		LKey: i.mr.LKey, Queues: r.cqs, Ends: ends, Max: pollBatch, Peers: drivenPeers})
	if err != nil {
		return err
	}
	r.port = p
	r.poll()
	return nil
}

// poll gives buffers back and stages what the queues have, unless another
// thread polls or something is staged. It reports whether it has polled.
func (r *receiver) poll() bool {
	p := r.port
	if p.Staged.Load() != 0 || !p.Polling.CompareAndSwap(0, 1) {
		return false
	}
	polls := p.Staged.Load() == 0
	if polls {
		if !p.Poll() {
			r.i.deviceLost(errQueue)
		}
	}
	p.Polling.Store(0)
	return polls
}

// pollEnds completes what was posted while arrivals wait behind the limit, and returns how many operations completed.
// What is staged is arrivals.
func (r *receiver) pollEnds() int {
	p := r.port
	if !p.Polling.CompareAndSwap(0, 1) {
		return 0
	}
	if !p.PollEnds() {
		r.i.deviceLost(errQueue)
	}
	p.Polling.Store(0)
	return r.complete()
}

// errQueue is why all connections end when a completion queue cannot be polled.
var errQueue = errors.New("verbs: a completion queue is broken")

// drained reports whether everything that came was dealt with when the queues
// were last polled.
func (r *receiver) drained() bool { return r.port.Empty() }

// drop passes by what has arrived.
func (r *receiver) drop() {
	for d := r.port.Arrival(); d != nil; d = r.port.Arrival() {
		r.port.Pass()
		r.port.GiveBack(uint32(d.ID))
		r.port.Staged.Add(-1)
	}
}

// call has C leave the next poll of the interface to Go. Any thread, after it has
// said why.
func (i *Iface) call() {
	if p := i.rx.port; p != nil {
		p.Calls.Or(ibv.CallGo)
	}
}

// wantSignals has the lease holder make operations signaled, because
// places or buffers are short or a thread waits for their ends. Any thread.
func (i *Iface) wantSignals() {
	i.signalsDue.Store(true)
	i.call()
}

// called reports whether Progress has more to do than to poll.
func (i *Iface) called() bool {
	return i.signalsDue.Load() || i.anyTodo.Load() || i.flushes.Any()
}

// Progress delivers up to limit arrived messages and completes operations.
func (i *Iface) Progress(limit int) int {
	r := &i.rx
	if i.closed.Load() {
		return 0
	}
	if r.port.Calls.Load() != 0 && r.port.Calls.Swap(0)&ibv.CallPost != 0 { // before what was stored with it is read
		i.signalsDue.Store(true)
	}
	r.port.Flush()
	r.poll()
	r.turn++
	n := r.takeRings(limit/2 + limit&r.turn&1)
	stuck := false // behind a message that is postponed
	for r.port.Staged.Load() != 0 {
		n += r.complete()
		got := 0
		got, stuck = r.takeArrivals(limit - n)
		if n += got; stuck || n >= limit || r.port.Staged.Load() != 0 {
			break
		}
		r.poll()
	}
	if n < limit {
		n += r.takeRings(limit - n) // what the others have left
	}
	if (stuck || n >= limit) && r.port.Staged.Load() != 0 {
		n += r.pollEnds()
	}
	if i.signalsDue.Load() || i.anyTodo.Load() {
		r.fresh = n > 0
		i.upkeep()
	}
	n += i.flushes.Complete()
	if i.called() {
		i.call()
	}
	return n
}

// takeArrivals delivers staged arrivals up to limit messages and returns how many there were. stuck: the first one that
// is left was postponed.
func (r *receiver) takeArrivals(limit int) (n int, stuck bool) {
	for d := r.port.Arrival(); d != nil && (n < limit || d.Opcode != ibv.DoneRecv); d = r.port.Arrival() {
		got := 0
		if got, stuck = r.arrive(d, r.port.Pass()); stuck {
			return n + got, true
		}
		n += got
		r.port.Staged.Add(-1) // last: now another thread may poll
	}
	return n, false
}

// complete deals with the staged completions of what was posted and returns how
// many operations completed.
func (r *receiver) complete() int {
	n := 0
	r.clock = reading{} // a new batch
	for k := 1; k < r.port.Queues(); k++ {
		list := r.port.Ended(k)
		for j := range list {
			n += r.i.ended(&list[j])
		}
		r.port.Staged.Add(-int64(len(list)))
	}
	return n
}

// arrive delivers one arrival, of which C has dealt with the first bytes up to at,
// and returns how many messages were in it. stuck: one was postponed, and the arrival stays staged from there on.
func (r *receiver) arrive(d *ibv.Done, at int) (delivered int, stuck bool) {
	buffer := uint32(d.ID)
	if d.ID >= uint64(r.i.cfg.RxBuffers) { // of a queue pair's own, which there are none of
		return 0, false
	}
	switch {
	case d.Status != ibv.StatusOK: // flushed with its queue pair
	case d.Opcode == ibv.DoneRecvImm:
		r.control(d)
	case d.Opcode == ibv.DoneRecv:
		all := r.i.rxBuffer(buffer)[:min(int(d.Bytes), r.i.stride)]
		for b := all[min(at, len(all)):]; b != nil; {
			rest, n := r.deliver(b, d.QP)
			delivered += n
			if r.postponed {
				r.postponed = false
				r.port.PutBack(len(all) - len(b))
				return delivered, true
			}
			b = rest
		}
	}
	r.port.GiveBack(buffer)
	return delivered, false
}

// deliver gives the first message in b to its handler, after what its sender has written before it sent that, and
// returns what comes behind it and how many messages that was. Its bytes were written by the peer's device before its
// completion, so they do not change any more.
func (r *receiver) deliver(b []byte, qp uint32) (rest []byte, delivered int) {
	r.postponed = false
	m, rest, ok := parseMessage(b)
	if !ok {
		r.refuse("message of %d bytes with header %x", len(b), b[:min(len(b), headerBytes)])
		return nil, 0
	}
	e := r.from(m.index&ibv.IndexMask, qp)
	if e == nil {
		r.refuse("message with index %d over queue pair %d", m.index&ibv.IndexMask, qp)
		return rest, 0
	}
	delivered = r.takeRing(e, ibv.RingSlots)
	if r.postponed {
		return rest, delivered
	}
	if int32(m.seq-e.c.LastSeq) <= 0 {
		return rest, delivered // it came already, over the former connection
	}
	if r.dispatch(e, &m, b) {
		delivered++
	}
	return rest, delivered
}

// dispatch gives a message of e's, which b starts with, to its handler.
func (r *receiver) dispatch(e *Endpoint, m *message, b []byte) (delivered bool) {
	last := e.c.LastSeq
	e.c.LastSeq, e.c.Heard = m.seq, 1
	e.msg.Heard(m.index)
	head, payload := b[headerBytes:][:m.headLen], b[headerBytes+int(m.headLen):][:m.length]
	delivered = r.handle(e, m, head, payload)
	if r.postponed {
		e.c.LastSeq = last
	}
	return delivered
}

// handle calls a message's handler.
func (r *receiver) handle(e *Endpoint, m *message, head, payload []byte) bool {
	e.c.Source = 1
	h := r.handlers[m.id]
	if h == nil {
		r.refuse("message with id %d, which has no handler", m.id)
		return false
	}
	r.postponed = false
	h(hw.Source(e.index), m.header, head, payload)
	if r.postponed {
		return false
	}
	r.delivered.Add(1)
	return true
}

// Postpone leaves the message of the handler that calls it in its sender's ring, or in its buffer: what has come behind
// it to the receive queue, of all senders, waits.
func (i *Iface) Postpone() { i.rx.postponed = true }

// control acts on immediate data.
func (r *receiver) control(d *ibv.Done) {
	e := r.from(d.Imm>>immBits, d.QP)
	if e == nil {
		r.refuse("immediate data %#x over queue pair %d", d.Imm, d.QP)
		return
	}
	e.c.Heard = 1
	switch d.Imm & (1<<immBits - 1) {
	case immOpen:
		e.c.Window.Store(0)
	case immClosed:
		e.c.Window.Store(1)
	default:
		r.refuse("immediate data %#x over queue pair %d", d.Imm, d.QP)
	}
}

// from finds the peer that a message names, if it came over that peer's
// connection.
func (r *receiver) from(index, qp uint32) *Endpoint {
	list := *r.i.peers.Load()
	if uint64(index) >= uint64(len(list)) {
		return nil
	}
	e := list[index]
	if e == nil || qp != e.c.QPNums[0] && qp != e.c.QPNums[1] {
		return nil
	}
	return e
}

func (r *receiver) refuse(format string, args ...any) {
	r.malformed.Add(1)
	r.i.logf(format, args...)
}
