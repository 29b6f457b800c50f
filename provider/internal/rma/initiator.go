package rma

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

// Initiator posts the one-sided operations of an endpoint. Any thread may call its methods, but for those that say
// otherwise. What progress does with the operations is [Protocol]'s.
//
// Fields are immutable from Open on, unless their comments say so.
type Initiator struct {
	host     Host
	cfg      *config.Config
	rules    ordering.Rules
	hot      *hot.EP        // C's table; DelegateRest and Copied are written here, atomically
	lists    *list.Posts    // of the endpoint
	accesses *pages.Counter // of memory that is copied
	counts   *tally.Counts
	stripes  *stripe.Set
	requests *stripe.Table[Request]
	inject   mem.Buffers // one for each request; its owner's
	scratch  []scratch   // by stripe; its lease holder's
	progress int         // the stripe of the holder of the progress lease
	queue    queue
	shares   shares
	devices  deviceOps
	// leased is what the progress lease guards.
	leased lease.Guarded[Protocol]
}

// Parts are what an initiator uses of its endpoint beside its host.
type Parts struct {
	Config   *config.Config
	Lists    *list.Posts
	Accesses *pages.Counter
	Counts   *tally.Counts
}

// Resources are what an endpoint that is enabled gives its initiator.
type Resources struct {
	Hot       *hot.EP
	Rules     ordering.Rules
	Stripes   *stripe.Set
	PerStripe int // requests
	InjectMax int // bytes of an operation that is injected
	// Leased is the protocol behind the progress lease.
	Leased lease.Guarded[Protocol]
}

// Init prepares an initiator.
func (in *Initiator) Init(ep Host, p Parts) {
	in.host, in.cfg, in.lists, in.accesses, in.counts = ep, p.Config, p.Lists, p.Accesses, p.Counts
}

// Open makes room for operations. Close is to be called after an error, too.
func (in *Initiator) Open(r *Resources) (err error) {
	n := r.Stripes.Len()
	in.hot, in.rules, in.stripes, in.leased = r.Hot, r.Rules, r.Stripes, r.Leased
	in.progress, in.scratch = n, make([]scratch, n+1)
	if in.requests, err = stripe.NewTable[Request](n, r.PerStripe); err != nil {
		return err
	}
	return in.inject.Open(n*r.PerStripe, r.InjectMax)
}

// Close gives the room back. Nothing uses it any more.
func (in *Initiator) Close() {
	in.inject.Close()
	if in.requests != nil {
		_ = in.requests.Close()
	}
}

// requested reports whether something waits for progress that no ring shows.
func (in *Initiator) requested() bool { return in.queue.n.Load() != 0 || in.shares.waiting.Load() != 0 }

// scratch is memory of one stripe for building messages, so that posting allocates nothing.
type scratch struct {
	head     [wire.RTSBytes]byte
	frag     [2 * wire.IOVLimit]fi.IOVec // the vector of a message, or of operands and comparands
	elements *elementMessage             // nil before there is one
}

// mayTake reports whether an operation may take a way: FI_WEFT_TOKEN_WAYS, for the elements of lists that go as
// operations of their own. Others may take every way.
func (in *Initiator) mayTake(listed bool, w list.Way) bool {
	if !listed {
		return true
	}
	on := &in.cfg.TokenWays
	return [...]bool{on.IPC, on.RDMA, on.Message}[w]
}

// took counts an operation that was posted, if it is an element of a list.
func (in *Initiator) took(l *Link, listed bool, w list.Way, n uint64) {
	if listed {
		in.host.Took(l, w, 1, n)
	}
}

// completes reports whether an operation writes a completion.
func (in *Initiator) completes(a *Operation) bool {
	return !a.Inject && in.host.Completes(a.Work, a.Flags)
}

// end completes and counts an operation. The caller holds the progress lease if it has failed.
func (in *Initiator) end(e Ended) {
	if ofList(e.Work) {
		in.lists.Ended(e.Work, e.Status, e.Total)
		return
	}
	in.host.End(e)
}

// ofList reports whether a number of work is an element's.
func ofList(work uint64) bool { return work&deferred.NumberBit == 0 && list.IsWork(work) }

// alloc returns a request of a stripe, whose lease the caller holds then, until the stripe is released. False: there is
// none.
func (in *Initiator) alloc() (req *Request, id uint64, lease int, ok bool) {
	lease, ok = in.stripes.Acquire(0)
	if !ok {
		in.counts.Shared(stats.SharedNoStripe, 1)
		return nil, 0, 0, false
	}
	if req, id, ok = in.requests.Alloc(lease); !ok {
		in.counts.Add(lease, stats.StripeNoRequest, 1)
		in.stripes.Release(lease)
	}
	return req, id, lease, ok
}

// keepInject copies what a request sends to its own buffer when it may not be sent at once, because the caller may
// reuse its memory.
func (in *Initiator) keepInject(req *Request, id uint64) {
	room := in.inject.At(in.requests.Index(id))
	keep := func(iov *[wire.IOVLimit]fi.IOVec, count *uint32) {
		size := uint64(0)
		for _, v := range iov[:*count] {
			size += v.Len
		}
		if size == 0 {
			return
		}
		vector.Gather(room[:size], iov[:*count])
		iov[0], *count = vector.Of(room[:size]), 1
		room = room[size:]
	}
	if req.flags&flagIsAtomic != 0 {
		keep(&req.operand, &req.operands)
		return
	}
	keep(&req.iov, &req.count)
}
