package receive

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Context is a receive context as the holder of its progress lease has it: the receives that are posted, the messages
// that are unexpected, and the endpoints that deliver into it.
type Context struct {
	// Receiver is shared with the data plane. Its Closed says that the eager window is closed, Ended that the one peer
	// is disconnected.
	dataplane.Receiver

	hot     *hot.Rx
	posts   *mpsc.Ring
	sources Sources
	// stats is the block of the first endpoint, nil without one. Written by the lease holder, read by any thread.
	stats *atomic.Pointer[stats.Endpoint]
	owner Owner // of the receives, nil: they are weft's
	lease Lease // of the context, for calls by the owner

	last     uint32 // number of the endpoint that came last
	eps      []*Endpoint
	closures uint64                  // times that the eager window was closed
	head     [wire.AckBytes]byte     // for ACKs
	rts      wire.RTS                // of an unexpected message that is being delivered
	iov      [wire.IOVLimit]fi.IOVec // of a receive of the owner's

	// memoryLogged is when the log said last that messages wait for memory (noMemory).
	memoryLogged time.Time
}

// Parts are what a context uses of the receive context.
type Parts struct {
	Hot     *hot.Rx
	Posts   *mpsc.Ring
	Sources Sources
	// Stats is the block of the first endpoint, nil without one. Written by the lease holder, read by any thread.
	Stats *atomic.Pointer[stats.Endpoint]
}

// Bounds are what unexpected messages may take before the eager window closes.
type Bounds struct {
	Bytes  int // of payload
	Memory int // in all
}

// Init prepares a context. directed says whether the source of untagged and of tagged receives counts.
func (c *Context) Init(b Bounds, directed [2]bool) {
	c.Pool = mem.NewPool(1 << 20)
	c.UnexpectedMax, c.MemoryMax = b.Bytes, b.Memory
	c.Directed = directed
	c.MinMulti.Store(DefaultMinMulti)
}

// Open makes room for receives and messages. Close is to be called after an error, too.
func (c *Context) Open(p *Parts) (err error) {
	c.hot, c.posts, c.sources, c.stats = p.Hot, p.Posts, p.Sources, p.Stats
	if c.Tagged, err = match.New(); err != nil {
		return err
	}
	c.Untagged, err = match.New()
	return err
}

// Close gives the memory back. Nothing uses it any more.
func (c *Context) Close() {
	for _, e := range c.engines() {
		if e != nil {
			_ = e.Close()
		}
	}
	_ = c.Pool.Close()
}

// engines are those of tagged and of other messages.
func (c *Context) engines() [2]*match.Engine { return [2]*match.Engine{c.Tagged, c.Untagged} }

// Attach adds an endpoint and gives it a number.
func (c *Context) Attach(e *Endpoint) {
	c.last = c.last%(1<<24-1) + 1 // as much as match.Message has room for
	e.number = c.last
	c.eps = append(c.eps, e)
	c.Endpoints = len(c.eps)
	if c.Closed {
		e.host.SetWindow(false)
	}
}

// Detach removes an endpoint, and forgets the messages that arrived there.
func (c *Context) Detach(e *Endpoint) {
	for i := range c.eps {
		if c.eps[i] == e {
			c.eps = append(c.eps[:i], c.eps[i+1:]...)
			break
		}
	}
	c.Endpoints = len(c.eps)
	for _, eng := range c.engines() {
		for m := range eng.Messages() {
			if keptEndpoint(m) == e.number {
				eng.RemoveMessage(m)
				c.releaseUnexpected(eng, m)
			}
		}
	}
	c.dropQueued(e)
}

// Has reports whether an endpoint is attached.
func (c *Context) Has(e *Endpoint) bool { return c.byNumber(e.number) == e }

// byNumber returns an endpoint of this context; nil if it was closed.
func (c *Context) byNumber(n uint32) *Endpoint {
	for _, e := range c.eps {
		if e.number == n {
			return e
		}
	}
	return nil
}

// Closures is how often the eager window was closed.
func (c *Context) Closures() uint64 { return c.closures }

// Hold accounts for unexpected payload, and for the memory that it takes with what describes it, and closes the eager
// window when there is too much of either.
func (c *Context) Hold(n, memory int) {
	c.UnexpectedBytes += n
	c.Memory += memory
	c.BytesOver = c.BytesOver || c.UnexpectedBytes > c.UnexpectedMax
	c.MemoryOver = c.MemoryOver || c.Memory > c.MemoryMax
	switch {
	case c.Closed:
	case c.MemoryOver:
		log.Warnf(log.EPData, "unexpected messages take %d bytes (FI_WEFT_UNEXPECTED_MEMORY): senders wait", c.Memory)
		c.setWindow(false)
	case c.BytesOver:
		c.setWindow(false)
	}
}

// Unhold opens the window again at half of the bounds that were exceeded.
func (c *Context) Unhold(n, memory int) {
	c.UnexpectedBytes -= n
	c.Memory -= memory
	c.reopen()
}

