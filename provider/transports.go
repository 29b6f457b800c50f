package provider

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/internal/watch"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/probe"
)

// An endpoint's transports are numbered: 0 is the one to peers that share this host's memory, the others are networks,
// in the order of their priorities (hw.Attr). A peer on another host is reached over the first of those that leads to
// it. That is decided when the link connects, before anything is sent, so messages to a peer keep their order.

// transport is an interface of an endpoint with what belongs to it.
type transport struct {
	hw.Iface
	attr    hw.Attr                     // immutable; on and paths point at it
	number  uint32                      // in Endpoint.transports
	sources []sender                    // by the interface's hw.Source; the lease holder's
	answer  func(hw.Source) hw.Endpoint // see hw.Answerer, nil: not offered
	// to the sources, by number, that are not a link's path; nil: none; the lease holder's
	backs   []*path
	network *watch.Transport // nil: peers that share memory with us
	eager   uint64           // bytes of the longest message that goes with its payload
	coll    coll.Transport   // the transport as collective operations have it; immutable from addTransport on
	on      rma.Transport    // as one-sided operations have it; immutable once there are paths
}

// The endpoint's sources are those of its transports, with the transport's number above
// the interface's own number: 4 and 20 bits, which match.Message has room for.
const (
	sourceShift = 20
	sourceMask  = 1<<sourceShift - 1
)

// transportSet are an endpoint's transports, by number. Immutable from Enable on.
type transportSet struct {
	iface      backends.Local // of the first transport
	transports []*transport
	probers    []*probe.Prober    // of these transports
	networks   []*watch.Transport // of the transports to other hosts
	// listeners are the queues on which those sleep that arrivals there wake: the endpoint's, from startNetworks on,
	// with counters that are bound later. Stored under the endpoint's mu, read by any thread; sequentially consistent.
	listeners atomic.Pointer[[]queue]
	devicesOf []tokens.Device // interfaces of networks that tokens name
	names     io.Closer       // answers for the names of those that have no socket addresses, nil: there are none
	unbelled  bool            // peers may write what rings no bell
}

// transportOf returns the transport that a source belongs to, and its number there.
func (e *transportSet) transportOf(src hw.Source) (*transport, hw.Source) {
	return e.transports[src>>sourceShift], src & sourceMask
}

// source is the endpoint's source that is a source of the transport's interface.
func (p *transport) source(src hw.Source) hw.Source { return hw.Source(p.number)<<sourceShift | src }

// addTransport makes a transport of an open interface.
func (e *leasedEP) addTransport(i hw.Iface) *transport {
	p := &transport{Iface: i, attr: i.Attr(), number: uint32(len(e.ep.transports))}
	if a, ok := i.(hw.Answerer); ok {
		p.answer = a.Answer
	}
	p.eager = eagerOver(e.ep.domain.cfg, &p.attr)
	p.on = rma.Transport{
		Attr: &p.attr, Number: p.number, Segments: flow.On(e.ep.domain.cfg, &p.attr),
		Device: rkey.Device{Domain: i.Memory(), Cache: e.ep.domain.device.Cache(i.Memory())},
	}
	p.coll = p.collTransport()
	e.ep.transports = append(e.ep.transports, p)
	e.setHandlers(p)
	return p
}

// eagerOver is the longest message, in bytes, that goes over a transport with its payload.
func eagerOver(c *config.Config, a *hw.Attr) uint64 {
	if a.EagerAM > 0 {
		return uint64(min(a.EagerAM, a.MaxAMBcopy))
	}
	return uint64(min(c.EagerSize, a.MaxAMBcopy))
}

// connectOver connects to the peer of a link over the first transport that leads to it. One with an address of another
// network namespace may share memory with us (FI_WEFT_SHM_ACROSS), and one with an address of this host may share no
// memory with us: it has a /dev/shm or an FI_WEFT_SHM_DIR of its own, as containers do. Then it is reached as on
// another host. Errors as of hw.Iface's Connect; hw.ErrNoPath without a transport.
func (e *peering) connectOver(l *link) (hw.Endpoint, *transport, error) {
	here := e.domain.local.Has(l.to.Name)
	if len(e.transports) > 1 && (e.apart || !here && !e.domain.cfg.Across()) {
		return e.connectFirst(l, e.transports[1:])
	}
	own := e.transports[0]
	ep, err := own.Connect(l.raw)
	at := l.path.Load()
	if err == nil || len(e.transports) == 1 || !errors.Is(err, hw.ErrUnreachable) || at != nil && at.transport == own {
		return ep, own, err // one that shared memory with us is gone, or starts again and will
	}
	far, p, farErr := e.connectFirst(l, e.transports[1:])
	if farErr != nil {
		return nil, own, peers.WithEnd(err, farErr) // it may still come up
	}
	// The peer has answered, and it made its segment before it could.
	ep, err = own.Connect(l.raw)
	if err == nil || !errors.Is(err, hw.ErrUnreachable) {
		return ep, own, err
	}
	if here {
		l.detour(own, err)
	}
	return far, p, nil
}

