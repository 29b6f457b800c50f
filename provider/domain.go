package provider

import (
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	offers "github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/ptp"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/mapping"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/names"
)

// Domain is an interface's share of a fabric: endpoints and what they are bound
// to belong to one domain. Its methods may be called from any thread.
type Domain struct {
	fabric   *Fabric
	cfg      *config.Config
	info     *fi.Info // what it was opened with, its own copy; immutable
	format   fi.AddrFormat
	auth     authkey.Key // of endpoints and regions that bring none; immutable
	refs     refs.Count  // users: address vectors, endpoints, regions, shared contexts
	queues   refs.Set    // completion queues and counters
	work     deferred.Queue
	drives   *deferred.Drives[driven] // immutable
	mappings mapping.Domain           // of memory of other processes

	local    names.Host
	resolver names.Resolver
	// maxStripes is the number of stripes of an endpoint whose transmit
	// queue is large enough, a power of two. Immutable.
	maxStripes int
	regions    region.Table[MR]
	published  region.Publisher
	device     *backends.Device // immutable
	clock      *probe.Clock     // nil: not requested; immutable
	threads    progressThreads
	served     bool      // counted as a user of the service thread; immutable
	gate       *hot.Gate // of matched endpoints, with FI_THREAD_DOMAIN, else nil; immutable

	// mu is not on the data path: events are bound and reported by control
	// operations.
	mu       sync.Mutex
	events   *eq.Queue // of endpoints without one of their own, nil: none
	mrEvents *eq.Queue // of registrations, nil: they are synchronous
}

// clockSources are what the clocks of tests read; the zero value is this host.
var clockSources ptp.Sources

// smallestStripe is the number of operations below which a transmit queue is
// not divided further.
const smallestStripe = 16

// OpenDomain opens the domain that info, from [GetInfo], describes. Errors:
// fi.EINVAL for what GetInfo does not return: no domain attributes, the name of
// another fabric, an authorisation key that is too long or that the device does not admit, unknown models,
// FI_PROGRESS_AUTO where the configuration allows no threads. Any registration modes may be
// set: with fi.MRVirtAddr peers name memory by its address, with fi.MRProvKey keys are chosen
// here, fi.MRBasic is both; others restrict the application only. fi.ENODEV: the configuration asks for PTP, and there
// is no clock, or none that is synchronised.
func (f *Fabric) OpenDomain(info *fi.Info) (*Domain, error) {
	if err := f.checkDomain(info); err != nil {
		return nil, refuse(log.Domain, fi.ErrnoOf(err), "open domain: %v", err)
	}
	auth, err := domainKey(info.Domain)
	if err == nil && auth != "" && offers.Matched(f.cfg, info) {
		err = backends.AdmitsDomainKey(f.cfg, info.Domain.Name, auth)
	}
	if err != nil {
		return nil, refuse(log.Domain, fi.EINVAL, "open domain: %v", err)
	}
	if err := f.refs.Acquire(); err != nil {
		return nil, err
	}
	d := &Domain{
		fabric:     f,
		cfg:        f.cfg,
		auth:       auth,
		info:       info.Clone(),
		format:     info.AddrFormat,
		resolver:   names.SystemResolver,
		maxStripes: maxStripes(f.cfg.TxStripes, runtime.NumCPU()),
	}
	d.mappings.Init(ownProcess{}, d.cfg, d.hmem())
	d.drives = deferred.NewDrives(driven.drive, driven.undrive)
	d.published.Memory, d.published.Auth = backends.NewMemoryDomain(), auth
	d.published.Mapped = f.cfg.HMEMMapSize != 0 && f.cfg.Service != config.No
	d.published.Allocated = info.Domain.MRMode&(fi.MRAllocated|fi.MRBasic) != 0
	d.published.HugeLeast = uint64(f.cfg.HugeRegionSize)
	if d.format == fi.FormatUnspec {
		d.format = fi.Sockaddr
	}
	if offers.Matched(f.cfg, info) {
		d.format = names.Matched
	}
	d.openGate()
	d.device = backends.NewDevice(d.cfg, d.DomainName(), auth, d.Matches(), d.gate.Word())
	if d.clock, err = probe.OpenClock(d.cfg, d.DomainName(), clockSources); err != nil {
		_ = d.published.Memory.Close()
		f.refs.Release()
		return nil, refuse(log.Domain, fi.ErrnoOf(err), "open domain %s: %v", d.DomainName(), err)
	}
	d.startService()
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.domains = append(opened.domains, d)
	return d, nil
}

