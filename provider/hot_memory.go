package provider

import (
	"math/bits"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/tables"
)

// hotMemory is an endpoint's memory that the data plane uses, too. Its place is fixed from OpenEndpoint on.
type hotMemory struct {
	hot         *hot.EP // of table, nil after Close
	table       tables.EP
	fast        ordering.Gate         // of posts by the data plane
	sourceLines mem.Array[hot.Source] // by hw.Source
	sourceAddrs tables.Senders        // the addresses in sourceLines
}

// allocateHot takes the memory of the tables that the data plane reads.
func (e *peering) allocateHot() (err error) {
	e.table, err = tables.OpenEP(e.stripeCount()+1, log2(e.domain.cfg.RingSlots), false)
	if err == nil {
		e.hot = e.table.Table()
	}
	return err
}

// log2 is the logarithm of a power of two.
func log2(n int) uint32 { return uint32(bits.Len(uint(n)) - 1) }
