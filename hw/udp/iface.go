package udp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/hw/udp/internal/xdp"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// Iface is an interface on a network. It implements hw.Iface and hw.Waiter.
type Iface struct {
	cfg       Config // with defaults; immutable
	name      sock.Addr
	keys      []ifaceKey // none without authorisation; immutable
	group     *sock.Group
	stripes   []*stripe
	start     time.Time     // zero of the clock; immutable
	xdp       *xdp.Device   // nil: datagrams go by the kernel. Immutable, like boot.
	boot      time.Duration // the kernel's CLOCK_MONOTONIC at start
	timerLoop timerLoop
	wait      waiter
	nextOne   atomic.Uint32 // stripe of the next connection that we ask for
	count     atomic.Int32  // connections; written with a stripe's lease, read by any thread

	closed atomic.Bool // set by Close; read by any thread
	eager  atomic.Bool // our eager window; written by SetEagerWindow, read by any thread

	// mu guards peers. Connect, Close and CheckPeers take it when a peer
	// comes or goes; no send and no arrival does.
	mu    sync.Mutex
	peers map[target]*Endpoint // that Connect gave out or is making, by the address it was given

	// probes takes the results of probes, nil: none. Stored by SetProbes, read by
	// holders of a stripe's lease.
	probes atomic.Pointer[congestion.Probes]

	lastLog atomic.Int64 // nanoseconds of the clock
	onPeer  func(hw.PeerEvent)
	flushes hw.Pending // parts of joint flushes that wait for room

	deliver delivery // progress lease
	// What Stats counts: added to by any thread, loaded by any; relaxed.
	delivered atomic.Uint64
	malformed atomic.Uint64
	lost      atomic.Uint64
}

// Open makes the interface of the bound UDP socket fd, which it takes over,
// errors included. Errors: hw.ErrInvalid, and those of the kernel.
func Open(fd int, cfg Config) (*Iface, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	name, err := nameOf(fd, cfg.Source)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	i := &Iface{
		cfg: cfg, name: name, start: time.Now(), peers: map[target]*Endpoint{},
		onPeer: func(hw.PeerEvent) {}, wait: waiter{epoll: -1, event: -1},
	}
	i.eager.Store(true)
	if i.keys, err = newKeys(&cfg); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	if err := i.openStripes(fd); err != nil {
		return nil, fmt.Errorf("udp %s: %w", name.String(), err)
	}
	if err := i.openXDP(); err != nil {
		i.freeStripes()
		return nil, fmt.Errorf("udp %s: %w", name.String(), err)
	}
	i.timerLoop.begin(i)
	return i, nil
}

// nameOf is the address by which peers know the interface of fd.
func nameOf(fd int, source []byte) (sock.Addr, error) {
	name, err := sock.Bound(fd)
	if err != nil {
		return name, fmt.Errorf("udp: address of the socket: %w", err)
	}
	if !name.IsAny() {
		return name, nil
	}
	if len(source) == 0 {
		return name, fmt.Errorf("udp: socket bound to %s and no source: %w", name.String(), hw.ErrInvalid)
	}
	s, err := sock.Parse(source)
	if err != nil {
		return name, fmt.Errorf("udp: source: %w: %w", err, hw.ErrInvalid)
	}
	return s.WithPort(name.Port()), nil
}

// openStripes makes the sockets and what belongs to each.
func (i *Iface) openStripes(fd int) error {
	o := sock.Options{
		Stripes: i.cfg.Stripes, Buffer: i.cfg.Buffer,
		NoEBPF: i.cfg.NoEBPF, NoCBPF: i.cfg.NoCBPF, NoGSO: i.cfg.NoGSO,
		NoInbox: i.cfg.NoInbox || i.cfg.XDP != XDPOff,
		Class:   i.cfg.Class,
	}
	if bound, err := sock.Bound(fd); err == nil && bound.IsAny() {
		o.Source = i.name // else datagrams come from there anyway
	}
	group, err := sock.NewGroup(fd, o)
	if err != nil {
		return err
	}
	cookies, err := crypt.NewCookies()
	if err != nil {
		group.Close()
		return err
	}
	i.group = group
	if i.boot, err = monotonicAt(i.start); err != nil {
		group.Close()
		return err
	}
	if group.Refused != nil {
		i.logf("%d stripes by %v: %v", len(group.Sockets), group.Steering, group.Refused)
	}
	for n, s := range group.Sockets {
		st, err := newStripe(i, uint8(n), s, cookies.Share())
		if err != nil {
			i.freeStripes()
			return err
		}
		i.stripes = append(i.stripes, st)
	}
	return nil
}

