//go:build cgo

package backends

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi"
	"github.com/weft-fabric/weft/hw/verbs"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/memwatch"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/flow"
)

// answerTime bounds how long a peer that has sent its device address may take to
// answer over the device, if there is another transport: then the networks of the
// two devices are not joined.
const answerTime = 5 * time.Second

// openRDMADevice opens the device that the configuration names, else the one
// that the network interface stands on. With FI_WEFT_VERBS=yes any device will do.
func openRDMADevice(c *config.Config, netdev string) (hw.MemoryDomain, error) {
	name := c.VerbsDevice
	if name == "" {
		if found, _ := filepath.Glob("/sys/class/infiniband/*"); len(found) == 0 {
			// libibverbs need not be loaded
			return nil, fmt.Errorf("no RDMA device on this host: %w: %w", errNoRDMA, hw.ErrUnreachable)
		}
		list, err := verbs.Devices()
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(list,
			func(d verbs.Device) bool { return slices.Contains(d.Netdevs, netdev) }); at >= 0 {
			name = list[at].Name
		} else if c.Verbs == config.Yes {
			name = list[0].Name
		} else {
			return nil, fmt.Errorf("no RDMA device stands on %s, and FI_WEFT_VERBS_DEVICE names none: %w",
				netdev, hw.ErrUnreachable)
		}
	}
	d, err := verbs.OpenDomain(verbs.DomainConfig{
		Device: name, GIDIndex: verbs.GIDAuto,
		Logf: func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	})
	if err != nil {
		return nil, err // not d: an interface that holds a nil pointer is not nil
	}
	return d, nil
}

// probeRDMA opens the device that the configuration names, or any, and closes it.
func probeRDMA(c *config.Config) error {
	all := *c
	all.Verbs = config.Yes // a device of any network interface
	d, err := openRDMADevice(&all, "")
	if err != nil {
		return err
	}
	return d.Close()
}

// openCXIDevice opens the NIC of Slingshot that the configuration names, else the one that the network interface stands
// on. With FI_WEFT_CXI=yes any will do.
func openCXIDevice(c *config.Config, netdev string) (hw.MemoryDomain, error) {
	name := c.CXIDevice
	if name == "" && c.CXI != config.Yes {
		if !cxi.Present(cxi.DefaultSysfs) {
			// libcxi need not be loaded
			return nil, fmt.Errorf("no NIC of Slingshot on this host: %w: %w", errNoRDMA, hw.ErrUnreachable)
		}
		list, err := cxi.Devices(cxi.DefaultSysfs, libcxi.DefaultLibrary)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(list, func(d cxi.Device) bool { return d.Netdev == netdev && netdev != "" })
		if at < 0 {
			return nil, fmt.Errorf(
				"no NIC of Slingshot stands on %s, and FI_WEFT_CXI_DEVICE names none: %w", netdev, hw.ErrUnreachable)
		}
		name = list[at].Name
	}
	d, err := cxi.OpenDomain(cxi.DomainConfig{
		Device: name, Logf: func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	})
	if err != nil {
		return nil, err // not d: an interface that holds a nil pointer is not nil
	}
	return d, nil
}

// probeCXI opens the NIC that the configuration names, or any, and closes it.
func probeCXI(c *config.Config) error {
	if c.CXI != config.Yes && !cxi.Present(cxi.DefaultSysfs) {
		return errors.New("no NIC of Slingshot on this host")
	}
	all := *c
	all.CXI = config.Yes // a NIC of any network interface
	d, err := openCXIDevice(&all, "")
	if err != nil {
		return err
	}
	return d.Close()
}

// deviceBounces is how many bounce buffers an interface of a device has: fewer for each stripe than in shared memory,
// as the device's are locked in memory, of which a process may have little (RLIMIT_MEMLOCK).
func deviceBounces(cfg *config.Config, stripes int) int {
	return max(cmp.Or(cfg.BounceCount, 64), 8*stripes)
}

// openCXIIface opens an endpoint's interface on a device of openCXIDevice.
func openCXIIface(device *cxi.MemoryDomain, r *rdma) (hw.Iface, error) {
	e := r.ep
	cfg := e.Config
	i, err := device.Open(cxi.Config{
		BounceCount: deviceBounces(cfg, e.Stripes),
		BounceBytes: cfg.BounceSize,
		Stripes:     e.Stripes,
		AwaitPeer:   true,
		PathTimeout: cfg.PeerTimeout,
		Name:        e.address(),
		Resolve:     r.resolve,
		Forget:      r.forget,
		Direct:      e.Direct,
		Logf:        func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// openRDMAIface opens an endpoint's interface on a device of openDevice.
func openRDMAIface(device hw.MemoryDomain, r *rdma) (hw.Iface, error) {
	if d, ok := device.(*cxi.MemoryDomain); ok {
		return openCXIIface(d, r)
	}
	e := r.ep
	cfg := e.Config
	limit := cfg.ConnectTimeout
	if e.networked() {
		limit = min(limit, answerTime)
	}
	eager := 0
	if e.Polled {
		eager = cfg.VerbsEagerPeers
		r.unbelled = eager != 0
	}
	i, err := device.(*verbs.MemoryDomain).Open(verbs.Config{
		BounceCount:    deviceBounces(cfg, e.Stripes),
		BounceBytes:    cfg.BounceSize,
		Stripes:        e.Stripes,
		AwaitPeer:      true,
		EagerPeers:     eager,
		ConnectTimeout: limit,
		Stamps:         flow.On(cfg, &hw.Attr{}), // devices drop nothing
		PathTimeout:    cfg.PeerTimeout,
		Class:          e.Class,
		Name:           e.address(),
		Resolve:        r.resolve,
		Forget:         r.forget,
		Direct:         e.Direct,
		Logf:           func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// deviceAddress is what peers must know of an interface of openRDMAIface.
func deviceAddress(i hw.Iface) []byte {
	return i.(hw.Device).DeviceAddress()
}

// startWatch starts the watch for changes of memory. The error says why there is none.
func startWatch() (regcache.Watch, error) {
	w, err := memwatch.Start()
	if err != nil {
		return nil, err
	}
	return w, nil
}
