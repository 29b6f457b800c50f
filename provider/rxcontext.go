package provider

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/tables"
)

// rxContext is a receive context: the queue of posted receives, the matching
// of arrivals with them, and the progress of the endpoints that deliver into
// it (one, or several for a shared receive context).
//
// What is here is for any thread. All else is leasedRx, behind the progress lease, a word in hot that C and Go take
// with one compare-and-swap. Posting a receive is a push on the ring and needs no lease.
type rxContext struct {
	hot   *hot.Rx
	posts *mpsc.Ring
	table tables.Rx // memory of hot and the ring

	domain *Domain // immutable
	cfg    *config.Config
	attr   fi.RxAttr
	handle uint64 // of C's table
	// leased is what the progress lease guards.
	leased lease.Guarded[leasedRx]
	// minMulti and urgent are Receiver.MinMulti and Receiver.Urgent.
	minMulti *atomic.Uint64
	urgent   *atomic.Int32

	// deferred counts the operations on the context and its endpoints whose
	// counters have reached their thresholds and that are not posted.
	deferred deferred.Backlog

	thread *progressThread            // that drives it, nil: none; under progressThreads.mu
	bell   atomic.Pointer[proxy.Bell] // the thread's; set once, when the first endpoint is enabled
	// offload: the thread does what is on the active list (hybrid progress).
	// Written before the context is used.
	offload bool
	// copies shows the thread that something is. Written by the lease holder.
	copies atomic.Bool
	// stats is the block of the first endpoint, nil without one. Written by the
	// lease holder, read by any thread.
	stats atomic.Pointer[stats.Endpoint]
	// ends asks progress to check for peers that are gone. Set by any thread, cleared by the lease holder;
	// sequentially consistent.
	ends     atomic.Bool
	sleepers sleepers
	owner    PeerOwner // of the receives, nil: they are weft's; set before endpoints use the context
}

// leasedRx is a receive context as the holder of its progress lease has it: rendezvous under way, on top of what
// matching needs.
type leasedRx struct {
	receiving

	rendezvous rendezvous.Receiver
	lastCheck  time.Time
	lastTimers time.Time // when advance ran the timers
	advances   uint32    // counts calls of advance
}

func newRxContext(d *Domain, attr *fi.RxAttr, exclusive bool) (*rxContext, error) {
	slots := 64
	for slots < int(attr.Size) && slots < 1<<16 {
		slots *= 2
	}
	flags := uint32(0)
	if exclusive {
		flags |= hot.RxExclusive
	}
	if attr.Caps&fi.ExactDirectedRecv != 0 {
		flags |= hot.RxExact
	}
	r := &leasedRx{
		receiving: receiving{
			base: rxContext{domain: d, cfg: d.cfg, attr: *attr},
		},
	}
	r.ids.Changed, r.ids.Stale = r.identityChanged, func() { clear(r.addrIDs) }
	r.matching.Pool = mem.NewPool(1 << 20)
	r.matching.UnexpectedMax, r.matching.MemoryMax = d.cfg.UnexpectedBytes, d.cfg.UnexpectedMemory
	r.matching.Directed = [2]bool{info.Directed(attr.Caps, false), info.Directed(attr.Caps, true)}
	var err error
	if r.base.table, err = tables.OpenRx(log2(slots), exclusive); err != nil {
		return nil, err
	}
	r.base.hot = r.base.table.Table()
	r.base.hot.Flags, r.base.hot.OpFlags, r.base.hot.Rest = flags, attr.OpFlags, restMillis(d.cfg.PeerCheckInterval)
	word := &r.base.hot.Lease
	if exclusive {
		word = nil
	}
	r.base.leased, r.base.minMulti, r.base.urgent = lease.Guard(word, r), &r.matching.MinMulti, &r.matching.Urgent
	r.matching.MinMulti.Store(defaultMinMultiRecv)
	r.base.deferred.Notify = func() {
		r.base.notifyPoll()
		r.base.ring()
	}
	head, first := r.base.table.Ring()
	view := mpsc.NewView(first, head, log2(slots), hot.CacheLine)
	r.base.hot.Posts = view.Hot()
	r.base.posts = mpsc.View(&r.base.hot.Posts)
	if err := r.openEngines(); err != nil {
		r.base.close()
		return nil, err
	}
	r.base.hot.Receiver = r.matching.Address()
	return &r.base, nil
}

func (r *leasedRx) openEngines() (err error) {
	if r.matching.Tagged, err = match.New(); err != nil {
		return err
	}
	if r.matching.Untagged, err = match.New(); err != nil {
		return err
	}
	return r.rendezvous.Open()
}

// close gives the memory back. The context has no user any more, but for late
// readers of an endpoint's queues.
func (r *rxContext) close() {
	l := r.acquire()
	l.dead = true
	l.give()
	l.free()
}

