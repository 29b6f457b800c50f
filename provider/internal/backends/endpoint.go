package backends

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
)

// Endpoint is what transports need to know of an endpoint, or of a context of a scalable one. It does not change while
// they are open.
type Endpoint struct {
	Config  *config.Config
	Device  *Device // the domain's
	Name    names.Name
	Context uint8         // its number, 0 for an endpoint that is no context
	Mapper  *Mapper       // of the scalable endpoint that it is a context of, nil: it is none
	Socket  *names.Socket // that holds the name
	Auth    authkey.Key
	Keys    []hw.Key  // of its address vector, in the place of Auth where keys are there
	Program []Network // of the fabric
	Stripes int       // with that of progress
	Class   uint8     // of its packets (DSCP)
	Apart   bool      // it shares no memory with peers
	Polled  bool      // all that comes to it is polled for
	Direct  bool      // C calls Go without the runtime
}

// address is the name as transports have it.
func (e *Endpoint) address() []byte { return peers.Address{Name: e.Name, Number: e.Context}.Raw() }
