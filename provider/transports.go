package provider

import (
	"io"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/threads"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/internal/watch"
	"github.com/weft-fabric/weft/provider/names"
)

// transportSet is what an endpoint has of its transports (links.Links) for progress and sleepers. Immutable from Enable
// on.
type transportSet struct {
	iface    backends.Local     // of the first transport
	probers  []*probe.Prober    // of the transports
	networks []*watch.Transport // of those to other hosts
	// listeners are the queues on which those sleep that arrivals there wake: the endpoint's, from startNetworks on,
	// with counters that are bound later. Stored under the endpoint's mu, read by any thread; sequentially consistent.
	listeners atomic.Pointer[[]queue]
	devicesOf []tokens.Device // interfaces of networks that tokens name
	names     io.Closer       // answers for the names of those that have no socket addresses, nil: there are none
	unbelled  bool            // peers may write what rings no bell
}

// addTransport makes a transport of an open interface.
func (e *leasedEP) addTransport(i hw.Iface) *transport {
	p := e.ep.base.links.Add(i, rkey.Device{Domain: i.Memory(), Cache: e.ep.base.domain.device.Cache(i.Memory())})
	e.setHandlers(p)
	return p
}

// handler is h for the messages of a transport.
func (e *leasedEP) handler(p *transport, h hw.Handler) hw.Handler {
	if p.Number == 0 {
		return h
	}
	return func(src hw.Source, header uint64, head, payload []byte) {
		h(p.Source(src), header, head, payload)
		if p == e.ep.base.links.Driven() {
			e.fillTransportSource(p.Source(src))
		}
	}
}

// peerEvents is f for the events of a transport.
func peerEvents(p *transport, f func(hw.PeerEvent)) func(hw.PeerEvent) {
	return func(ev hw.PeerEvent) {
		ev.Source = p.Source(ev.Source)
		f(ev)
	}
}

// arrivals takes in what has arrived at all transports, all: of this host all that is there. It returns how many
// messages that were, of those that the data plane has delivered at least one.
func (e *leasedEP) arrivals(limit int, all bool) (n int) {
	if !e.ep.base.mute() {
		worked, done := threads.Deliver(e.ep.base.hot, e, all)
		if !done {
			n = e.ep.base.transports.iface.Progress(limit)
			e.countBatch(n)
		}
		if worked {
			n++
		}
	}
	return n + e.networkArrivals(limit)
}