// connectFirst connects over the first of some transports that leads to the peer. One where nothing answers yet is
// waited for; after another error the next is tried, and what the last one says counts, and that the peer has ended if
// any says so.
func (e *peering) connectFirst(l *link, list []*transport) (hw.Endpoint, *transport, error) {
	for _, p := range list {
		p.wake() // the answer is worth polling for
	}
	var before error
	for i, p := range list {
		ep, err := p.Connect(l.raw)
		err = peers.WithEnd(err, before)
		if err == nil || i == len(list)-1 || errors.Is(err, hw.ErrUnreachable) && !errors.Is(err, hw.ErrNoPath) {
			return ep, p, err
		}
		l.detour(p, err)
		before = err
	}
	return nil, nil, hw.ErrNoPath
}

// wake has polls include the transport if it is one to other hosts.
func (p *transport) wake() {
	if p.network != nil {
		p.network.Notify()
	}
}

// handler is h for the messages of a transport.
func (e *leasedEP) handler(p *transport, h hw.Handler) hw.Handler {
	if p.number == 0 {
		return h
	}
	return func(src hw.Source, header uint64, head, payload []byte) {
		h(p.source(src), header, head, payload)
		if p == e.ep.driven {
			e.fillTransportSource(p.source(src))
		}
	}
}

// peerEvent is f for the events of a transport.
func (p *transport) peerEvent(f func(hw.PeerEvent)) func(hw.PeerEvent) {
	return func(ev hw.PeerEvent) {
		ev.Source = p.source(ev.Source)
		f(ev)
	}
}

// known returns the sender behind a source, if it was met.
func (e *leasedEP) known(src hw.Source) (sender, bool) {
	p, own := e.ep.transportOf(src)
	if int(own) >= len(p.sources) || p.sources[own].id == 0 {
		return sender{}, false
	}
	return p.sources[own], true
}

// setKnown enters the sender behind a source, or takes it out.
func (e *leasedEP) setKnown(src hw.Source, s sender) {
	p, own := e.ep.transportOf(src)
	for int(own) >= len(p.sources) {
		p.sources = append(p.sources, sender{})
	}
	p.sources[own] = s
}

// sourceReaches reports whether an address leads to the interface behind a source.
func (e *transportSet) sourceReaches(src hw.Source, a peers.Address) bool {
	p, own := e.transportOf(src)
	return p.SourceReaches(own, a.Raw())
}

// sourceWords are the words that a source shares with us, nil if there are none.
func (e *transportSet) sourceWords(src hw.Source) *[4]uint64 {
	p, own := e.transportOf(src)
	if s, ok := p.Iface.(hw.SourceWords); ok {
		return s.SourceWords(own)
	}
	return nil
}

// reads reports whether the memory of a source's process can be read.
func (e *transportSet) reads(src hw.Source) bool {
	p, _ := e.transportOf(src)
	return p.attr.Caps&hw.CapPeerMemory != 0
}

// gets reports whether memory that a source exposes can be read.
func (e *transportSet) gets(src hw.Source) bool {
	p, _ := e.transportOf(src)
	return p.exposes()
}

// arrivals takes in what has arrived at all transports, and returns how many messages that were.
func (e *leasedEP) arrivals(limit int) (n int) {
	if !e.ep.mute() {
		n = e.ep.iface.Progress(limit)
		e.countBatch(n)
	}
	return n + e.networkArrivals(limit)
}

// networkArrivals is arrivals at the transports to other hosts.
func (e *leasedEP) networkArrivals(limit int) (n int) {
	if e.ep.mute() {
		return 0
	}
	for _, p := range e.ep.networks {
		got := p.Poll(limit, e.waitsForNetwork)
		e.countBatch(got)
		n += got
	}
	return n
}

// onNetwork reports whether polls enter the runtime for transports to other hosts.
func (e *transportSet) onNetwork() bool {
	for _, n := range e.networks {
		if n.Busy() && n.Driven() == nil {
			return true
		}
	}
	return false
}

// watched reports whether polls include transports to other hosts, by the runtime or not, because of traffic there.
func (e *transportSet) watched() bool {
	for _, n := range e.networks {
		if n.Belled() && n.Busy() {
			return true
		}
	}
	return false
}

// setEagerWindow opens or closes the eager window at all transports: senders read it before each message.
func (e *transportSet) setEagerWindow(open bool) {
	for _, p := range e.transports {
		p.SetEagerWindow(open)
	}
}

// closeTransports closes the interfaces.
func (e *transportSet) closeTransports() {
	e.stopProbers()
	for _, n := range e.networks {
		n.Close()
	}
	e.networks = nil
	// Networks first: no peer finds the segment gone while the network answers.
	for _, p := range slices.Backward(e.transports) {
		_ = p.Close()
	}
	e.transports, e.iface, e.devicesOf = nil, nil, nil
	if e.names != nil {
		_ = e.names.Close()
		e.names = nil
	}
}