func (i *Iface) freeStripes() {
	for _, s := range i.stripes {
		s.release()
	}
	if i.xdp != nil {
		i.xdp.Close()
	}
	i.group.Close()
}

// now reads the interface's clock, which is monotonic and never 0.
func (i *Iface) now() congestion.Time { return congestion.Time(time.Since(i.start)) + 1 }

// Attr is what the interface can do. The estimates are for a current
// Ethernet; they order transports and are no promise.
func (i *Iface) Attr() hw.Attr {
	a := hw.Attr{
		Caps:       hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered | hw.CapWakeup | hw.CapFlush | hw.CapDrops,
		MaxAMShort: maxShort,
		MaxAMHead:  maxHead,
		MaxAMBcopy: i.cfg.MaxBcopy,
		EagerAM:    i.cfg.Eager,
		Bandwidth:  1.25e9,
		Latency:    10e-6,
		Overhead:   2e-6,
		DeviceName: "udp",
		NUMANode:   -1,
		Priority:   10,
	}
	if i.cfg.Memory != nil {
		a.Caps |= hw.CapPutZcopy | hw.CapPutPlaced | hw.CapGetZcopy
		a.MaxPutZcopy, a.MaxGetZcopy, a.MaxIOV = maxOneSided, maxOneSided, maxIOV
	}
	return a
}

// Memory is the memory domain of the configuration.
func (i *Iface) Memory() hw.MemoryDomain {
	if i.cfg.Memory == nil {
		return nil
	}
	return i.cfg.Memory
}

// Address is the socket address in canonical form, padding and flow label are 0; for an
// interface of a PortMapper that of the name, and the number.
func (i *Iface) Address() []byte {
	t := target{Addr: nameIn(&i.name, i.cfg.role), number: i.cfg.role.Number}
	return t.bytes()
}

// SetHandler installs the handler of id, before the first Progress.
func (i *Iface) SetHandler(id hw.AMID, h hw.Handler) { i.deliver.handlers[id] = h }

// OnPeerEvent installs the function that CheckPeers calls.
func (i *Iface) OnPeerEvent(f func(hw.PeerEvent)) { i.onPeer = f }

// Stats returns the counters. Any thread may call it.
func (i *Iface) Stats() hw.Stats {
	return hw.Stats{Delivered: i.delivered.Load(), Malformed: i.malformed.Load(), PeersLost: i.lost.Load()}
}

// SetEagerWindow publishes to senders whether eager payloads are welcome. An open
// interface starts with it open. Any thread may call it.
func (i *Iface) SetEagerWindow(open bool) {
	if i.eager.Swap(open) == open || i.closed.Load() {
		return
	}
	now := i.now()
	for _, s := range i.stripes {
		s.lease.lock()
		for _, c := range s.conns {
			if c != nil && c.alive() && c.rx.seen.Any() {
				c.rx.creditDue = true
				c.rx.owe(now, true)
			}
		}
		s.acks(now)
		s.leave()
	}
}

// logf writes a line, but at most ten in a second, so that a hostile peer
// cannot fill the log.
func (i *Iface) logf(format string, args ...any) {
	now := int64(i.now())
	last := i.lastLog.Load()
	if (last == 0 || now-last >= int64(100*time.Millisecond)) && i.lastLog.CompareAndSwap(last, now) {
		i.cfg.Logf("udp %s: %s", i.name.String(), fmt.Sprintf(format, args...))
	}
}