func (f *Fabric) checkDomain(info *fi.Info) error {
	if info == nil || info.Domain == nil {
		return fmt.Errorf("no domain attributes: %w", fi.EINVAL)
	}
	a := info.Domain
	switch {
	case a.Name == "":
		return fmt.Errorf("no name: %w", fi.EINVAL)
	case info.Fabric != nil && info.Fabric.Name != "" && info.Fabric.Name != f.attr.Name:
		return fmt.Errorf("%s is in fabric %q, not %q: %w", a.Name, info.Fabric.Name, f.attr.Name, fi.EINVAL)
	}
	return offers.CheckDomain(f.cfg, info)
}

// Close closes the domain. fi.EBUSY while it has open objects.
func (d *Domain) Close() error {
	if err := d.queues.WhenClosed(d.refs.Close); err != nil {
		return err
	}
	d.stopThreads()
	d.stopService()
	d.mappings.Leave()
	d.clock.Close()
	_ = d.published.Memory.Close()
	d.device.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range []*eq.Queue{d.events, d.mrEvents} {
		if q != nil {
			q.Release()
		}
	}
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.domains = slices.DeleteFunc(opened.domains, func(e *Domain) bool { return e == d })
	d.fabric.refs.Release()
	return nil
}

// dscp is the code point of differentiated services that packets of an endpoint carry: that of its own traffic
// class, or else of the domain's.
func (d *Domain) dscp(endpoint *fi.Info) uint8 {
	class := endpoint.Tx.TClass
	if class == fi.TCUnspec {
		class = d.info.Domain.TClass
	}
	point, _ := fi.DSCP(class) // both were checked
	return point
}

// DomainName returns the domain's name.
func (d *Domain) DomainName() string { return d.info.Domain.Name }

// threading returns the model by which the application serialises its calls.
func (d *Domain) threading() fi.Threading {
	if t := d.info.Domain.Threading; t != fi.ThreadUnspec {
		return t
	}
	return fi.ThreadSafe
}

// exclusive says what one thread at a time uses, by fi_domain(3)'s models:
//
//	model       endpoint  CQ, counter  shared context
//	SAFE        shared    shared       shared
//	FID         shared    shared       shared
//	ENDPOINT    shared    shared       shared
//	COMPLETION  alone     alone        shared
//	DOMAIN      alone     alone        alone
//
// Only data transfer calls count; a control operation may come from another
// thread in every model.
//
// FID serialises the calls on each single object, and ENDPOINT those on one
// endpoint with its contexts. But a reader of a completion queue also drives
// the endpoints that are bound to it, while another thread posts on them or
// reads their second queue; and two endpoints on one queue complete there from
// two threads. So nothing is used by one thread alone.
//
// COMPLETION serialises everything that is tied together by a completion queue
// or counter: an endpoint with all its queues and counters, and with it every
// other endpoint on them. A shared receive or transmit context ties nothing
// together: endpoints with different queues use it from different threads. So an
// endpoint of a shared receive context, and its queues, are not alone: see
// peering.exclusive.
//
// DOMAIN serialises everything in the domain.
//
// With a progress thread (threaded) nothing is exclusive: it is one more. With
// FI_TRIGGER an operation is posted by the thread that advances its counter, under
// COMPLETION perhaps by another thread than the one that uses the endpoint. With
// FI_RMA_EVENT and FI_COLLECTIVE a thread that reads the counter of a region, or
// of arrivals, makes progress of endpoints that have nothing else in common with it.
//
// What lies between endpoints, in the same process or not, is never exclusive:
// a sender writes into the receiver's ring under the model of its own domain.
func (d *Domain) exclusive() (ep, cq bool) {
	t := d.threading()
	apart := d.info.Caps&(fi.Trigger|fi.RMAEvent|fi.Collective) == 0
	alone := (t == fi.ThreadDomain || t == fi.ThreadCompletion && apart) && !d.threaded()
	return alone, alone
}