// openNetworks opens the transports to other hosts.
func (e *leasedEP) openNetworks() error {
	caps := e.ep.info.Caps
	if e.ep.scalable != nil {
		caps = e.ep.scalable.info.Caps // no context has it
	}
	if caps&fi.RemoteComm == 0 && !e.ep.apart {
		return nil
	}
	networks, err := transportsOf(&e.ep).OpenNetworks()
	if err != nil {
		return err
	}
	e.ep.names, e.ep.unbelled = networks.Names, networks.Unbelled
	list := networks.Ifaces
	slices.SortStableFunc(list, func(a, b hw.Iface) int { return b.Attr().Priority - a.Attr().Priority })
	for _, i := range list {
		p := e.addTransport(i)
		e.ep.addDevice(p)
		p.network = watch.New(p.Iface, networkOwner{&e.ep.peering}, nil)
		e.ep.networks = append(e.ep.networks, p.network)
	}
	return nil
}

// transportsOf is an endpoint, which is about to be enabled, as its transports have it.
func transportsOf(e *Endpoint) *backends.Endpoint {
	t := &backends.Endpoint{
		Config: e.domain.cfg, Device: e.domain.device, Name: e.name, Context: e.context, Socket: e.socket,
		Auth: e.auth, Keys: e.keys, Stripes: e.stripeCount() + 1, Class: e.domain.dscp(e.info),
		Apart: e.apart, Polled: e.polled(), Direct: plane.Load(),
		Program: e.domain.fabric.program.Networks(),
	}
	if e.scalable != nil {
		t.Mapper = e.scalable.mapper
	}
	return t
}

// openLocal opens the transport to peers on this host, to which regions are published that those with the domain's key
// reach by themselves.
func openLocal(e *Endpoint) (backends.Local, error) {
	t := transportsOf(e)
	return t.OpenLocal(&backends.LocalOptions{
		Here:        func(a netip.Addr) bool { return e.domain.local.Has(names.New(a, 0)) },
		BounceCount: e.bounces(t.Stripes), Incarnation: e.incarnation, Exclusive: e.domain.exclusiveShared(),
		Published: e.published(), Collectives: e.copiesCollectives(),
	})
}

// startNetworks begins to watch the transports to other hosts.
func (e *peering) startNetworks() error {
	e.listenTo(e.attached)
	for _, n := range e.networks {
		if err := n.Start(); err != nil {
			return err
		}
	}
	e.startProbers()
	return nil
}

// listenTo sets the queues on which those sleep that arrivals from other hosts wake.
func (e *transportSet) listenTo(queues []queue) {
	list := slices.Clone(queues)
	e.listeners.Store(&list)
}

// networkOwner is an endpoint as its transports to other hosts have it.
type networkOwner struct{ e *peering }

// Attention has polls of the receive context include transports to other hosts.
func (o networkOwner) Attention(bits uint32) { atomic.OrUint32(&o.e.rx.hot.Attention, bits) }

// Notify wakes the threads that sleep on the endpoint's queues, and those that drive it.
func (o networkOwner) Notify() {
	o.e.rx.ring()
	for _, q := range *o.e.listeners.Load() {
		q.Waiter().Wake()
	}
	o.e.domain.drives.Wake()
}

// waitsForNetwork reports whether transfers of large messages with other hosts, or operations of a device, are under
// way.
func (e *leasedEP) waitsForNetwork() bool {
	return e.rx.rendezvous.Waiting() || e.initiated.Moving() || e.ep.exposed.Any()
}

// countBatch counts one entry into progress that found n arrivals.
func (e *leasedEP) countBatch(n int) {
	if n == 0 {
		return
	}
	e.ep.stats.Rx(stats.RxBatches, 1)
	e.ep.stats.Rx(stats.RxArrivals, uint64(n))
	if uint64(n) > e.batchPeak {
		e.batchPeak = uint64(n)
		e.ep.stats.RxSet(stats.RxBatchPeak, e.batchPeak)
	}
}

// detour logs why a peer is not reached over a transport and the next is tried, once
// for each transport until the link is up. The caller has l.mu.
func (l *link) detour(p *transport, err error) {
	if !slices.Contains(l.around, p) {
		l.around = append(l.around, p)
		log.Infof(log.EPCtrl, "%s is not reached over %s: %v", l.to, p.attr.DeviceName, err)
	}
}

// stopProbers ends them, before their transports close.
func (e *transportSet) stopProbers() {
	for _, pr := range e.probers {
		pr.Stop()
	}
	e.probers = nil
}

// mute reports whether arrivals at a connected endpoint are left where they are: the peer's identity will be known in a
// moment.
func (e *peering) mute() bool { return e.conn != nil && e.conn.Sender() == nil }
