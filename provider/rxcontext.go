package provider

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/receive"
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
	// minMulti is Receiver.MinMulti.
	minMulti *atomic.Uint64
	receives receive.Posts // to leased's

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
	r.matching.Init(receive.Bounds{Bytes: d.cfg.UnexpectedBytes, Memory: d.cfg.UnexpectedMemory},
		[2]bool{info.Directed(attr.Caps, false), info.Directed(attr.Caps, true)})
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
	r.base.leased, r.base.minMulti = lease.Guard(word, r), &r.matching.MinMulti
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
	if err = r.matching.Open(&receive.Parts{
		Hot: r.base.hot, Posts: r.base.posts, Sources: r, Stats: &r.base.stats,
	}); err != nil {
		return err
	}
	r.base.receives.Open(&r.matching, receive.Rules{Caps: r.base.attr.Caps, Keyed: r.base.domain.Keyed()},
		receivePosting{&r.base})
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
	r.matching.Close()
	r.rendezvous.Close()
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
	r.matching.DrainWanted()
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
			e.arrivals(r.base.cfg.ProgressBatch, false)
		} else {
			e.networkArrivals(r.base.cfg.ProgressBatch)
		}
	}
	if r.recheck || r.base.ends.Load() {
		r.checkPeers()
	}
	pending := r.pending()
	if pending {
		r.out.Flush()
		if !r.base.offload {
			r.rendezvous.Step()
		}
		for _, e := range r.eps {
			e.ep.protocols.pump()
		}
		pending = r.pending()
	}
	r.publishWork(pending)
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

// goPolled reports whether polls enter Go for transports that only Go polls.
func (r *receiving) goPolled() bool {
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
		if e.ep.protocols.requested() {
			return true
		}
	}
	return r.goPolled()
}

// notifyPoll has the next poll enter Go. What it is to do there is stored before, where calledFor finds it. Any thread.
func (r *rxContext) notifyPoll() { atomic.OrUint32(&r.hot.Attention, hot.AttentionGo) }

// publish sets hot.Rx.Attention, by which polls enter Go, or poll transports, without an arrival on a ring.
func (r *leasedRx) publish() { r.publishWork(r.pending()) }

// publishWork is publish where pending is known to the lease holder.
func (r *leasedRx) publishWork(pending bool) {
	attention := uint32(0)
	if pending || r.goPolled() {
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
	r.matching.Reclaim()
	r.countQueues(r.matching.Posted(), r.matching.UnexpectedMessages())
	r.matching.PublishWant(r.base.hot)
}

// housekeeping runs the timers.
func (r *leasedRx) housekeeping() {
	r.matching.DrainWanted()
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

// ring wakes the progress thread, if there is one and it sleeps, after work was
// published that no doorbell rings for.
func (r *rxContext) ring() {
	if b := r.bell.Load(); b != nil {
		b.RingAsleep()
	}
}
