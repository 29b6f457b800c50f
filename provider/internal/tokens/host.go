package tokens

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/peers"
)

// Endpoint is what remote regions need of the endpoint that opens them. Values are compared. Any thread may call its
// methods.
type Endpoint interface {
	// Acquire has the endpoint stay open until Release. Errors: why it is closed.
	Acquire() error
	Release()
	// Config is the domain's configuration. Constant.
	Config() *config.Config
	// Know returns the fi.Addr of an address, whose name the address vector takes if it has none. Errors as of
	// [av.AV.KnowContext].
	Know(a peers.Address) (fi.Addr, error)
	// Keys are its authorisation keys. Constant.
	Keys() []hw.Key
	// Devices are its interfaces on devices that reach memory of peers. Constant.
	Devices() []Device
	// Ordered reports whether it keeps one-sided operations in order, and Apart whether it shares no memory with peers.
	// Constant.
	Ordered() bool
	Apart() bool
	// Attaches reports whether it copies from and to memory of processes of this host. Constant.
	Attaches() bool
	// Maps reports whether memory of devices may be mapped.
	Maps() bool
	// Path is how a peer is reached now. False: nothing has gone there, or its connection is lost.
	Path(addr fi.Addr) (Path, bool)
}

// Device is an interface of an endpoint on a device that reads and writes memory of peers.
type Device struct {
	hw.Device
	Memory    hw.MemoryDomain
	Transport uint32 // the endpoint's number of the interface
}

// Path is how a peer is reached.
type Path struct {
	Attaches bool   // this process copies from and to memory of the peer's
	Here     bool   // the peer is a process of this host that shares memory
	Device   bool   // an RDMA device leads there
	Name     string // of the interface
}
