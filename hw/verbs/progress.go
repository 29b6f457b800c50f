package verbs

import (
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
	poller   *ibv.Poller // under polling
	cqs      []*ibv.CQ   // immutable: for arrivals, then sendCQs

	// polling is 1 while a thread polls: the lease holder, or one that asks
	// whether there is something. Taken by compare-and-swap (acquire), given
	// back by store (release).
	polling atomic.Uint32
	// staged counts arrivals and completions that were polled and are not
	// dealt with. Stored by who polls, under polling, and by the lease holder.
	staged atomic.Int64

	arrivals []ibv.Done   // staged; the lease holder's while staged is not 0
	ended    [][]ibv.Done // staged, for each of sendCQs
	free     []uint32     // receive buffers to be given back; who polls, and the lease holder while staged is not 0
	fresh    bool         // this Progress has delivered messages, whose sources its caller may look at
	empty    bool         // the receive queue was found empty by the last poll

	kept     uint32          // buffers that handlers keep; as free
	keeping  bool            // the message being delivered is to be kept
	current  uint32          // its buffer
	inside   bool            // a handler runs
	returned atomic.Uint64   // list of released buffers: number plus one of the first; pushed by any thread, taken whole by the lease holder
	nextBack []atomic.Uint32 // its links
	stamp    uint64          // of the message being delivered

	delivered, malformed, lost atomic.Uint64
}

func (r *receiver) init(i *Iface) {
	r.i = i
	r.onPeer = func(hw.PeerEvent) {}
}

// openPoller makes the poller; all buffers go to the shared receive queue with
// the first poll.
func (r *receiver) openPoller() {
	i := r.i
	r.cqs = []*ibv.CQ{i.recvCQ}
	for _, q := range i.sendCQs {
		r.cqs = append(r.cqs, q.cq)
	}
	r.poller = ibv.NewPoller(i.srq, i.first, i.stride, i.stride, i.mr.LKey, r.cqs, pollBatch)
	r.free = make([]uint32, i.cfg.RxBuffers)
	for n := range r.free {
		r.free[n] = uint32(n)
	}
	r.nextBack = make([]atomic.Uint32, i.cfg.RxBuffers)
	r.ended = make([][]ibv.Done, len(i.sendCQs))
	r.poll()
}

// poll gives buffers back and stages what the queues have, unless another
// thread polls or something is staged.
func (r *receiver) poll() {
	if r.staged.Load() != 0 || !r.polling.CompareAndSwap(0, 1) {
		return
	}
	if r.staged.Load() == 0 {
		r.takeReturned()
		r.pollLocked()
	}
	r.polling.Store(0)
}

func (r *receiver) pollLocked() {
	taken := r.poller.Cycle(r.free)
	r.free = r.free[:copy(r.free, r.free[taken:])]
	var err error
	if r.arrivals, err = r.poller.Done(0); err != nil {
		r.i.deviceLost(err)
	}
	r.empty = len(r.arrivals) == 0
	n := len(r.arrivals)
	for k := range r.ended {
		if r.ended[k], err = r.poller.Done(1 + k); err != nil {
			r.i.deviceLost(err)
		}
		n += len(r.ended[k])
	}
	r.staged.Store(int64(n))
}

// drained tells whether everything that came was dealt with when the queues
// were last polled.
func (r *receiver) drained() bool { return r.empty && len(r.arrivals) == 0 }

// Progress delivers up to max arrived messages and completes operations.
func (i *Iface) Progress(max int) int {
	r := &i.rx
	if i.closed.Load() {
		return 0
	}
	r.poll()
	n := 0
	for r.staged.Load() != 0 {
		n += r.complete()
		for len(r.arrivals) > 0 && (n < max || r.arrivals[0].Opcode != ibv.DoneRecv) {
			d := &r.arrivals[0]
			r.arrivals = r.arrivals[1:]
			if r.arrive(d) {
				n++
			}
			r.staged.Add(-1) // last: now another thread may poll
		}
		if n >= max || r.staged.Load() != 0 {
			break
		}
		r.poll()
	}
	if i.nudge.Load() || i.anyTodo.Load() {
		r.fresh = n > 0
		i.upkeep()
	}
	if i.flushes.count.Load() != 0 {
		n += i.tellFlushes()
	}
	return n
}

// complete deals with the staged completions of what was posted and returns how
// many operations' completions were told.
func (r *receiver) complete() int {
	told := 0
	for k, list := range r.ended {
		if len(list) == 0 {
			continue
		}
		r.ended[k] = nil
		for j := range list {
			told += r.i.ended(&list[j])
		}
		r.staged.Add(-int64(len(list)))
	}
	return told
}

