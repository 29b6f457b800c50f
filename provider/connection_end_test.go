package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/watch"
)

// TestEndBehindData: what a peer on another host has sent comes before the end of the connection, however late the
// application polls.
func TestEndBehindData(t *testing.T) {
	const messages = 200
	c := newApartConnBench(t)
	a, b := c.join(t)
	for n := range uint64(messages + 1) {
		b.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Context: n})
	}
	for range messages {
		post(t, func() error { return a.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8))}) }, a)
	}
	if err := a.ep.Shutdown(0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.event(t, fi.Shutdown)
	}
	time.Sleep(lingerTime + 50*time.Millisecond)
	got := uint64(0)
	var buf [16]cq.Entry
	for end := time.Now().Add(20 * time.Second); got < messages && time.Now().Before(end); {
		n, err := b.cq.Read(buf[:])
		if errors.Is(err, fi.EAVAIL) {
			e, _ := b.cq.ReadErr()
			t.Fatalf("receive %d of %d ends with %v", e.Context, messages, e.Err)
		}
		for _, e := range buf[:max(n, 0)] {
			if e.Context != got {
				t.Fatalf("receive %d completes in place of %d", e.Context, got)
			}
			got++
		}
		b.ep.Progress()
		a.ep.Progress()
	}
	if e := endOf(b); got != messages || e.Context != messages || e.Err != fi.ECANCELED {
		t.Errorf("%d messages, and receive %d ends with %v", got, e.Context, e.Err)
	}
}

// TestShutdownAfterPeer: what is under way has ended when Shutdown returns, also if the peer was first.
func TestShutdownAfterPeer(t *testing.T) {
	c := newApartConnBench(t)
	a, b := c.join(t)
	b.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Context: 7})
	if err := a.ep.Shutdown(0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.event(t, fi.Shutdown)
	}
	if err := b.ep.Shutdown(0); err != nil {
		t.Fatal(err)
	}
	if e, err := b.cq.ReadErr(); err != nil || e.Context != 7 || e.Err != fi.ECANCELED {
		t.Errorf("the receive has ended with %+v, %v", e, err)
	}
}

// TestPostMeetsShutdown: a post that has seen the connection before it ends finds neither a path nor a line behind it.
func TestPostMeetsShutdown(t *testing.T) {
	c := newConnBench(t, nil)
	a, b := c.join(t)
	b.recv(RecvArgs{IOV: iovOf(make([]byte, 8))}, a)
	post(t, func() error { return a.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8))}) }, a, b)
	b.completion(a)
	l, err := a.ep.base.linkOf(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	p, err := a.ep.base.links.Connect(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ep.Shutdown(0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ep.base.links.Connect(l); !errors.Is(err, fi.ESHUTDOWN) {
		t.Errorf("it connects anew: %v", err)
	}
	l.Set(p) // as before the end has taken it away
	if a.ep.base.links.Publish(0, l, p); a.ep.base.links.Line(0).Slots != 0 {
		t.Error("the line leads to the peer again")
	}
	l.Set(nil)
}

// polled is an interface that counts how often it is polled.
type polled struct {
	hw.Iface
	polls int
}

func (p *polled) Progress(limit int) int {
	p.polls++
	return p.Iface.Progress(limit)
}

// TestEndPolls: the end of a connection waits for what may follow it without polls of its own, and for as long again
// after a message that was taken in, in whatever way.
func TestEndPolls(t *testing.T) {
	c := newApartConnBench(t)
	_, b := c.join(t)
	b.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Context: 7})
	r := b.ep.base.rx.acquire()
	e := b.ep.leased.Of(r)
	transport := &polled{Iface: e.ep.base.links.Transports()[1].Iface}
	own := e.ep.base.transports.networks
	e.ep.base.transports.networks = []*watch.Transport{watch.New(transport, networkOwner{&e.ep.base.peering}, nil)}
	e.ep.base.transports.networks[0].Notify()
	end := &connected{b.ep.base.conn, e}
	b.ep.base.conn.ended = time.Now()
	b.ep.base.conn.flush.Store(1)
	for range 10 {
		end.Pump()
	}
	if transport.polls != 0 || !end.ending() {
		t.Errorf("%d polls of its own in 10 pumps, waits: %v", transport.polls, end.ending())
	}
	for _, counter := range []int{stats.RxDirect, stats.RxArrivals} {
		long := time.Now().Add(-2 * lingerTime)
		b.ep.base.conn.ended, b.ep.base.conn.arrived = long, long
		e.ep.base.stats.Rx(counter, 1)
		if end.Pump(); !end.ending() || time.Since(b.ep.base.conn.arrived) >= lingerTime {
			t.Errorf("it does not wait behind a message, counter %d", counter)
		}
	}
	b.ep.base.conn.arrived = b.ep.base.conn.ended
	if end.Pump(); end.ending() {
		t.Error("it waits for ever")
	}
	e.ep.base.transports.networks[0].Close()
	e.ep.base.transports.networks = own
	r.publish()
	r.give()
	if e := endOf(b); e.Context != 7 || e.Err != fi.ECANCELED {
		t.Errorf("receive %d ends with %v", e.Context, e.Err)
	}
}
