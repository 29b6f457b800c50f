package rendezvous

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/target"
)

// Message is a message that has matched a receive, as the endpoint describes it. It holds no Go pointer. Target, Src
// and Request are what is used here; the others are for the endpoint.
type Message struct {
	Target  target.Target
	Src     hw.Source // that the RTS came from
	Sender  uint32    // identity
	Number  uint8     // which of the sender's interfaces
	Tag     uint64
	Data    uint64
	Flags   uint64
	Length  uint64 // bytes of the whole message
	Request uint64 // the sender's
	Multi   uint64 // the multi-receive buffer that Target is part of, 0: none
}
