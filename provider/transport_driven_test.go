package provider

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/watch"
)

// drivenIface is an interface that C would read, where nothing arrives.
type drivenIface struct {
	hw.Iface
	transport hot.Transport
	polls     int
	written   bool
}

func (*drivenIface) Attr() hw.Attr                  { return hw.Attr{Caps: hw.CapDriven} }
func (i *drivenIface) HotTransport() *hot.Transport { return &i.transport }
func (i *drivenIface) Written() bool                { return i.written }
func (i *drivenIface) Progress(int) int             { i.polls++; return 0 }
func (*drivenIface) EnableWait() error              { return nil }
func (*drivenIface) DoorbellFD() int                { return -1 }
func (*drivenIface) Arm()                           {}
func (*drivenIface) Pending() bool                  { return false }
func (*drivenIface) Disarm()                        {}
func (*drivenIface) Address() []byte                { return nil }
func (*drivenIface) Memory() hw.MemoryDomain        { return nil }

// drivenEndpoint adds an endpoint with such an interface to a receive context.
func drivenEndpoint(d *Domain, r *rxContext, now func() time.Duration) (*Endpoint, *drivenIface) {
	i := &drivenIface{}
	l := &leasedEP{rx: r.leased.Alone()}
	l.ep.base.rx, l.ep.base.hot, l.ep.base.domain = r, &hot.EP{}, d
	l.initRMA()
	e := &l.ep
	e.leased = lease.PartOf(&r.leased, l)
	p := &transport{Iface: i}
	p.Network = watch.New(i, networkOwner{&e.base.peering}, now)
	p.Network.Drive(i, &e.base.hot.TransportActive)
	if err := e.base.links.Drive(p); err != nil {
		panic(err)
	}
	e.base.transports.networks = []*watch.Transport{p.Network}
	l.rx.eps = append(l.rx.eps, l)
	return e, i
}

// TestSharedTransports has two endpoints deliver into one receive context. Polls read a transport that one
// of them has posted to until that one's patience is over, also when the other's ends or is gone: what
// C holds there is sent by such a poll.
func TestSharedTransports(t *testing.T) {
	b := newBench(t, nil, nil)
	r, err := newRxContext(b.domain, b.info.Rx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var eps [2]*Endpoint
	var ifaces [2]*drivenIface
	var clocks [2]time.Duration
	for n := range eps {
		eps[n], ifaces[n] = drivenEndpoint(b.domain, r, func() time.Duration { return clocks[n] })
	}
	poll := func(what string, active ...uint32) {
		t.Helper()
		want := uint32(0)
		for n, e := range eps {
			before := ifaces[n].polls
			leasedOf(e).networkArrivals(1)
			if got := atomic.LoadUint32(&e.base.hot.TransportActive); got != active[n] ||
				(ifaces[n].polls > before) != (got != 0) {
				t.Errorf("%s: transport %d is active: %d, read: %v", what, n, got, ifaces[n].polls > before)
			}
			if active[n] != 0 {
				want = hot.AttentionTransports
			}
		}
		r.leased.Alone().publish()
		if got := atomic.LoadUint32(&r.hot.Attention) & hot.AttentionTransports; got != want {
			t.Errorf("%s: attention %#x", what, got)
		}
	}
	poll("at first", 0, 0)
	eps[1].base.links.Driven().Network.Notify()
	poll("a post to the second", 0, 1)
	eps[0].base.links.Driven().Network.Notify()
	poll("a post to the first", 1, 1)
	clocks[1] += time.Hour
	leasedOf(eps[1]).networkArrivals(1)
	poll("the second is quiet", 1, 0)
	l := r.leased.Alone()
	l.eps = l.eps[:1]
	poll("the second is gone", 1, 0)
}

// TestSilentTransport: where peers may write what rings no bell, polls come to the transport also while it is passed
// by, and what they find has it read again.
func TestSilentTransport(t *testing.T) {
	b := newBench(t, nil, nil)
	r, err := newRxContext(b.domain, b.info.Rx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	e, i := drivenEndpoint(b.domain, r, nil)
	for _, c := range []struct {
		what      string
		silent    uint32
		written   bool
		polls     int
		attention uint32
	}{
		{"no silent sender", 0, false, 0, 0},
		{"one", 1, false, 0, hot.AttentionTransports},
		{"it has written", 1, true, 1, hot.AttentionTransports},
	} {
		i.transport.Silent, i.written = c.silent, c.written
		leasedOf(e).networkArrivals(1)
		r.leased.Alone().publish()
		if got := atomic.LoadUint32(&r.hot.Attention) & hot.AttentionTransports; i.polls != c.polls ||
			got != c.attention {
			t.Errorf("%s: %d polls, attention %#x", c.what, i.polls, got)
		}
	}
	if atomic.LoadUint32(&e.base.hot.TransportActive) != 1 {
		t.Error("the transport is passed by though there is traffic")
	}
}

// TestPolled: nothing may write what rings no bell to an endpoint for whose messages something may sleep.
func TestPolled(t *testing.T) {
	b := newBench(t, nil, nil)
	open := func(wait fi.WaitObj) *cq.Queue {
		q, err := b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, WaitObj: wait}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
		return q
	}
	polled, slept := open(fi.WaitNone), open(fi.WaitFD)
	caps := b.info.Caps &^ (fi.Trigger | fi.RMAEvent)
	for name, c := range map[string]struct {
		change func(e *Endpoint)
		want   bool
	}{
		"polled queues":     {func(*Endpoint) {}, true},
		"transmit queue":    {func(e *Endpoint) { e.base.bound.txCQ = slept }, false},
		"receive queue":     {func(e *Endpoint) { e.base.bound.rxCQ = slept }, false},
		"connected":         {func(e *Endpoint) { e.base.conn = &connection{} }, false},
		"shared receives":   {func(e *Endpoint) { e.base.bound.srx = &SharedRx{} }, false},
		"datagrams":         {func(e *Endpoint) { e.base.chosen.lossy = true }, false},
		"deferred work":     {func(e *Endpoint) { e.base.info.Caps |= fi.Trigger }, false},
		"counters of reads": {func(e *Endpoint) { e.base.info.Caps |= fi.RMAEvent }, false},
	} {
		info := *b.info
		info.Caps = caps
		e := new(Endpoint)
		e.base.domain, e.base.info, e.base.bound.txCQ, e.base.bound.rxCQ = b.domain, &info, polled, polled
		c.change(e)
		if got := e.polled(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
