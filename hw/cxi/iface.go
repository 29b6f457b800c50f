package cxi

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/hw/internal/bounce"
	"github.com/weft-fabric/weft/hw/internal/flushes"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Sizes of the peer table and of id spaces.
const (
	maxPeers = 1 << 24
	maxID    = uint32(hw.MaxAM)
)

// Iface is an interface on a NIC. It implements hw.Iface, and what its
// capabilities say.
type Iface struct {
	cfg      Config // with defaults; immutable
	d        *MemoryDomain
	networks networks // the own virtual network, or those of Config.Match
	wait     *libcxi.WaitObject
	addr     address // immutable, as what follows to bell
	name     []byte

	tx     []*txQueue
	bounce pinned
	stride int // bytes of a bounce buffer
	pools  bounce.Pools
	bell   *bell

	closed atomic.Bool // set by Close; read by any thread
	// window is 1 while the eager window is closed. Written by SetEagerWindow.
	window atomic.Uint32

	// mu guards changes of peers and ids. Connect, the first message of a peer and its end take it; no other send
	// or arrival does.
	mu      sync.Mutex
	peers   atomic.Pointer[[]*Endpoint] // by index; replaced as a whole under mu
	streams uint32                      // how many endpoints there were; under mu
	ids     atomic.Pointer[idTable]     // by match id; under mu, read by the lease holder

	// todo are endpoints with which the lease holder must do something.
	todoMu sync.Mutex // not on the data path: anyTodo says that the list is empty
	todo   []*Endpoint
	// anyTodo is set under todoMu and read by every Progress.
	anyTodo atomic.Bool

	flushes flushes.List
	driver  driver
	resting []restingPeer // under mu

	lastLog atomic.Int64 // nanoseconds
	rx      receiver
	match   *matcher // nil without Config.Match
	named   *ownName // nil without Config.Named; immutable
}

// Open makes an interface. Errors: hw.ErrInvalid for a configuration out of range; hw.ErrNoResource when the service
// has no more of what it needs.
func (d *MemoryDomain) Open(cfg Config) (*Iface, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	i := &Iface{cfg: cfg, d: d}
	i.peers.Store(new([]*Endpoint))
	i.ids.Store(newIDTable(0))
	i.rx.init(i)
	for _, step := range []func() error{i.openDriver, i.openAddress, i.openNamed, i.openBounce, i.openQueues,
		i.rx.open, i.openMatcher, i.openWatch} {
		if err := step(); err != nil {
			return nil, errors.Join(err, i.release())
		}
	}
	i.name = i.addr.appendTo(nil)
	if len(i.cfg.Name) > 0 {
		i.name = append([]byte(nil), i.cfg.Name...)
	}
	return i, nil
}

// openAddress takes a PID and makes the address.
func (i *Iface) openAddress() (err error) {
	if err = i.networks.open(i.d, i.cfg.vnis(i.d), i.cfg.pid()); err != nil {
		return err
	}
	if i.cfg.Match != nil {
		i.networks.openRestricted(i.d)
	}
	if i.wait, err = i.d.lni.NewWaitObject(); err != nil {
		i.wait = nil
		return limit(err)
	}
	var seed [8]byte
	rand.Read(seed[:]) // never fails
	i.addr = address{
		nid: i.d.dev.NID, pid: i.networks[0].pid.PID(), pidBits: uint8(i.d.pidBits()), vni: i.networks[0].vni,
		longest: uint32(i.cfg.longest()+63) &^ 63, nonce: binary.LittleEndian.Uint64(seed[:]) | 1,
	}
	return nil
}

// openDriver lets C drive the interface, where it can and may.
func (i *Iface) openDriver() error {
	if !i.cfg.Direct && !profiled || !seam.Possible() {
		return nil
	}
	if err := i.driver.open(i); err != nil {
		return fmt.Errorf("cxi: what C needs: %w: %w", err, hw.ErrNoResource)
	}
	return nil
}

// openBounce maps the bounce buffers.
func (i *Iface) openBounce() (err error) {
	i.stride = (i.cfg.longest() + 63) &^ 63
	if i.bounce, err = i.d.newPinned(i.stride*i.cfg.BounceCount, libcxi.MapRead|libcxi.MapWrite); err != nil {
		return err
	}
	i.pools.Open(i.cfg.BounceCount, i.cfg.Stripes)
	return nil
}

// openQueues makes the transmit queues and the bell.
func (i *Iface) openQueues() (err error) {
	for range i.cfg.Queues {
		q := new(txQueue)
		i.tx = append(i.tx, q)
		if err = q.open(i, i.wait); err != nil {
			return err
		}
	}
	i.bell, err = newBell()
	return err
}

// maxTransfer is the most bytes of one put or get.
const maxTransfer = 1 << 30

