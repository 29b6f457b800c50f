package provider

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/backends"
)

// Progress without the application. A domain's progress threads drive its
// endpoints through the same lease as all other threads, so nothing in the data
// path knows of them:
//
//	models (control, data)  the thread
//	manual, manual          there is none
//	auto, manual            hybrid: does the copies of rendezvous and runs the timers; arrivals are the caller's
//	any, auto               does everything that a poll would do
//
// For endpoints whose messages a device matches the hybrid is as automatic progress: the device does the copies.
//
// With a thread nothing belongs to one thread alone, whatever the application
// says of its own (see exclusive).

// poolSize is the number of operations that can wait for a progress thread.
const poolSize = 1024

// stopTime bounds how long closing a domain waits for its threads to end.
const stopTime = time.Second

// automatic reports whether the domain's endpoints make all progress by
// themselves, and hybrid whether they do the part that the hybrid has.
func (d *Domain) automatic() bool { return d.info.Domain.DataProgress == fi.ProgressAuto }

func (d *Domain) hybrid() bool {
	return !d.automatic() && d.info.Domain.ControlProgress == fi.ProgressAuto
}

// threaded reports whether threads of weft's use the domain's objects.
func (d *Domain) threaded() bool { return d.automatic() || d.hybrid() }

// progressThreads are a domain's.
type progressThreads struct {
	mu   sync.Mutex // taken when endpoints are enabled and closed
	list []*progressThread
}

type progressThread struct {
	*proxy.Progress
	endpoints int // under progressThreads.mu
}

// join returns the thread of an endpoint's receive context, and starts it on
// first need. node is the NUMA node of the device, -1 if it has none.
func (d *Domain) join(r *rxContext, node int) (*progressThread, error) {
	p := &d.threads
	p.mu.Lock()
	defer p.mu.Unlock()
	t := r.thread
	if t == nil {
		var err error
		if t, err = d.threadFor(node); err != nil {
			return nil, err
		}
	}
	t.endpoints++
	r.setThread(t)
	return t, nil
}

// joinMatched returns the thread of a matched endpoint, as join does.
func (d *Domain) joinMatched(node int) (*progressThread, error) {
	d.threads.mu.Lock()
	defer d.threads.mu.Unlock()
	t, err := d.threadFor(node)
	if err != nil {
		return nil, err
	}
	t.endpoints++
	return t, nil
}

// threadFor returns a thread that has room for an endpoint, which it starts if there is none. The caller has
// threads.mu.
func (d *Domain) threadFor(node int) (*progressThread, error) {
	p := &d.threads
	for _, o := range p.list {
		if limit := d.cfg.ProgressEndpoints; o.Err() == nil && (limit == 0 || o.endpoints < limit) {
			return o, nil
		}
	}
	started, err := d.startThread(len(p.list), node)
	if err != nil {
		return nil, err
	}
	t := &progressThread{Progress: started}
	p.list = append(p.list, t)
	return t, nil
}

func (d *Domain) startThread(number, node int) (*proxy.Progress, error) {
	name := "weft-progress"
	switch {
	case number > 9:
		name = fmt.Sprintf("weft-progr-%d", number)
	case number > 0:
		name = fmt.Sprintf("weft-progress-%d", number)
	}
	c := d.cfg
	t, err := proxy.StartProgress(proxy.ProgressOptions{
		Name:     name,
		Place:    proxy.Placement{CPUs: c.ProgressCPU, Node: node},
		PoolSize: poolSize,
		Policy: proxy.Policy{
			Spin: c.ProgressSpin, Watch: c.ProgressWatch, Check: c.PeerCheckInterval,
			AppendFreq: c.AppendOpFreq, AppendBatch: c.AppendBatch,
		},
		Drive: d.driver(),
		Note:  countTransition,
	})
	if err != nil {
		return nil, fmt.Errorf("progress thread: %w", err)
	}
	if c.DumpSignal != 0 {
		if err := proxy.DumpOn(c.DumpSignal); err != nil {
			log.Warnf(log.Domain, "%v", err)
		}
	}
	return t, nil
}

// countTransition shows what a progress thread does in the page of counters.
func countTransition(t proxy.Transition) {
	switch t {
	case proxy.Activated:
		stats.CountProcess(stats.ProcActivations)
	case proxy.Idled:
		stats.CountProcess(stats.ProcIdlings)
	case proxy.Slept:
		stats.CountProcess(stats.ProcSleeps)
	}
}

// leaveThread takes back join.
func (d *Domain) leaveThread(t *progressThread) {
	d.threads.mu.Lock()
	t.endpoints--
	d.threads.mu.Unlock()
}

// stopThreads ends the threads. No endpoint is open.
func (d *Domain) stopThreads() {
	d.threads.mu.Lock()
	defer d.threads.mu.Unlock()
	for _, t := range d.threads.list {
		if err := t.Stop(stopTime); err != nil {
			log.Warnf(log.Domain, "stop progress thread: %v", err)
		}
	}
	d.threads.list = nil
}

