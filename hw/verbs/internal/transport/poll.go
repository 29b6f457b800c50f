package transport

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/order"
)

// Polling: receive buffers go back, and what the queues have is staged.

const (
	// refillLeast is how many receive buffers are given back at once; fewer in pools so small that these would be
	// missed.
	refillLeast = 16
	// turns: one poll in so many includes the queues from which only failures can come.
	turns = 8
)

// Staged is how much is staged. For the thread that polls or holds the lease.
func (p *Transport) Staged() int { return int(atomic.LoadUint64(&p.staged)) }

// dealtWith counts down what is staged: at 0 another thread may poll. Lease.
func (p *Transport) dealtWith(n int) {
	if n != 0 {
		order.Store64(&p.staged, p.staged-uint64(n))
	}
}

// tryPoll takes polling, unless another thread polls.
func (p *Transport) tryPoll() bool { return atomic.CompareAndSwapUint32(&p.polling, 0, 1) }

// polled gives it back.
func (p *Transport) polled() { order.Store32(&p.polling, 0) }

// want wants buffers given back and the queues polled. Nothing is staged, and the caller has polling. Queues without a
// completion that was asked for are passed by seven times in eight, unless all of them are to be polled: only failures
// are there.
func (p *Transport) want(c *ibv.Call, all bool) {
	if p.turn++; all || p.turn >= turns {
		p.turn, all = 0, true
	}
	for q, end := range p.ends {
		p.nexts[q] = 0
		switch {
		case end == nil || all || end.signaled.Load() > 0:
			p.counts[q] = ibv.Wanted
		case p.counts[q] > 0: // a broken one stays so
			p.counts[q] = 0
		}
	}
	c.Poll(&p.cqs[0], &p.done[0], p.counts, p.limit)
	if p.freeCount > 0 && p.freeCount >= min(len(p.free)/8, refillLeast) {
		c.Refill(&p.buffers, p.free[:p.freeCount])
	}
}

// stage stages what has come, and takes in how many buffers were taken. False: a queue is broken.
func (p *Transport) stage(c *ibv.Call) bool {
	c.Nothing()
	if n := c.Refilled(); n > 0 {
		copy(p.free, p.free[n:p.freeCount])
		p.freeCount -= n
	}
	return p.count(0)
}

// count counts what the queues from one on have brought as staged. False: one is broken.
func (p *Transport) count(from int) (ok bool) {
	staged, ok := 0, true
	for q := from; q < len(p.counts); q++ {
		n := int(p.counts[q])
		ok = ok && n >= 0
		if n <= 0 {
			continue
		}
		staged += n
		if end := p.ends[q]; end != nil {
			ended := 0
			for k := range p.done[q*p.limit:][:n] {
				if p.done[q*p.limit+k].Status == ibv.StatusOK {
					ended++
				}
			}
			end.signaled.Add(-int64(ended))
		}
	}
	if staged != 0 {
		order.Store64(&p.staged, p.staged+uint64(staged))
	}
	return ok
}

// Poll gives buffers back and stages what all queues have, unless another thread polls or something is staged. empty:
// it has polled, and nothing had arrived. ok: no queue is broken. Any thread.
func (p *Transport) Poll() (polled, empty, ok bool) {
	if p.Staged() != 0 || !p.tryPoll() {
		return false, false, true
	}
	ok = true
	if polled = p.Staged() == 0; polled {
		var c ibv.Call
		p.want(&c, true)
		c.Perform()
		ok = p.stage(&c)
		empty = p.counts[0] <= 0
	}
	p.polled()
	return polled, empty, ok
}

// PollEnds stages what the queues of what was posted have, while arrivals are staged, unless another thread polls or
// has staged some of that. ok: none is broken. Something is staged. Lease.
func (p *Transport) PollEnds() (ok bool) {
	if !p.tryPoll() {
		return true
	}
	ok = true
	if !p.endsStaged() {
		var c ibv.Call
		for q := 1; q < len(p.counts); q++ {
			p.counts[q], p.nexts[q] = ibv.Wanted, 0
		}
		c.Poll(&p.cqs[0], &p.done[0], p.counts, p.limit)
		c.Perform()
		ok = p.count(1)
	}
	p.polled()
	return ok
}

// endsStaged reports whether completions of what was posted are staged. The caller has polling.
func (p *Transport) endsStaged() bool {
	for q := 1; q < len(p.counts); q++ {
		if p.nexts[q] < p.counts[q] {
			return true
		}
	}
	return false
}

// Queues is the number of queues.
func (p *Transport) Queues() int { return len(p.counts) }

// EndStaged ends plain operations with staged completions, of each queue up to one that ends another. Lease.
func (p *Transport) EndStaged() {
	if p.Staged() == 0 { // another thread may poll
		return
	}
	done := 0
	for q := 1; q < len(p.counts); q++ {
		for p.nexts[q] < p.counts[q] && p.endOne(&p.done[q*p.limit+int(p.nexts[q])]) {
			p.nexts[q]++
			done++
		}
	}
	p.dealtWith(done)
}

// endOne ends the plain operations that a completion ends. False: nothing happened.
func (p *Transport) endOne(d *ibv.Done) bool {
	if d.Status != ibv.StatusOK || d.ID>>62 != 0 {
		return false
	}
	peer := p.peer(uint32(d.ID>>40) & IndexMask)
	if peer == nil || !peer.queue.endPlain(d.ID) {
		return false
	}
	peer.Heard = 1
	return true
}

// Ended takes the staged completions of queue k, 1 and up, that are left; valid until Staged says that nothing is
// staged. Lease.
func (p *Transport) Ended(k int) []ibv.Done {
	if p.Staged() == 0 { // another thread may poll
		return nil
	}
	from, to := p.nexts[k], p.counts[k]
	if from >= to {
		return nil
	}
	p.nexts[k] = to
	at := p.done[k*p.limit:]
	return at[from:to:to]
}

// EndedWith says that so many completions of Ended are dealt with. Lease.
func (p *Transport) EndedWith(n int) { p.dealtWith(n) }
