package verbs

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
)

// receiver is the consumer's state. It belongs to the lease holder, but for
// what is marked.
type receiver struct {
	i         *Iface
	handlers  [hw.MaxAM]hw.Handler
	onPeer    func(hw.PeerEvent)
	transport *transport.Transport // the data plane's: polling, what was polled, and the buffers to be given back
	cqs       []*ibv.CQ            // immutable: for arrivals, then sendCQs
	fresh     bool                 // this Progress has delivered messages: its caller may still ask for their sources
	empty     bool                 // drained, as upkeep asked before it served endpoints

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

// openTransport makes the transport; all buffers go to the shared receive queue with the
// first poll. Errors: those of mmap.
func (r *receiver) openTransport() error {
	i := r.i
	r.cqs = []*ibv.CQ{i.recvCQ}
	var ends []*transport.SendCQ
	for _, q := range i.sendCQs {
		r.cqs, ends = append(r.cqs, q.cq), append(ends, q.SendCQ)
	}
	p, err := transport.New(transport.Config{SRQ: i.srq, Base: i.first, BufferBytes: i.stride, Buffers: i.cfg.RxBuffers,
		LKey: i.mr.LKey, Queues: r.cqs, Ends: ends, Max: pollBatch, Peers: maxPeers, Direct: i.cfg.Direct})
	if err != nil {
		return err
	}
	r.transport = p
	r.poll()
	return nil
}

// poll gives buffers back and stages what the queues have, unless another
// thread polls or something is staged. It reports whether it has polled.
func (r *receiver) poll() bool {
	polled, _, ok := r.transport.Poll()
	if !ok {
		r.i.deviceLost(errQueue)
	}
	return polled
}

// pollEnds completes what was posted while arrivals wait behind the limit, and returns how many operations completed.
// Something is staged.
func (r *receiver) pollEnds() int {
	if !r.transport.PollEnds() {
		r.i.deviceLost(errQueue)
	}
	return r.complete()
}

// errQueue is why all connections end when a completion queue cannot be polled.
var errQueue = errors.New("verbs: a completion queue is broken")

// drained polls, and reports whether everything that has come was dealt with. It cannot say so while another thread
// polls: that one may have taken a message from the device that is not staged yet.
func (r *receiver) drained() bool {
	_, empty, ok := r.transport.Poll()
	if !ok {
		r.i.deviceLost(errQueue)
	}
	return empty
}

// drop passes by what has arrived.
func (r *receiver) drop() {
	for r.transport.Arrival() != nil {
		r.transport.Drop()
	}
}

// notifyPoll has C leave the next poll of the interface to Go. Any thread, after it has
// said why.
func (i *Iface) notifyPoll() {
	if p := i.rx.transport; p != nil {
		p.Calls.Or(transport.CallGo)
	}
}

// wantSignals has the lease holder make operations signaled, because
// places or buffers are short or a thread waits for their ends. Any thread.
func (i *Iface) wantSignals() {
	i.signalsDue.Store(true)
	i.notifyPoll()
}

// notified reports whether Progress has more to do than to poll.
func (i *Iface) notified() bool {
	return i.signalsDue.Load() || i.anyTodo.Load() || i.flushes.Any()
}

// Progress delivers up to limit arrived messages and completes operations.
func (i *Iface) Progress(limit int) int {
	r := &i.rx
	if i.closed.Load() {
		return 0
	}
	// before what was stored with it is read
	if r.transport.Calls.Load() != 0 && r.transport.Calls.Swap(0)&transport.CallPost != 0 {
		i.signalsDue.Store(true)
	}
	r.transport.Flush()
	r.poll()
	r.turn++
	n := r.takeRings(limit/2 + limit&r.turn&1)
	stuck := false // behind a message that is postponed
	for r.transport.Staged() != 0 {
		n += r.complete()
		var got int
		got, stuck = r.takeArrivals(limit - n)
		if n += got; stuck || n >= limit || r.transport.Staged() != 0 {
			break
		}
		r.poll()
	}
	if n < limit {
		n += r.takeRings(limit - n) // what the others have left
	}
	if (stuck || n >= limit) && r.transport.Staged() != 0 {
		n += r.pollEnds()
	}
	if i.signalsDue.Load() || i.anyTodo.Load() {
		r.fresh = n > 0
		i.upkeep()
	}
	n += i.flushes.Complete()
	if i.notified() {
		i.notifyPoll()
	}
	return n
}

// takeArrivals delivers staged arrivals up to limit messages and returns how many there were. stuck: the first one
// that is left was postponed. What is no message counts as none; no peer has the device bring more of it than
// there are buffers.
func (r *receiver) takeArrivals(limit int) (n int, stuck bool) {
	var m hot.TransportMessage
	for d := r.transport.Arrival(); d != nil && (n < limit || d.Opcode != ibv.DoneRecv); d = r.transport.Arrival() {
		if r.transport.FindArrived(&m) != hot.TransportArrival {
			r.pass(d)
			n += btoi(r.transport.InRing()) // a peer that writes what it must not does so at the price of messages
			continue
		}
		var delivered bool
		if delivered, stuck = r.deliver(&m); stuck {
			return n, true
		}
		n += btoi(delivered)
	}
	return n, false
}

// complete deals with the staged completions of what was posted and returns how
// many operations of callers completed.
func (r *receiver) complete() int {
	n := 0
	r.clock = reading{} // a new batch
	r.transport.EndStaged()
	for k := 1; k < r.transport.Queues(); k++ {
		list := r.transport.Ended(k)
		for j := range list {
			n += r.i.ended(&list[j])
		}
		r.transport.EndedWith(len(list))
	}
	return n
}

// pass deals with what the transport has found that is no message, or none that comes next from its sender: of the
// first staged arrival, or in a ring.
func (r *receiver) pass(d *ibv.Done) {
	if r.transport.InRing() {
		r.passRing()
		return
	}
	b, ok := r.transport.Left(d)
	if !ok {
		if d.Status == ibv.StatusOK && d.Opcode == ibv.DoneRecvImm {
			r.control(d)
		}
		r.transport.Drop() // flushed with its queue pair
		return
	}
	h, next, ok := transport.Parse(b)
	switch index := h.Index & transport.IndexMask; {
	case !ok:
		r.refuse("message of %d bytes with header %x", len(b), b[:min(len(b), transport.HeaderBytes)])
		next = 0
	case r.from(index, d.QP) == nil:
		r.refuse("message with index %d over queue pair %d", index, d.QP)
	} // else it came already, over the former connection
	if next > 0 {
		r.transport.Skip(next)
		return
	}
	r.transport.Drop()
}

// deliver gives the message that the transport has found to its handler. stuck: that has postponed it.
func (r *receiver) deliver(m *hot.TransportMessage) (delivered, stuck bool) {
	h := r.handlers[m.ID]
	if h == nil {
		r.refuse("message with id %d, which has no handler", m.ID)
		r.transport.Take()
		return false, false
	}
	r.postponed = false
	head, payload := transport.Content(m)
	h(hw.Source(m.Source), m.Header, head, payload)
	if r.postponed {
		return false, true
	}
	r.transport.Take()
	r.delivered.Add(1)
	return true, false
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
	if e == nil || !e.c.Has(qp) {
		return nil
	}
	return e
}

// btoi is 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *receiver) refuse(format string, args ...any) {
	r.malformed.Add(1)
	r.i.logf(format, args...)
}
