package provider

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/backends"
)

// settings is the process's configuration.
var settings struct {
	sync.Mutex // control operations only
	lookup     func(name string) (string, bool)
	loaded     bool
	cfg        *config.Config
	err        error
}

// SetConfigLookup sets where the values of the FI_WEFT_* variables come from:
// in a host library its parameters, else (and with nil) the environment. It
// takes effect for everything opened afterwards.
func SetConfigLookup(lookup func(name string) (string, bool)) {
	settings.Lock()
	defer settings.Unlock()
	settings.lookup, settings.loaded = lookup, false
}

// configuration returns the configuration, which is loaded once. What is wrong
// with it is logged once and fails every call: fi.EINVAL.
func configuration() (*config.Config, error) {
	settings.Lock()
	defer settings.Unlock()
	if settings.loaded {
		return settings.cfg, settings.err
	}
	lookup := settings.lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	settings.cfg, settings.err = config.Load(lookup)
	settings.loaded = true
	if settings.err != nil {
		log.Warnf(log.Core, "configuration: %v", settings.err)
	} else if settings.cfg.Lowered() != "" {
		log.Warnf(log.Core, "configuration: %s", settings.cfg.Lowered())
	}
	for _, name := range config.Unknown(os.Environ()) {
		log.Warnf(log.Core, "%s is not a variable of weft", name)
	}
	return settings.cfg, settings.err
}

// Direct reports whether FI_WEFT_DIRECT lets C call the data plane without the runtime. False for a bad configuration.
func Direct() bool {
	cfg, err := configuration()
	return err == nil && cfg.Direct
}

// plane says that C calls the data plane without the runtime in this process.
var plane atomic.Bool // stored before the first fabric is open

// SetPlane records that C calls the data plane without the runtime, having tried it. Before the first fabric is open.
func SetPlane() { plane.Store(true) }

// GetInfo answers fi_getinfo; see [info.Env.GetInfo] for arguments and errors,
// to which fi.EINVAL for a bad configuration is added. Fabrics and domains that
// the process has open are in the answers that have their names, the first
// opened of each.
func GetInfo(version uint32, node, service string, flags uint64, hints *fi.Info) ([]*fi.Info, error) {
	return GetInfoFor(0, version, node, service, flags, hints)
}

// GetInfoFor is GetInfo for an application that asks through a library of version host, 0: none.
func GetInfoFor(host, version uint32, node, service string, flags uint64, hints *fi.Info) ([]*fi.Info, error) {
	cfg, err := configuration()
	if err != nil {
		return nil, err
	}
	env := info.System(host)
	env.Matching = backends.MatchDevices
	infos, err := env.GetInfo(version, node, service, flags, hints, cfg)
	for _, i := range infos {
		opened.fill(i)
	}
	return infos, err
}

// registry lists the open fabrics and domains, in the order of opening.
type registry struct {
	mu      sync.Mutex // control operations only
	fabrics []*Fabric
	domains []*Domain
}

var opened registry

// fill sets the objects that an answer's names stand for. An object that is
// set already came from the hints.
func (r *registry) fill(i *fi.Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.fabrics {
		if i.Fabric.Fabric == nil && f.FabricName() == i.Fabric.Name {
			i.Fabric.Fabric = f
		}
	}
	for _, d := range r.domains {
		if i.Domain.Domain == nil && d.DomainName() == i.Domain.Name &&
			d.fabric.FabricName() == i.Fabric.Name {
			i.Domain.Domain = d
		}
	}
}

// Backend describes a transport of this build for people ("weft info").
type Backend = backends.Backend

// Network is a transport that a program brings itself.
type Network = backends.Network

// Backends tries every transport: see [backends.List].
func Backends(c *config.Config) []Backend { return backends.List(c) }