// free frees the memory of a context that is closed.
func (r *leasedRx) free() {
	for _, e := range []*match.Engine{r.matching.Tagged, r.matching.Untagged} {
		if e != nil {
			_ = e.Close()
		}
	}
	r.rendezvous.Close()
	_ = r.matching.Pool.Close()
	r.base.table.Close()
}

// take takes the progress lease, and returns nil if another thread has it.
func (r *rxContext) take() *leasedRx { return r.leased.Take() }

// acquire takes the progress lease, waiting for its holder. Control path only.
func (r *rxContext) acquire() *leasedRx { return r.leased.Wait() }

// give gives the progress lease that take or acquire has taken.
func (r *receiving) give() { r.base.leased.Give() }

// progress does what there is to do: posted receives for which a message may be
// unexpected first, then arrivals, then what waited for room.
func (r *leasedRx) progress() {
	unexpected := r.matching.UnexpectedMessages()
	r.drainWanted()
	r.proceed(r.matching.Posted() != 0 || r.matching.UnexpectedMessages() >= unexpected)
}

// proceed is progress after the posted receives: arrivals, ends of peers, operations under way, what waits for room.
// Without local, what has arrived from this host stays on the rings: no receive is posted and the application has just
// taken an unexpected message, or only the timers are due. An application that posts a receive for each message and
// falls behind its sender would otherwise find every message unexpected, and none delivered from the rings by the data
// plane. What is on the rings waits for as many receives as there are unexpected messages, or for a poll without a new
// receive.
func (r *leasedRx) proceed(local bool) {
	r.reportInsertions()
	for _, e := range r.eps {
		if local {
			e.arrivals(r.base.cfg.ProgressBatch)
		} else {
			e.networkArrivals(r.base.cfg.ProgressBatch)
		}
	}
	if r.recheck || r.base.ends.Load() {
		r.checkPeers()
	}
	if r.pending() {
		r.out.Flush()
		if !r.base.offload {
			r.rendezvous.Step()
		}
		for _, e := range r.eps {
			e.ep.protocols.pump()
		}
	}
	r.publish()
}

// pending reports whether there is work that no ring shows.
func (r *leasedRx) pending() bool {
	if r.rendezvous.Active() && !r.base.offload || r.out.Len() != 0 || !r.base.deferred.Empty() || r.base.ends.Load() {
		return true
	}
	for _, e := range r.eps {
		if e.ep.protocols.busy() {
			return true
		}
	}
	return false
}

// busy reports whether polls enter Go without an arrival on a ring: for work that is pending, or for transports that
// only Go polls.
func (r *leasedRx) busy() bool {
	if r.pending() {
		return true
	}
	for _, e := range r.eps {
		if e.ep.base.transports.onNetwork() {
			return true
		}
	}
	return false
}

// onNetwork reports whether there was traffic with other hosts a moment ago: the
// answer to what was sent is worth polling for.
func (r *receiving) onNetwork() bool {
	for _, e := range r.eps {
		if e.ep.base.transports.watched() {
			return true
		}
	}
	return false
}

// calledFor reports whether other threads have left something to progress.
func (r *receiving) calledFor() bool {
	if !r.base.deferred.Empty() || r.base.ends.Load() {
		return true
	}
	for _, e := range r.eps {
		if e.ep.protocols.requested() || e.ep.base.transports.onNetwork() {
			return true
		}
	}
	return false
}

// notifyPoll has the next poll enter Go. What it is to do there is stored before, where calledFor finds it. Any thread.
func (r *rxContext) notifyPoll() { atomic.OrUint32(&r.hot.Attention, hot.AttentionGo) }

// publish sets hot.Rx.Attention, by which polls enter Go, or poll transports, without an arrival on a ring.
func (r *leasedRx) publish() {
	attention := uint32(0)
	if r.busy() {
		attention |= hot.AttentionGo
	}
	if r.transportPolled() {
		attention |= hot.AttentionTransports
	}
	if atomic.LoadUint32(&r.base.hot.Attention) != attention {
		atomic.StoreUint32(&r.base.hot.Attention, attention)
		// notifyPoll or network.notify may have come between: calledFor and transportPolled find what they are for
		more := uint32(0)
		if r.calledFor() {
			more |= hot.AttentionGo
		}
		if r.transportPolled() {
			more |= hot.AttentionTransports
		}
		if more&^attention != 0 {
			attention |= more
			atomic.OrUint32(&r.base.hot.Attention, more)
		}
		if attention != 0 {
			r.base.ring()
		}
	}
	if copies := r.base.offload && r.rendezvous.Active(); copies != r.base.copies.Load() {
		r.base.copies.Store(copies)
		if copies {
			r.base.ring()
		}
	}
	if r.matching.Reopens() {
		r.setWindow(true)
	}
	r.matching.Tagged.Reclaim()
	r.matching.Untagged.Reclaim()
	r.matching.Pool.Reclaim()
	r.countQueues(r.matching.Posted(), r.matching.UnexpectedMessages())
	r.matching.PublishWant(r.base.hot)
}

