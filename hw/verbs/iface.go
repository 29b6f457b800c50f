package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/bounce"
	"github.com/weft-fabric/weft/hw/internal/doorbell"
	"github.com/weft-fabric/weft/hw/internal/flushes"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Sizes of the peer table and of id spaces.
const (
	maxPeers = 1 << transport.IndexBits
	// pollBatch bounds how many completions of each queue one Progress takes.
	pollBatch = 64
)

// Iface is an interface on a device. It implements hw.Iface, and what its
// capabilities say.
type Iface struct {
	cfg  Config // with defaults; immutable
	d    *MemoryDomain
	addr address // immutable, as what follows to svc
	name []byte

	memory  []byte // receive buffers, then bounce buffers; off the Go heap
	mr      *ibv.MR
	first   uint64 // address of memory
	stride  int    // bytes of a buffer
	scratch *Memory
	channel *ibv.Channel
	recvCQ  *ibv.CQ
	srq     *ibv.SRQ
	sendCQs []*sendCQ
	sendMem mem.Array[transport.SendCQ]
	blocks  *blockPool
	pools   bounce.Pools
	rings   ringPool
	bell    *doorbell.Bell
	svc     *service

	closed atomic.Bool // set by Close; read by any thread
	// signalsDue asks Progress to have the completions of all queues signaled, because
	// buffers or places are short. Set by threads that post, taken by the lease holder.
	signalsDue atomic.Bool
	// window is 1 while the eager window is closed. Written by SetEagerWindow.
	window atomic.Uint32

	// mu guards byKey, gone, and changes of peers. Connect, the service and
	// the end of a peer take it; no send or arrival does.
	mu    sync.Mutex
	byKey map[[addressBytes]byte]*Endpoint
	gone  graveyard
	peers atomic.Pointer[[]*Endpoint] // by index; replaced as a whole under mu

	// todo are endpoints with which the lease holder must do something.
	todoMu sync.Mutex // not on the data path: anyTodo says that the list is empty
	todo   []*Endpoint
	// anyTodo is set under todoMu and read by every Progress.
	anyTodo atomic.Bool

	flushes flushes.List

	lastLog atomic.Int64 // nanoseconds
	rx      receiver
}

// Open makes an interface. Errors: hw.ErrInvalid for a configuration out of
// range; hw.ErrNoResource when the limit on locked memory or the device has no
// room.
func (d *MemoryDomain) Open(cfg Config) (*Iface, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(d.attr); err != nil {
		return nil, err
	}
	i := &Iface{cfg: cfg, d: d, byKey: map[[addressBytes]byte]*Endpoint{}, gone: newGraveyard()}
	i.peers.Store(new([]*Endpoint))
	i.rx.init(i)
	for _, step := range []func() error{i.openMemory, i.openQueues, i.openService} {
		if err := step(); err != nil {
			return nil, errors.Join(err, i.release())
		}
	}
	i.name = i.addr.appendTo(nil)
	if len(cfg.Name) > 0 {
		i.name = append([]byte(nil), cfg.Name...)
	}
	d.add(i)
	i.svc.run()
	return i, nil
}

// openMemory maps and registers the buffers.
func (i *Iface) openMemory() error {
	i.stride = (transport.HeaderBytes + maxShort + i.cfg.BounceBytes + 63) &^ 63
	n := i.stride * (i.cfg.RxBuffers + i.cfg.BounceCount)
	var err error
	if i.memory, err = mapPinned(n); err != nil {
		return fmt.Errorf("verbs: buffers: %w: %w", err, hw.ErrNoResource)
	}
	i.first = mem.Address(i.memory)
	if i.mr, err = i.d.pd.Register(i.first, uint64(len(i.memory)), ibv.LocalWrite); err != nil {
		i.mr = nil
		return registered(err, uint64(len(i.memory)))
	}
	// A word that peers read to know that what they wrote before has arrived.
	s, err := i.d.Alloc(hw.Region{Len: 64, Access: hw.RemoteRead})
	if err != nil {
		return err
	}
	i.scratch = s.(*Memory)
	if err := i.rings.open(i.cfg.EagerPeers); err != nil {
		return fmt.Errorf("verbs: rings: %w: %w", err, hw.ErrNoResource)
	}
	i.blocks = &blockPool{pd: i.d.pd, depth: i.cfg.depth()}
	i.pools.Open(i.cfg.BounceCount, i.cfg.Stripes)
	return nil
}

// openQueues makes the completion queues and the shared receive queue.
func (i *Iface) openQueues() error {
	var err error
	if i.channel, err = i.d.ctx.NewChannel(); err != nil {
		return resource(err)
	}
	if i.recvCQ, err = i.d.ctx.NewCQ(i.cfg.RxBuffers, i.channel, false); err != nil {
		i.recvCQ = nil
		return resource(err)
	}
	size := min(max(4*i.cfg.depth(), 4096), i.d.attr.MaxCQE)
	if i.sendMem, err = mem.NewArray[transport.SendCQ](i.cfg.Stripes); err != nil {
		return resource(err)
	}
	for n := range i.cfg.Stripes {
		cq, err := i.d.ctx.NewCQ(size, i.channel, i.cfg.Stamps && i.d.attr.Clock != ibv.Clock{})
		if err != nil {
			return resource(err)
		}
		i.sendCQs = append(i.sendCQs, &sendCQ{cq, i.sendMem.At(uint32(n))})
		i.sendCQs[n].Size = int64(size)
	}
	if i.srq, err = i.d.pd.NewSRQ(i.cfg.RxBuffers); err != nil {
		i.srq = nil
		return resource(err)
	}
	if err = i.rx.openTransport(); err != nil {
		return resource(err)
	}
	if i.bell, err = doorbell.New(); err != nil {
		return fmt.Errorf("verbs: %w", err)
	}
	return nil
}