// Attr says what the interface can do.
func (i *Iface) Attr() hw.Attr {
	a := hw.Attr{
		Caps: hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered | hw.CapFlush | hw.CapWakeup |
			hw.CapPutZcopy | hw.CapGetZcopy | hw.CapOneSidedFree,
		MaxAMShort:  nic.MaxInline,
		MaxAMHead:   nic.MaxInline,
		MaxAMBcopy:  i.cfg.BounceBytes,
		MaxPutZcopy: maxTransfer,
		MaxGetZcopy: maxTransfer,
		MaxIOV:      1,
		Bandwidth:   float64(i.d.dev.LinkMbps) * 1e6 / 8,
		Latency:     2e-6,
		Overhead:    100e-9,
		DeviceName:  i.d.dev.Name,
		NUMANode:    i.d.dev.NUMANode,
		Priority:    50,
	}
	if i.d.dev.Platform == wire.PlatformNetsim {
		a.Caps |= hw.CapSoftware
	}
	if i.driver.transport.Len() != 0 {
		a.Caps |= hw.CapDriven
	}
	if i.match != nil {
		a.Caps |= hw.CapMatching
	}
	return a
}

// Memory is the domain on which the interface was opened.
func (i *Iface) Memory() hw.MemoryDomain { return i.d }

// Address is the name, or the device address if there is none.
func (i *Iface) Address() []byte { return i.name }

// DeviceAddress is what Config.Resolve turns the interface's name into.
func (i *Iface) DeviceAddress() []byte { return i.addr.appendTo(nil) }

// CheckDevice checks that b is a DeviceAddress.
func (i *Iface) CheckDevice(b []byte) error {
	_, err := parseAddress(b)
	return err
}

// SetHandler installs the handler of id, before the first Progress.
func (i *Iface) SetHandler(id hw.AMID, h hw.Handler) { i.rx.handlers[id] = h }

// OnPeerEvent installs the function that is called when a peer is gone.
func (i *Iface) OnPeerEvent(f func(hw.PeerEvent)) { i.rx.onPeer = f }

// Stats returns the counters. Any thread may call it.
func (i *Iface) Stats() hw.Stats {
	delivered := i.rx.delivered.Load()
	if i.driver.transport.Len() != 0 {
		delivered += atomic.LoadUint64(&i.HotTransport().Taken)
	}
	malformed := i.rx.malformed.Load()
	if i.match != nil {
		malformed += i.match.rx.malformed.Load()
	}
	return hw.Stats{Delivered: delivered, Malformed: malformed, PeersLost: i.rx.lost.Load()}
}

// Doorbells is how often the NIC was notified of something posted. The caller has stopped all threads that post.
func (i *Iface) Doorbells() (n uint64) {
	for _, q := range i.tx {
		n += q.q.Bells
	}
	return n
}

// logf writes a line, but at most ten in a second, so that a hostile peer
// cannot fill the log.
func (i *Iface) logf(format string, args ...any) {
	now := time.Now().UnixNano()
	last := i.lastLog.Load()
	if now-last >= int64(100*time.Millisecond) && i.lastLog.CompareAndSwap(last, now) {
		i.cfg.Logf("cxi %s: %s", i.d.dev.Name, fmt.Sprintf(format, args...))
	}
}

// errCommand says that the NIC refuses a command. All peers are lost then.
func errCommand(code uint32) error {
	return fmt.Errorf("cxi: the NIC refuses a command: %s: %w", codeText(code), unix.EIO)
}

// deviceLost ends all peers.
func (i *Iface) deviceLost(err error) {
	for _, e := range *i.peers.Load() {
		if e != nil {
			e.fail(err)
		}
	}
}

// peer is the one with an index, nil if there is none.
func (i *Iface) peer(index uint32) *Endpoint {
	if list := *i.peers.Load(); uint64(index) < uint64(len(list)) {
		return list[index]
	}
	return nil
}

// notify has the lease holder serve an endpoint.
func (i *Iface) notify(e *Endpoint) {
	i.notifyLater(e)
	i.bell.Ring()
}

// notifyLater does so without a wake-up.
func (i *Iface) notifyLater(e *Endpoint) {
	i.todoMu.Lock()
	if !e.listed {
		e.listed = true
		i.todo = append(i.todo, e)
	}
	i.anyTodo.Store(true)
	i.todoMu.Unlock()
}

// takeTodo returns the endpoints to serve.
func (i *Iface) takeTodo() []*Endpoint {
	i.todoMu.Lock()
	defer i.todoMu.Unlock()
	list := i.todo
	i.todo = nil
	i.anyTodo.Store(false)
	for _, e := range list {
		e.listed = false
	}
	return list
}

// release gives back what Open has made, in reverse.
func (i *Iface) release() error {
	var errs []error
	if i.match != nil {
		errs = append(errs, i.match.close())
	}
	errs = append(errs, i.rx.close())
	for _, q := range i.tx {
		errs = append(errs, q.close())
	}
	if i.bell != nil {
		errs = append(errs, i.bell.close())
	}
	errs = append(errs, i.bounce.close(), i.named.close())
	i.driver.close()
	if i.wait != nil {
		errs = append(errs, i.wait.Close())
	}
	errs = append(errs, i.networks.close(i.d))
	return errors.Join(errs...)
}