// housekeeping runs the timers.
func (r *leasedRx) housekeeping() {
	r.drainWanted()
	r.proceed(r.matching.Posted() != 0 || r.base.posts.Ready(r.base.hot.PostsHead))
	r.sample()
	now := time.Now()
	if now.Sub(r.lastCheck) < r.base.cfg.PeerCheckInterval {
		return
	}
	r.lastCheck = now
	r.checkPeers()
	for _, e := range r.eps {
		e.sweepLinks()
	}
	r.sweepIDs()
	r.publish()
}

// find takes the receive for a message out of matching, nil if there is none.
// Those on the post ring are younger than those in matching. No more of them are
// moved into matching than it takes to find one, because a receive at the head of
// the ring costs the data plane least (Receiver.Accept). A search or cancel there
// comes after the message and is left to the next progress: a search takes in
// arrivals, and the caller is a handler of one.
func (r *leasedRx) find(eng *match.Engine, source uint32, tag uint64) *match.Recv {
	rv := eng.Arrive(source, tag)
	for rv == nil && r.takePost(dataplane.UrgentRecv) {
		rv = eng.Arrive(source, tag)
	}
	return rv
}

// drainWanted takes what is posted off the ring if it is wanted before an arrival.
func (r *leasedRx) drainWanted() {
	if atomic.LoadUint32(&r.base.hot.WantPosts) != 0 {
		r.drainPosts(0)
	}
}

// drainPosts takes what is posted off the ring, and does it, up to what has one of
// some flags. Handlers leave searches (dataplane.UrgentRecv).
func (r *leasedRx) drainPosts(but uint64) {
	for r.takePost(but) {
	}
}

// takePost takes the oldest of what is posted off the ring unless it has one of some
// flags, and reports whether it has.
func (r *leasedRx) takePost(but uint64) bool {
	pos := r.base.hot.PostsHead
	if !r.base.posts.Ready(pos) {
		return false
	}
	slot := (*hot.RecvEntry)(r.base.posts.Slot(pos))
	if slot.Flags&but != 0 {
		return false
	}
	if r.queue(slot) {
		r.base.posts.Release(pos)
		order.Store64(&r.base.hot.PostsHead, pos+1)
		return true
	}
	entry := *slot
	r.base.posts.Release(pos)
	order.Store64(&r.base.hot.PostsHead, pos+1)
	if entry.Flags&dataplane.UrgentRecv != 0 {
		r.matching.Urgent.Add(-1)
	}
	r.post(&entry)
	return true
}

// queue queues a receive straight from its slot on the ring. It reports
// false, and has done nothing, when an unexpected message may be for it.
func (r *receiving) queue(slot *hot.RecvEntry) bool {
	return r.matching.Engine(slot.Flags&hot.RecvTagged != 0).Unexpected() == 0 && r.matching.Enqueue(slot)
}

// hold accounts for unexpected payload, and for the memory that it takes with what describes it, and closes the eager
// window when there is too much of either.
func (r *receiving) hold(n, memory int) {
	r.matching.UnexpectedBytes += n
	r.matching.Memory += memory
	r.matching.BytesOver = r.matching.BytesOver || r.matching.UnexpectedBytes > r.matching.UnexpectedMax
	r.matching.MemoryOver = r.matching.MemoryOver || r.matching.Memory > r.matching.MemoryMax
	switch {
	case r.matching.Closed:
	case r.matching.MemoryOver:
		log.Warnf(log.EPData, "unexpected messages take %d bytes (FI_WEFT_UNEXPECTED_MEMORY): senders wait",
			r.matching.Memory)
		r.setWindow(false)
	case r.matching.BytesOver:
		r.setWindow(false)
	}
}

// unhold opens the window again at half of the bounds that were exceeded.
func (r *receiving) unhold(n, memory int) {
	r.matching.UnexpectedBytes -= n
	r.matching.Memory -= memory
	if r.matching.Reopens() {
		r.setWindow(true)
	}
}

func (r *receiving) setWindow(open bool) {
	if !open && !r.matching.Closed {
		r.closures++
	}
	r.matching.Closed = !open
	if open {
		r.matching.BytesOver, r.matching.MemoryOver = false, false
	}
	for _, e := range r.eps {
		e.ep.base.links.Transports().SetEagerWindow(open)
	}
}

// ring wakes the progress thread, if there is one and it sleeps, after work was
// published that no doorbell rings for.
func (r *rxContext) ring() {
	if b := r.bell.Load(); b != nil {
		b.RingAsleep()
	}
}

// Ring does so after C has posted a receive. A search for which a thread sleeps is made at once.
func (r *rxContext) Ring() {
	if r.urgent.Load() != 0 {
		r.actUrgent()
	} else {
		r.ring()
	}
}