// openService makes the service queue pair and the address.
func (i *Iface) openService() error {
	var seed [16]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return fmt.Errorf("verbs: random number: %w", err)
	}
	i.addr = address{
		ethernet: i.d.info.Ethernet, kind: i.d.gid.kind, mtu: uint8(i.d.info.ActiveMTU), lid: i.d.info.LID,
		gid: i.d.gid.gid,
		// The upper bit of a key would ask for a privileged one.
		qkey:  binary.LittleEndian.Uint32(seed[:]) &^ (1 << 31),
		nonce: binary.LittleEndian.Uint64(seed[8:]) | 1,
	}
	var err error
	if i.svc, err = newService(i); err != nil {
		return err
	}
	i.addr.qp = i.svc.qp.Num
	return nil
}

// resource marks an error of making a device's object as one of having no room.
func resource(err error) error { return fmt.Errorf("verbs: no room: %w: %w", err, hw.ErrNoResource) }

// Attr returns what the interface can do.
func (i *Iface) Attr() hw.Attr {
	a := hw.Attr{
		Caps: hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered | hw.CapFlush |
			hw.CapPutZcopy | hw.CapGetZcopy | hw.CapOneSidedFree | hw.CapDriven,
		MaxAMShort:  maxShort,
		MaxAMHead:   maxShort,
		MaxAMBcopy:  i.cfg.BounceBytes,
		MaxPutZcopy: i.maxMessage(),
		MaxGetZcopy: i.maxMessage(),
		MaxIOV:      max(1, i.maxReadIOV()),
		Bandwidth:   i.d.info.Bandwidth,
		Latency:     2e-6,
		Overhead:    300e-9,
		DeviceName:  i.d.dev.Name,
		NUMANode:    i.d.dev.NUMANode,
		Priority:    50,
	}
	if i.cfg.EagerPeers == 0 {
		a.Caps |= hw.CapWakeup
	}
	if i.d.attr.Software {
		a.Caps |= hw.CapSoftware
	}
	return a
}

// Memory is the domain on which the interface was opened.
func (i *Iface) Memory() hw.MemoryDomain { return i.d }

// HotTransport is what C drives.
func (i *Iface) HotTransport() *hot.Transport { return &i.rx.transport.Hot }

// HotPath is what C sends with.
func (e *Endpoint) HotPath() *hot.Path { return &e.c.Path }

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
	return hw.Stats{
		Delivered: i.rx.delivered.Load() + i.rx.transport.Delivered(),
		Malformed: i.rx.malformed.Load(),
		PeersLost: i.rx.lost.Load(),
	}
}

// logf writes a line, but at most ten in a second, so that a hostile peer
// cannot fill the log.
func (i *Iface) logf(format string, args ...any) {
	now := time.Now().UnixNano()
	last := i.lastLog.Load()
	if now-last >= int64(100*time.Millisecond) && i.lastLog.CompareAndSwap(last, now) {
		i.cfg.Logf("verbs %s: %s", i.d.dev.Name, fmt.Sprintf(format, args...))
	}
}

// notify has the lease holder serve an endpoint.
func (i *Iface) notify(e *Endpoint) {
	i.todoMu.Lock()
	if !e.listed {
		e.listed = true
		i.todo = append(i.todo, e)
	}
	i.anyTodo.Store(true)
	i.todoMu.Unlock()
	i.notifyPoll()
	i.bell.Ring()
}

// takeTodo returns the endpoints that need upkeep.
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

// deviceLost ends all connections.
func (i *Iface) deviceLost(err error) {
	for _, e := range *i.peers.Load() {
		if e != nil {
			e.fail(err)
		}
	}
}

// portUp tries again at once what waits for a path.
func (i *Iface) portUp() { i.svc.do(i.svc.hurry) }

// release gives back what Open has made, in reverse.
func (i *Iface) release() error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if i.svc != nil {
		add(i.svc.release())
	}
	if i.bell != nil {
		add(i.bell.Close())
	}
	if i.srq != nil {
		add(i.srq.Close())
	}
	for _, q := range i.sendCQs {
		add(q.cq.Close())
	}
	if i.recvCQ != nil {
		add(i.recvCQ.Close())
	}
	if i.channel != nil {
		add(i.channel.Close())
	}
	if i.blocks != nil {
		add(i.blocks.close())
	}
	if i.scratch != nil {
		add(i.scratch.Close())
	}
	if i.mr != nil {
		add(i.mr.Close())
	}
	if i.rx.transport != nil {
		add(i.rx.transport.Close())
	}
	add(i.rings.close())
	add(i.sendMem.Free())
	add(mem.Unmap(i.memory))
	return errors.Join(errs...)
}
