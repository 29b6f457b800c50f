package transport

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/hot"
)

// Corking: messages in a row to one peer that stay ready, to go in one packet with those behind them (join.go).

// Row is so many messages in a row that go at once; those behind them may be corked.
const Row = 8

// fills reports whether a message of n bytes is the last for which there is room in a packet with those that are
// corked, if the next one is as long.
func (p *Peer) fills(first bool, n uint32) bool {
	own := aligned(n)
	if first {
		p.corked = 0
	}
	p.corked += own
	if p.corked+own <= p.queue.JoinBytes {
		return false
	}
	p.corked = 0
	return true
}

// holds reports whether a message of n bytes that is ready is corked. Of one peer at a time some are: before is the one
// of which others are and must be sent now, nil: none.
func (p *Peer) holds(hold uint8, n uint32) (corks bool, before *SendQueue) {
	v := p.transport
	own := uint32(p.queue.ID>>40)&IndexMask + 1
	if hold == hot.HoldNever || p.queue.JoinBytes == 0 || uint64(own) > uint64(len(v.peers)) {
		return false, nil
	}
	if poll := atomic.LoadUint32(&v.polls); p.poll != poll {
		p.poll, p.row = poll, 0
	}
	if p.row < Row && hold != hot.HoldMore {
		p.row++
		return false, nil
	}
	if p.fills(v.corked.Load() != own, n) {
		return false, nil
	}
	if was := v.corked.Swap(own); was != own {
		before = v.corkedOf(was)
	}
	return true, before
}

// corkedOf is the queue of the peer with a number plus one, nil: there is none.
func (p *Transport) corkedOf(number uint32) *SendQueue {
	if number == 0 {
		return nil
	}
	if peer := p.peer(number - 1); peer != nil {
		return peer.queue
	}
	return nil
}

// uncork takes the queue of which messages are corked, nil: there is none. The caller posts it. What finds no room
// in the completion queue is the runtime's. The caller holds the lease, or says that it posts (hot.EpochReader), or
// no other thread posts or polls.
func (p *Transport) uncork() *SendQueue {
	if p.corked.Load() == 0 {
		return nil
	}
	return p.corkedOf(p.corked.Swap(0))
}

// Flush sends the corked messages. The caller is as for uncork.
func (p *Transport) Flush() {
	if q := p.uncork(); q != nil {
		q.Post()
	}
}

// flush is Flush as far as the device is not needed. True: c wants something of it, and what comes then is next.
func (p *Transport) flush(c *ibv.Call, next then) bool { return p.queuePosts(p.uncork(), c, next) }

// queuePosts has a queue, nil: none, post what is ready.
func (p *Transport) queuePosts(q *SendQueue, c *ibv.Call, next then) (posting bool) {
	if q == nil {
		return false
	}
	if posting, _ = q.begin(c); posting {
		c.Keep(uint64(next), q.address())
	}
	return posting
}
