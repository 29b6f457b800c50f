package backends

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// Matched is what a device needs to know of an endpoint whose messages it matches.
type Matched struct {
	Config   *config.Config
	Source   []byte // its name, as the device has it
	Receives int    // that may be posted
	Sends    int    // operations of others that may be in flight
	Stripes  int    // transmit queues that the endpoint may have, 0: one
	Keys     []hw.Key
	Direct   bool // C calls Go without the runtime
}