// setThread says which thread a post on the context wakes.
func (r *rxContext) setThread(t *progressThread) {
	if r.thread != nil {
		return
	}
	r.thread = t
	if r.bell.Store(t.Bell()); !r.offload { // else those that sleep on the queues take in what is posted
		atomic.StoreUintptr(&r.hot.Bell, t.Bell().Word())
	}
}

// startBackground gives an enabled endpoint to its progress thread.
func (e *Endpoint) startBackground() error {
	if !e.base.domain.threaded() || e.base.rx.owner != nil {
		return nil
	}
	t, err := e.base.domain.join(e.base.rx, e.base.attr.NUMANode)
	if err != nil {
		return err
	}
	engine := &background{rx: e.base.rx, iface: e.base.transports.iface, source: e.base.source,
		hot: e.base.hot, name: e.base.name.String(), hybrid: e.base.domain.hybrid()}
	if err := t.Add(engine); err != nil {
		e.base.domain.leaveThread(t)
		return err
	}
	e.engine = engine
	return nil
}

// stopBackground takes it away. When it returns, no thread of weft's uses the
// endpoint.
func (e *Endpoint) stopBackground() {
	if e.engine == nil {
		return
	}
	t := e.base.rx.thread
	t.Remove(e.engine)
	e.base.domain.leaveThread(t)
	e.engine = nil
}

// Reserve says that the caller polls the endpoint's queues without a pause, and with on false
// that it does not any longer: a progress thread leaves the endpoint alone meanwhile, and takes
// over at once afterwards. Any number of threads may have it reserved. Without automatic progress nothing changes.
// Errors: fi.EINVAL for more calls with false than with true.
func Reserve(e *Endpoint, on bool) error {
	b := e.engine
	if b == nil {
		return nil
	}
	if on {
		if b.reservers.Add(1) == 1 {
			e.base.rx.thread.Refresh(false)
		}
		return nil
	}
	for n := b.reservers.Load(); n > 0; n = b.reservers.Load() {
		if b.reservers.CompareAndSwap(n, n-1) {
			if n == 1 {
				e.base.rx.thread.Refresh(true)
			}
			return nil
		}
	}
	return refuse(log.EPCtrl, fi.EINVAL, "endpoint %s is not reserved", b.name)
}

// background is an endpoint as a progress thread drives it.
type background struct {
	rx     *rxContext
	iface  backends.Local
	source *cq.Source
	hot    *hot.EP
	name   string
	hybrid bool
	// reservers is how many calls of Reserve have not been taken back. Written by those, read by the thread,
	// sequentially consistent.
	reservers atomic.Int32
}

func (b *background) table() *hot.EP { return b.hot }

// DoorbellFD is the endpoint's doorbell.
func (b *background) DoorbellFD() int {
	if b.hybrid {
		return -1
	}
	return b.source.FD
}

// Arm asks for the doorbell.
func (b *background) Arm() {
	if !b.hybrid {
		b.source.Listen()
	}
}

// Disarm takes that back.
func (b *background) Disarm() {
	if !b.hybrid {
		b.source.Unlisten()
	}
}

// HasWork reports whether Progress would find something.
func (b *background) HasWork() bool {
	if b.hybrid {
		return b.rx.copies.Load()
	}
	return b.iface.Pending() || dataplane.PostsAreWork(b.rx.hot)
}

// Attention reports whether there is work that comes without a doorbell.
func (b *background) Attention() bool {
	return !b.hybrid && atomic.LoadUint32(&b.rx.hot.Attention) != 0
}

// Progress does a batch of the work.
func (b *background) Progress() bool {
	worked := b.progress()
	b.rx.domain.work.PostReady()
	return worked
}

func (b *background) progress() bool {
	r := b.rx.take()
	if r == nil {
		return false
	}
	defer r.give()
	if r.dead {
		return false
	}
	if b.hybrid {
		r.rendezvous.Step()
		r.publish()
		return true
	}
	worked := b.HasWork() || r.rendezvous.Active()
	r.progress()
	return worked || r.onNetwork()
}

// Housekeeping runs the timers.
func (b *background) Housekeeping() { b.rx.tick() }

// Polled reports whether the application makes progress by itself.
func (b *background) Polled() bool {
	return atomic.SwapUint32(&b.hot.Polled, 0) >= hot.PolledEnough && !b.hybrid
}

// Reserved reports whether the application says that it polls.
func (b *background) Reserved() bool { return b.reservers.Load() > 0 }

// String describes the endpoint for the dump. Nothing that the lease protects
// is checked.
func (b *background) String() string {
	h := b.rx.hot
	s := b.iface.Stats()
	return fmt.Sprintf(
		"endpoint %s: lease %d, posted %d, delivered %d, attention %d, copies %v, window open %v, malformed %d, "+
			"peers lost %d",
		b.name, atomic.LoadUint32(&h.Lease), b.rx.posts.Tail()-atomic.LoadUint64(&h.PostsHead), s.Delivered,
		atomic.LoadUint32(&h.Attention), b.rx.copies.Load(),
		atomic.LoadUint32((*uint32)(pointerAt(uint64(b.hot.RxState))))&hot.RxOpen != 0,
		s.Malformed, s.PeersLost)
}