// networkArrivals is arrivals at the transports to other hosts.
func (e *leasedEP) networkArrivals(limit int) (n int) {
	if e.ep.base.mute() {
		return 0
	}
	for _, p := range e.ep.base.transports.networks {
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

// closeTransports closes the interfaces.
func (e *peering) closeTransports() {
	e.transports.stopProbers()
	for _, n := range e.transports.networks {
		n.Close()
	}
	e.transports.networks = nil
	// Networks first: no peer finds the segment gone while the network answers.
	for _, p := range slices.Backward(e.links.Transports()) {
		_ = p.Close()
	}
	e.links.Close()
	e.transports.iface, e.transports.devicesOf = nil, nil
	if e.transports.names != nil {
		_ = e.transports.names.Close()
		e.transports.names = nil
	}
}

// openNetworks opens the transports to other hosts.
func (e *leasedEP) openNetworks() error {
	caps := e.ep.base.info.Caps
	if e.ep.base.scalable != nil {
		caps = e.ep.base.scalable.info.Caps // no context has it
	}
	if caps&fi.RemoteComm == 0 && !e.ep.base.chosen.apart {
		return nil
	}
	networks, err := transportsOf(&e.ep).OpenNetworks()
	if err != nil {
		return err
	}
	e.ep.base.transports.names, e.ep.base.transports.unbelled = networks.Names, networks.Unbelled
	list := networks.Ifaces
	slices.SortStableFunc(list, func(a, b hw.Iface) int { return b.Attr().Priority - a.Attr().Priority })
	for _, i := range list {
		p := e.addTransport(i)
		e.ep.base.transports.addDevice(p)
		p.Network = watch.New(p.Iface, networkOwner{&e.ep.base.peering}, nil)
		e.ep.base.transports.networks = append(e.ep.base.transports.networks, p.Network)
	}
	return nil
}

// transportsOf is an endpoint, which is about to be enabled, as its transports have it.
func transportsOf(e *Endpoint) *backends.Endpoint {
	t := &backends.Endpoint{
		Config: e.base.domain.cfg, Device: e.base.domain.device, Name: e.base.name, Context: e.base.context,
		Socket: e.socket, Auth: e.base.auth, Keys: e.base.keys, Stripes: e.base.stripeCount() + 1,
		Class: e.base.domain.dscp(e.base.info),
		Apart: e.base.chosen.apart, Polled: e.polled(), Direct: plane.Load(),
		Program: e.base.domain.fabric.program.Networks(),
	}
	if e.base.scalable != nil {
		t.Mapper = e.base.scalable.mapper
	}
	return t
}

// openLocal opens the transport to peers on this host, to which regions are published that those with the domain's key
// reach by themselves.
func openLocal(e *Endpoint) (backends.Local, error) {
	t := transportsOf(e)
	return t.OpenLocal(&backends.LocalOptions{
		Here:        func(a netip.Addr) bool { return e.base.domain.local.Has(names.New(a, 0)) },
		BounceCount: bounces(&e.base.attributes, t.Stripes), Incarnation: e.base.incarnation,
		Exclusive: e.base.domain.exclusiveShared(), Published: e.base.published(),
		Collectives: e.base.copiesCollectives(),
	})
}

// startNetworks begins to watch the transports to other hosts.
func (e *peering) startNetworks() error {
	e.transports.listenTo(e.bound.attached)
	for _, n := range e.transports.networks {
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

// listenAlso and listenNoMore add a queue to those of listenTo, and take one out. Threads that call them at once wait
// for each other.
func (e *transportSet) listenAlso(q queue) {
	e.relisten(func(list []queue) []queue { return append(list, q) })
}

func (e *transportSet) listenNoMore(q queue) {
	e.relisten(func(list []queue) []queue {
		if i := slices.Index(list, q); i >= 0 {
			return slices.Delete(list, i, i+1)
		}
		return list
	})
}

// relisten replaces the list of listeners by another, made from a copy of it.
func (e *transportSet) relisten(another func([]queue) []queue) {
	for {
		old := e.listeners.Load()
		list := another(slices.Clone(*old))
		if e.listeners.CompareAndSwap(old, &list) {
			return
		}
	}
}

// networkOwner is an endpoint as its transports to other hosts have it.
type networkOwner struct{ e *peering }

// Attention has polls of the receive context include transports to other hosts.
func (o networkOwner) Attention(bits uint32) { atomic.OrUint32(&o.e.rx.hot.Attention, bits) }

// Notify wakes the threads that sleep on the endpoint's queues, and those that drive it.
func (o networkOwner) Notify() {
	o.e.rx.ring()
	for _, q := range *o.e.transports.listeners.Load() {
		q.Waiter().Wake()
	}
	o.e.domain.drives.Wake()
}

// waitsForNetwork reports whether large messages to or from other hosts, or a device's operations, are under way.
func (e *leasedEP) waitsForNetwork() bool {
	return e.rx.rendezvous.Waiting() || e.initiated.Moving() || e.ep.base.lists.Moving() || e.ep.base.sends.Exposes()
}

// countBatch counts one entry into progress that found n arrivals.
func (e *leasedEP) countBatch(n int) {
	if n == 0 {
		return
	}
	e.ep.base.stats.Rx(stats.RxBatches, 1)
	e.ep.base.stats.Rx(stats.RxArrivals, uint64(n))
	if uint64(n) > e.batchPeak {
		e.batchPeak = uint64(n)
		e.ep.base.stats.RxSet(stats.RxBatchPeak, e.batchPeak)
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
