package backends

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// Device is a domain's RDMA device, or one that matches messages, opened when the first endpoint that may use one is
// enabled. Its methods may be called from any thread.
type Device struct {
	cfg     *config.Config
	name    string      // of the domain
	matches bool        // it matches the messages of the domain's endpoints
	auth    authkey.Key // the domain's
	alone   order.Word  // whether one thread alone uses the cache

	mu     sync.Mutex      // control operations only
	opened bool            // or that was tried
	memory hw.MemoryDomain // nil: there is none
	cache  *regcache.Cache // of its registrations
	err    error           // why

	telemetry nic.Meter // of a device that matches messages
}

// errNoRDMA says that there is no RDMA device, or that none is wanted: nothing
// for messages to users.
var errNoRDMA = errors.New("no RDMA")

// NewDevice makes the device of a domain with a name and an authorisation key. matches: it matches the messages of the
// domain's endpoints. alone: whether one thread alone makes data transfer calls now, the zero Word: never.
func NewDevice(c *config.Config, domain string, auth authkey.Key, matches bool, alone order.Word) *Device {
	return &Device{cfg: c, name: domain, auth: auth, matches: matches, alone: alone}
}

// Domain returns the device's memory domain, opening the device the first time. The error, which is in the log, says
// why there is none.
func (r *Device) Domain() (hw.MemoryDomain, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened {
		return r.memory, r.err
	}
	r.opened = true
	switch {
	case r.matches:
		r.memory, r.err = openMatchDevice(r.name, r.auth)
	case r.cfg.Verbs == config.No && r.cfg.CXI == config.No:
		r.err = errNoRDMA
		return nil, r.err
	default:
		r.memory, r.err = openDevice(r.cfg, r.name)
	}
	if r.err != nil {
		r.memory = nil
		if demanded(r.cfg) {
			log.Warnf(log.Domain, "FI_WEFT_VERBS or FI_WEFT_CXI is yes: %v", r.err)
		} else if named := namedDevice(r.cfg); named != "" {
			log.Warnf(log.Domain, "%s is not used: %v", named, r.err)
		} else if !errors.Is(r.err, errNoRDMA) {
			log.Infof(log.Domain, "no RDMA: %v", r.err)
		}
		return nil, r.err
	}
	watch, err := startWatch()
	if err != nil {
		log.Infof(log.Domain, "registrations of memory are not kept: %v", err)
	}
	r.cache = regcache.New(r.memory, regcache.Config{
		Watch: watch, Devices: hmem.Allocations{},
		Logf: func(format string, args ...any) { log.Infof(log.MR, format, args...) },
	})
	r.cache.Alone(r.alone)
	if r.matches {
		r.telemetry.Begin(nic.ThisHost(), r.name, r.cfg.CXITelemetry)
	}
	return r.memory, nil
}

// Cache returns the cache of a memory domain's registrations, nil if there is none.
func (r *Device) Cache(m hw.MemoryDomain) *regcache.Cache {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == nil || m != r.memory {
		return nil
	}
	return r.cache
}

// Forget ends registrations of memory of other devices that a region lies in, which is about to be closed.
func (r *Device) Forget(m *hmem.Region) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return
	}
	for _, s := range m.Shares {
		r.cache.Buffers().Drop(s.Base())
	}
}

// Close closes the device; nothing is open on it any more.
func (r *Device) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory != nil {
		r.cache.Close()
		if err := r.memory.Close(); err != nil {
			log.Warnf(log.Domain, "close the RDMA device: %v", err)
		}
		r.memory = nil
		r.telemetry.End()
	}
}

// demanded reports whether the configuration wants no domain without a device.
func demanded(c *config.Config) bool { return c.Verbs == config.Yes || c.CXI == config.Yes }

// namedDevice is the setting that names a device, as the log has it, "" for none.
func namedDevice(c *config.Config) string {
	switch {
	case c.VerbsDevice != "" && c.Verbs != config.No:
		return fmt.Sprintf("FI_WEFT_VERBS_DEVICE=%q", c.VerbsDevice)
	case c.CXIDevice != "" && c.CXI != config.No:
		return fmt.Sprintf("FI_WEFT_CXI_DEVICE=%q", c.CXIDevice)
	}
	return ""
}

// openDevice opens the device of a domain whose network interface is netdev: an RDMA device, or a NIC of Slingshot
// where there is none, or one is demanded.
func openDevice(c *config.Config, netdev string) (hw.MemoryDomain, error) {
	var err error
	if c.Verbs != config.No && c.CXI != config.Yes {
		var d hw.MemoryDomain
		if d, err = openRDMADevice(c, netdev); err == nil || c.Verbs == config.Yes {
			return d, err
		}
	}
	if c.CXI == config.No {
		return nil, err
	}
	d, cxiErr := openCXIDevice(c, netdev)
	if cxiErr == nil || err == nil || c.CXIDevice != "" || errors.Is(err, errNoRDMA) && !errors.Is(cxiErr, errNoRDMA) {
		return d, cxiErr
	}
	return nil, err
}