// arrive delivers one arrival and tells whether it was a message.
func (r *receiver) arrive(d *ibv.Done) bool {
	buffer := uint32(d.ID)
	if d.ID >= uint64(len(r.nextBack)) { // of a queue pair's own, which there are none of
		return false
	}
	r.current, r.keeping, r.stamp = buffer, false, d.Stamp
	delivered := false
	switch {
	case d.Status != ibv.StatusOK: // flushed with its queue pair
	case d.Opcode == ibv.DoneRecvImm:
		r.control(d)
	case d.Opcode == ibv.DoneRecv:
		delivered = r.deliver(r.i.rxBuffer(buffer)[:min(int(d.Bytes), r.i.stride)], d.QP)
	}
	if !r.keeping {
		r.free = append(r.free, buffer)
	}
	return delivered
}

// deliver gives a message to its handler. Its bytes were written by the peer's
// device before it was told, so nobody changes them any more.
func (r *receiver) deliver(b []byte, qp uint32) bool {
	m, ok := parseMessage(b)
	if !ok {
		r.refuse("message of %d bytes with header %x", len(b), b[:min(len(b), headerBytes)])
		return false
	}
	e := r.from(m.index, qp)
	if e == nil {
		r.refuse("message with index %d over queue pair %d", m.index, qp)
		return false
	}
	if int32(m.seq-e.lease.lastSeq) <= 0 {
		return false // it came already, over the former connection
	}
	e.lease.lastSeq, e.lease.heard = m.seq, true
	head, payload := b[headerBytes:headerBytes+int(m.headLen)], b[headerBytes+int(m.headLen):]
	switch m.kind {
	case kindRequest:
		r.perform(e, &m, payload)
		return false
	case kindReply:
		return r.replied(e, &m, payload) > 0
	}
	e.lease.hasSource = true
	h := r.handlers[m.id]
	if h == nil {
		r.refuse("message with id %d, which nobody handles", m.id)
		return false
	}
	r.delivered.Add(1)
	if r.i.tracer != nil {
		r.i.trace(hw.TraceReceive, hw.AMID(m.id), m.header, head, payload)
	}
	r.inside = true
	h(hw.Source(e.index), m.header, head, payload)
	r.inside = false
	return true
}

// control acts on immediate data.
func (r *receiver) control(d *ibv.Done) {
	e := r.from(d.Imm>>immBits, d.QP)
	if e == nil {
		r.refuse("immediate data %#x over queue pair %d", d.Imm, d.QP)
		return
	}
	e.lease.heard = true
	switch d.Imm & (1<<immBits - 1) {
	case immOpen:
		e.window.Store(0)
	case immClosed:
		e.window.Store(1)
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
	if e == nil || qp != e.lease.qpNums[0] && qp != e.lease.qpNums[1] {
		return nil
	}
	return e
}

func (r *receiver) refuse(format string, args ...any) {
	r.malformed.Add(1)
	r.i.logf(format, args...)
}

// Keep leaves the message that is being delivered valid until Release.
func (i *Iface) Keep() (hw.Kept, bool) {
	r := &i.rx
	if !r.inside || r.keeping || int(r.kept) >= i.cfg.RxBuffers/2 {
		return 0, false
	}
	r.keeping = true
	r.kept++
	return hw.Kept(r.current) + 1, true
}

// Release gives a kept message's memory back, from any thread.
func (i *Iface) Release(k hw.Kept) {
	r := &i.rx
	if k == 0 || uint64(k) > uint64(len(r.nextBack)) {
		return
	}
	for {
		first := r.returned.Load()
		r.nextBack[k-1].Store(uint32(first))
		if r.returned.CompareAndSwap(first, uint64(k)) {
			return
		}
	}
}

// LastStamp is the device's clock when the message that is being delivered
// arrived, in ticks of ClockKHz, for handlers. 0 unless Config.Stamps asked for
// it and the device has a clock.
func (i *Iface) LastStamp() uint64 { return i.rx.stamp }

// ClockKHz is the frequency of the device's clock, 0 if it has none.
func (d *MemoryDomain) ClockKHz() uint64 { return d.attr.ClockKHz }

// takeReturned collects released buffers. The caller polls.
func (r *receiver) takeReturned() {
	if r.returned.Load() == 0 {
		return
	}
	for k := r.returned.Swap(0); k != 0; k = uint64(r.nextBack[k-1].Load()) {
		r.free = append(r.free, uint32(k-1))
		r.kept--
	}
}
