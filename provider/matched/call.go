package matched

import (
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// call is what a post gives to the device. It is memory for the time of the call: what goes through an interface would
// be allocated each time.
type call struct {
	send     hw.MatchSend
	receive  hw.MatchReceive
	transfer hw.MatchTransfer
	name     [16]byte // of a peer
	post     hot.Post // the operation
}

var calls = sync.Pool{New: func() any { return new(call) }}

// done gives the memory back, and keeps nothing of what it names.
func (c *call) done() {
	c.send.Inject, c.send.Local = nil, hw.Segment{}
	c.receive.Local = hw.Segment{}
	c.transfer.Inject, c.transfer.Local = nil, hw.Segment{}
	calls.Put(c)
}