// reopen opens the window again if there is room.
func (c *Context) reopen() {
	if c.Reopens() {
		c.setWindow(true)
	}
}

func (c *Context) setWindow(open bool) {
	if !open && !c.Closed {
		c.closures++
	}
	c.Closed = !open
	if open {
		c.BytesOver, c.MemoryOver = false, false
	}
	for _, e := range c.eps {
		e.host.SetWindow(open)
	}
}

// Reclaim is for the end of progress: it opens the window if there is room, and gives memory back.
func (c *Context) Reclaim() {
	c.reopen()
	c.Tagged.Reclaim()
	c.Untagged.Reclaim()
	c.Pool.Reclaim()
}

// memoryLogs is how often the log says that messages wait at their transports, because the process gets no memory to
// keep them as unexpected. They wait until it does, or their receives are posted.
const memoryLogs = 10 * time.Second

// noMemory logs why a message is not kept, unless that was said a while ago, and returns false.
func (c *Context) noMemory(err error) bool {
	if now := time.Now(); now.Sub(c.memoryLogged) >= memoryLogs {
		c.memoryLogged = now
		log.Warnf(log.EPData, "messages wait at their transports: no memory to keep them as unexpected: %v", err)
	}
	return false
}

// keepVector copies a vector into memory of the context's pool, which release frees, and returns its address.
func keepVector(pool *mem.Pool, iov []fi.IOVec) (addr uint64, err error) {
	if addr, err = pool.Get(vector.Bytes(len(iov))); err == nil {
		copy(vector.At(addr, uint64(len(iov))), iov)
	}
	return addr, err
}

// release frees the target's vector, and the owner's entry.
func (c *Context) release(t target.Target) {
	if t.Flags&hot.RecvIOV != 0 {
		c.Pool.Put(t.Buf, vector.Bytes(int(t.Len)))
	}
	if t.Entry != 0 {
		c.owner.Free(t.Entry)
	}
}

// first is the endpoint that reports what has none of its own, nil: there is none.
func (c *Context) first() *Endpoint {
	if len(c.eps) == 0 {
		return nil
	}
	return c.eps[0]
}

// SenderLost drops what is kept of a sender that is gone as one of an endpoint's sources: unexpected rendezvous, and
// the wait for ACKs.
func (c *Context) SenderLost(e *Endpoint, src hw.Source) {
	for _, eng := range c.engines() {
		for m := range eng.Messages() {
			switch {
			case keptEndpoint(m) != e.number || keptSource(m) != src:
			case m.Flags&msgRTS != 0:
				eng.RemoveMessage(m)
				c.releaseUnexpected(eng, m)
			default:
				m.Flags &^= msgSync // no sender waits for it any more
			}
		}
	}
}

// PeerLost ends the receives that name a lost peer as their source.
func (c *Context) PeerLost(id uint32) {
	for _, eng := range c.engines() {
		for rv := range eng.Recvs() {
			if rv.Source() == id {
				eng.Remove(rv)
				c.drop(eng, rv, fi.ECONNRESET)
			}
		}
	}
}

// CancelAll ends the posted receives, for which nothing can come any more.
func (c *Context) CancelAll() {
	for _, eng := range c.engines() {
		for rv := range eng.Recvs() {
			eng.Remove(rv)
			c.drop(eng, rv, fi.ECANCELED)
		}
	}
}

// UnexpectedFrom reports whether messages of an identity are unexpected.
func (c *Context) UnexpectedFrom(id uint32) bool {
	for _, eng := range c.engines() {
		for m := range eng.Messages() {
			if m.Source() == id {
				return true
			}
		}
	}
	return false
}

// AddKnown adds the identities that receives and unexpected messages name.
func (c *Context) AddKnown(known map[uint32]bool) {
	for _, eng := range c.engines() {
		for rv := range eng.Recvs() {
			known[rv.Source()] = true
		}
		for m := range eng.Messages() {
			known[m.Source()] = true
		}
	}
}

// Merge makes the receives from an alias receives from the peer.
func (c *Context) Merge(alias, peer uint32) {
	for _, eng := range c.engines() {
		eng.Rename(alias, peer)
		for c.rematch(eng, peer) {
		}
	}
}

// rematch delivers one unexpected message of a peer for which a receive was renamed,
// and reports whether there was one. There are unexpected messages only if the peer had
// another socket of this name before.
func (c *Context) rematch(eng *match.Engine, peer uint32) bool {
	for m := range eng.Messages() {
		if m.Source() != peer || m.Claimed() {
			continue
		}
		rv := eng.Arrive(peer, m.Tag())
		if rv == nil {
			continue
		}
		eng.RemoveMessage(m)
		if rv.Kept() {
			c.deliverUnexpectedMulti(eng, rv, m)
			return true
		}
		t := targetIn(rv)
		eng.Release(rv)
		c.deliverUnexpected(eng, t, m)
		return true
	}
	return false
}