// exclusiveTo reports whether one thread at a time uses an endpoint with capabilities, which the domain may lack: with
// COMPLETION not if readers of counters that have nothing else in common with it make progress of it.
func (d *Domain) exclusiveTo(caps uint64) bool {
	alone, _ := d.exclusive()
	return alone && (d.threading() == fi.ThreadDomain || caps&(fi.Trigger|fi.Collective) == 0)
}

// exclusiveShared reports whether one thread at a time uses a shared receive or
// transmit context; see exclusive.
func (d *Domain) exclusiveShared() bool { return d.threading() == fi.ThreadDomain && !d.threaded() }

// stripes returns the number of transmit stripes, a power of two, of an endpoint
// with a transmit queue of txSize operations. It is one where one thread at a
// time posts: under COMPLETION and DOMAIN because they say so, under FID and
// ENDPOINT because transmits on one endpoint (context) are serialised; unless
// FI_WEFT_TX_STRIPES asks for more there. (A second thread that transmits
// nevertheless, or that makes progress, waits for the lease.)
func (d *Domain) stripes(txSize uint64) int {
	n := d.maxStripes
	switch d.threading() {
	case fi.ThreadDomain, fi.ThreadCompletion:
		n = 1
	case fi.ThreadFID, fi.ThreadEndpoint:
		if d.cfg.TxStripes == 0 {
			n = 1
		}
	}
	return min(n, max(1, floorPower(int(min(txSize/smallestStripe, 1<<16)))))
}

// cqStripes returns the number of stripes that have a ring of their own in a
// completion queue: no endpoint of the domain has more. It is 0, so that the
// queue is one ring, where one thread at a time uses it, and where all
// operations complete under the progress lease, as those do that a device
// matches.
func (d *Domain) cqStripes() int {
	if _, alone := d.exclusive(); alone || d.Matches() {
		return 0
	}
	return d.stripes(1 << 32)
}

// maxStripes returns the configured number of stripes, or one for each core that
// the process may use, rounded down to a power of two.
func maxStripes(configured, cores int) int {
	if configured != 0 {
		return floorPower(configured)
	}
	return floorPower(cores)
}

// floorPower returns the largest power of two that is not above n, 0 for 0.
func floorPower(n int) int {
	if n <= 0 {
		return 0
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// BindEQ binds an event queue: with flags 0 for the events of the endpoints that are
// enabled later and have no queue of their own, with fi.RegMR for memory registrations, which then complete there.
// Errors: fi.EBADFLAGS for other flags, fi.EINVAL if one is bound already or q
// is nil.
func (d *Domain) BindEQ(q *eq.Queue, flags uint64) error {
	if q == nil {
		return fi.EINVAL
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	bound := &d.events
	switch flags {
	case 0:
	case fi.RegMR:
		bound = &d.mrEvents
	default:
		return refuse(log.Domain, fi.EBADFLAGS, "bind event queue: flags %#x", flags)
	}
	if *bound != nil {
		return refuse(log.Domain, fi.EINVAL, "bind event queue: one is bound already")
	}
	if err := q.Acquire(); err != nil {
		return err
	}
	*bound = q
	return nil
}

// Info is what the domain was opened with; not to be changed.
func (d *Domain) Info() *fi.Info { return d.info }
