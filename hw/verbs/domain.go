package verbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/Mellanox/rdmamap"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// DomainConfig says which device, port and address a memory domain uses.
type DomainConfig struct {
	Device string // default: the first of this network namespace
	Port   int    // default: the first active one, else the first
	// GIDIndex is the entry of the port's GID table, chosen if GIDAuto.
	GIDIndex int
	// Logf takes one line of text about the device, without a newline. Default: none.
	Logf func(format string, args ...any)
}

// GIDAuto has the GID chosen: see chooseGID.
const GIDAuto = -1

// MemoryDomain is an open port of a device. It implements hw.MemoryDomain.
type MemoryDomain struct {
	dev  Device
	ctx  *ibv.Context
	pd   *ibv.PD
	attr ibv.DeviceAttr
	port int
	info ibv.Port // when it was opened
	gid  gidEntry
	logf func(format string, args ...any)

	events *eventWatch

	kept keptKeys

	dmabufs bool // the device reaches memory of other devices; immutable

	// mu guards ifaces, and is locked while each calls f, so that remove waits for that. It is on the control path.
	mu     sync.Mutex
	ifaces []*Iface
}

// OpenDomain opens a device. Errors: ibv.ErrAbsent without libibverbs;
// hw.ErrUnreachable without a device, port or address; hw.ErrPermission without
// permission for the character device; ENOSYS on a kernel without verbs.
func OpenDomain(c DomainConfig) (*MemoryDomain, error) {
	dev, err := device(c.Device)
	if err != nil {
		return nil, err
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	ctx, err := ibv.OpenDevice(dev.Name)
	if err != nil {
		return nil, fmt.Errorf("verbs: %w", openError(err, dev.Name))
	}
	d := &MemoryDomain{dev: dev, ctx: ctx, logf: c.Logf}
	if err := d.setUp(c); err != nil {
		return nil, errors.Join(fmt.Errorf("verbs: device %s: %w", dev.Name, err), ctx.Close())
	}
	if err := ibv.ForkStatus(); err != nil {
		d.logf("verbs: %v: on kernels before 5.12 children of fork disturb registered memory", err)
	}
	return d, nil
}

// openError names what stands between the process and a device.
func openError(err error, name string) error {
	refused := errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
	for _, f := range rdmamap.GetRdmaCharDevices(name) { // libibverbs says ENOENT for a file that it may not open
		if strings.Contains(f, rdmamap.RdmaUverbsFilxPrefix) && errors.Is(unix.Access(f, unix.R_OK|unix.W_OK),
			unix.EACCES) {
			refused = true
		}
	}
	if refused {
		return fmt.Errorf("%w: no permission for its file in /dev/infiniband: %w", err, hw.ErrPermission)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: no file for %s in /dev/infiniband: %w", err, name, hw.ErrUnreachable)
	}
	return err
}

func (d *MemoryDomain) setUp(c DomainConfig) (err error) {
	if d.attr, err = d.ctx.Query(); err != nil {
		return err
	}
	if err = d.choosePort(c.Port); err != nil {
		return err
	}
	table := gidTable(sysfsRoot, d.dev.Name, d.port)
	if c.GIDIndex >= 0 {
		table = slices.DeleteFunc(table, func(e gidEntry) bool { return e.index != c.GIDIndex })
	}
	if d.gid, err = chooseGID(table, d.info.Ethernet, d.dev.Netdevs); err != nil {
		return err
	}
	if d.pd, err = d.ctx.AllocPD(); err != nil {
		return err
	}
	if d.events, err = watchEvents(d); err != nil {
		return errors.Join(err, d.pd.Close())
	}
	d.probeDMABuf()
	return nil
}

// choosePort takes the port asked for, or the first active one.
func (d *MemoryDomain) choosePort(want int) error {
	ports := d.dev.Ports
	if want != 0 {
		ports = []int{want}
	}
	for _, active := range []bool{true, false} {
		for _, p := range ports {
			info, err := d.ctx.QueryPort(p)
			if err != nil {
				return err
			}
			if info.Active || !active {
				d.port, d.info = p, info
				return nil
			}
		}
	}
	return fmt.Errorf("no port: %w", hw.ErrUnreachable)
}

// path is the way to a peer's port.
func (i *Iface) path(a *address) ibv.Path {
	d := i.d
	p := ibv.Path{LID: a.lid, SGIDIndex: d.gid.index, Port: d.port, GID: a.gid, Class: i.cfg.Class << 2}
	// An InfiniBand packet needs a global header only between subnets.
	// The first half of a GID is the prefix of its subnet.
	p.Global = d.info.Ethernet || d.info.GRHRequired || [8]byte(a.gid[:8]) != [8]byte(d.gid.gid[:8])
	return p
}

// Attr describes the domain.
func (d *MemoryDomain) Attr() hw.MDAttr {
	caps := hw.MDLocal | hw.MDCost | hw.MDAlloc
	if d.dmabufs {
		caps |= hw.MDDMABuf
	}
	return hw.MDAttr{
		Caps:   caps,
		MaxLen: d.attr.MaxMRSize,
		MaxKey: keyBytes,
		Device: d.dev.Name,
	}
}

// Close closes the device.
func (d *MemoryDomain) Close() error {
	d.events.close()
	return errors.Join(d.pd.Close(), d.ctx.Close())
}

func (d *MemoryDomain) add(i *Iface) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ifaces = append(d.ifaces, i)
}

// remove has each call f no more for an interface. When it returns, no such call is under way.
func (d *MemoryDomain) remove(i *Iface) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ifaces = slices.DeleteFunc(d.ifaces, func(o *Iface) bool { return o == i })
}

// each calls f for every interface on the domain. f neither adds nor removes one, nor waits for a thread that may.
func (d *MemoryDomain) each(f func(*Iface)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.ifaces {
		f(i)
	}
}

// registered maps the errors of a registration to this package's.
func registered(err error, n uint64) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("verbs: register %d bytes: no room, or beyond the limit on locked memory (%s): %w: %w",
			n, lockLimit(), err, hw.ErrNoResource)
	case errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBADF):
		return fmt.Errorf("verbs: register %d bytes: %w: %w", n, err, hw.ErrInvalid)
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("verbs: register %d bytes: %w: %w", n, err, hw.ErrPermission)
	}
	return fmt.Errorf("verbs: register %d bytes: %w", n, err)
}

// lockLimit is the process's limit on locked memory, for messages.
func lockLimit() string {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return "unknown"
	}
	if r.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprintf("%d bytes", r.Cur)
}
