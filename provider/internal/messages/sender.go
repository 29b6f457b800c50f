package messages

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

// Sender posts the messages of an endpoint. Any thread may call its methods, but for those that say otherwise. What
// progress does with the messages is [Protocol]'s.
//
// Fields are immutable from Open on, but for what requests and exposed have in them, which any thread that posts and
// the holder of the progress lease change (stripe.Table, rkey.Table), and for those whose comments say so.
type Sender struct {
	host     Host
	cfg      *config.Config
	links    *links.Links
	pendings *onesided.Pendings // of the endpoint, which a fence waits for
	accesses *pages.Counter     // of memory that peers read
	counts   *tally.Counts
	rules    ordering.Rules
	lossy    bool    // messages are datagrams
	hot      *hot.EP // C's table; RTSBytes is written here, atomically
	stripes  *stripe.Set
	requests requests
	exposed  rkey.Table // the memory of requests that devices of peers reach
	scratch  []scratch  // by stripe; its lease holder's
	progress int        // the stripe of the holder of the progress lease
}

// Parts are what a sender uses of its endpoint beside its host.
type Parts struct {
	Config   *config.Config
	Links    *links.Links
	Pendings *onesided.Pendings
	Accesses *pages.Counter
	Counts   *tally.Counts
}

// Resources are what an endpoint that is enabled gives its sender.
type Resources struct {
	Hot       *hot.EP
	Rules     ordering.Rules
	Stripes   *stripe.Set
	PerStripe int // requests
	InjectMax int // bytes of a message that is injected
	Lossy     bool
}

// Init prepares a sender.
func (s *Sender) Init(ep Host, p Parts) {
	s.host, s.cfg, s.links, s.pendings, s.accesses, s.counts = ep, p.Config, p.Links, p.Pendings, p.Accesses, p.Counts
}

// Open makes room for messages. The links are open. Close is to be called after an error, too.
func (s *Sender) Open(r *Resources) error {
	n := r.Stripes.Len()
	s.hot, s.rules, s.stripes, s.lossy = r.Hot, r.Rules, r.Stripes, r.Lossy
	s.progress, s.scratch = n, newScratch(n+1)
	return s.requests.open(n, r.PerStripe, r.InjectMax, s.links.Capacity())
}

// Fill gives the data plane what it needs for messages that wait for an ACK. The transports are open.
func (s *Sender) Fill(h *hot.EP) {
	s.requests.fill(h)
	h.RTSMax, h.RTSBytesMax = rtsMax(&s.links.Transports()[0].Attr, s.lossy), s.accesses.Sample()
}

// Close gives the room back. Nothing uses it any more.
func (s *Sender) Close() { s.requests.close() }

// Unregister takes back what requests that are left have exposed. Nothing begins any more.
func (s *Sender) Unregister() { rkey.Close(s.exposed.Clear()) }

// rtsMax is the longest message, in bytes, of which the data plane sends an RTS over a transport, 0: of none.
func rtsMax(a *hw.Attr, lossy bool) uint64 {
	if a.Caps&hw.CapPeerMemory == 0 || lossy {
		return 0
	}
	return wire.MaxMessage
}

// Line is where the data plane counts for a peer, by the number of its link. The caller has the table of links locked.
func (s *Sender) Line(number uint32) *dataplane.Link { return s.requests.lineOf(s.hot, number) }

// Requests are the messages that wait for an ACK, nil before Open. Their memory is read until they have ended.
func (s *Sender) Requests() *dataplane.Requests { return s.requests.Requests }

// Exposed are the regions of a request that its receiver may read, none: the payload is not exposed.
func (s *Sender) Exposed(request uint64) []hw.Memory { return s.exposed.Of(request) }

// Exposes reports whether there is a request whose receiver may read the payload by a device.
func (s *Sender) Exposes() bool { return s.exposed.Any() }

// Stripes are those of the endpoint, of which a post leases one.
func (s *Sender) Stripes() *stripe.Set { return s.stripes }

// Progress is the stripe that the holder of the progress lease leases with that.
func (s *Sender) Progress() int { return s.progress }

// SeekLost has the next Pump end the messages to peers of which the end is reported: one was posted while its peer was
// lost.
func (s *Sender) SeekLost() { s.requests.lost.Store(true) }

// completes reports whether a message writes a completion.
func (s *Sender) completes(m *Send) bool { return !m.Inject && s.host.Completes(m.Work, m.Flags) }
