package provider

import (
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/names"
)

// peering is the lowest of three layers of an endpoint: what it is bound to, its interfaces, and the links by which it
// reaches its peers. On it stands the initiator, which posts operations, and on that the Endpoint, which is opened,
// enabled and closed. A method of one layer uses that layer and those below it only.
//
// Fields are set before the endpoint is enabled and do not change after it, unless their comments say so.
type peering struct {
	binder // attributes, state, and what the endpoint is bound to
	// keys are those of the address vector, from Enable on; nil where keys are not there. Immutable then
	keys []hw.Key
	name names.Name

	source *cq.Source
	bell   *cq.Source  // of counters that drive it, nil: source is; under the lock of the domain's drives
	conn   *connection // nil: not connection-oriented
	chosen options

	hotMemory
	driven     drivenTransport
	transports transportSet
	links      links.Links
	// stats is the block of counters, nil before Enable, and counts counts in it.
	stats  *stats.Endpoint
	counts tally.Counts
	opened tokens.Opened

	attr     hw.Attr
	rx       *rxContext
	handle   uint64        // of C's table
	accesses pages.Counter // of memory, for huge pages
	born     time.Time     // zero of the flows' clock; immutable
}

// stripeCount is the number of transmit stripes: a power of two.
func (e *attributes) stripeCount() int { return e.domain.stripes(e.info.Tx.Size) }

// published is the memory domain whose regions peers may reach by themselves,
// nil if this endpoint is to take part.
func (e *peering) published() hw.MemoryDomain {
	if e.info.Caps&(fi.RemoteRead|fi.RemoteWrite) == 0 || e.bound.counted() || e.auth != e.domain.auth ||
		e.keys != nil {
		return nil
	}
	return e.domain.published.Memory
}

// now is the clock of flows.
func (e *peering) now() congestion.Time { return congestion.Time(time.Since(e.born)) + 1 }
