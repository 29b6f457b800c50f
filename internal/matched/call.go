package matched

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// call is what a post gives to the device. It is memory for the time of the call: what goes through an interface would
// be allocated each time.
type call struct {
	hint     uint32 // operation.hint: no two have the same
	send     hw.MatchSend
	receive  hw.MatchReceive
	transfer hw.MatchTransfer
	name     [16]byte // of a peer
	post     hot.Post // the operation
}

var calls = sync.Pool{New: func() any { return &call{hint: made.Add(1)} }}

// made is how many there were. Any thread that makes one adds.
var made atomic.Uint32

// done gives the memory back, and keeps nothing of what it names.
func (c *call) done() {
	c.send.Inject, c.send.Local = nil, hw.Segment{}
	c.receive.Local = hw.Segment{}
	c.transfer.Inject, c.transfer.Local = nil, hw.Segment{}
	calls.Put(c)
}
