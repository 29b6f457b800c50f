package receive

import (
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/tally"
)

// Endpoint is an endpoint that delivers into a [Context]. It is for the holder of the progress lease.
type Endpoint struct {
	rx        *Context
	host      Host
	long      Rendezvous
	counts    *tally.Counts
	hot       *hot.EP
	number    uint32 // among the endpoints of rx
	lossy     bool
	sourceErr bool
}

// Resources are what an endpoint that is enabled gives to what it receives.
type Resources struct {
	Context    *Context
	Rendezvous Rendezvous
	Counts     *tally.Counts
	Hot        *hot.EP
	Lossy      bool // messages are datagrams
	SourceErr  bool // completions name the senders that are not in the address vector (FI_SOURCE_ERR)
}

// Init prepares an endpoint.
func (e *Endpoint) Init(ep Host) { e.host = ep }

// Open gives an endpoint its context, to which it is not attached yet.
func (e *Endpoint) Open(r *Resources) {
	e.rx, e.long, e.counts, e.hot = r.Context, r.Rendezvous, r.Counts, r.Hot
	e.lossy, e.sourceErr = r.Lossy, r.SourceErr
}

// Number is the endpoint's among those of its context, from Attach on.
func (e *Endpoint) Number() uint32 { return e.number }
