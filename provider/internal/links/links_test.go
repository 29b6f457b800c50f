package links

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/names"
)

// standIn is an endpoint of which a test says what it knows.
type standIn struct {
	peers.Gone
	at       []byte
	err      error
	reported bool
	unsure   error // of Confirm
}

func (e *standIn) Address() []byte { return e.at }
func (e *standIn) Err() error      { return e.err }
func (e *standIn) Check() error    { return e.err }
func (e *standIn) Reported() bool  { return e.reported }
func (e *standIn) Confirm() error  { return e.unsure }

// wire is an interface of which a test says what Connect returns.
type wire struct {
	hw.Iface
	hw.Direct
	err  error      // of Connect
	errs []error    // of the next calls of Connect, before err
	made []*standIn // by Connect
	own  *standIn   // what Answer returns for source 1
}

func (w *wire) Attr() hw.Attr { return hw.Attr{DeviceName: "stand-in", MaxAMBcopy: 4096} }

func (w *wire) Connect(at []byte) (hw.Endpoint, error) {
	err := w.err
	if len(w.errs) != 0 {
		err, w.errs = w.errs[0], w.errs[1:]
	}
	if err != nil {
		return nil, err
	}
	w.made = append(w.made, &standIn{at: at})
	return w.made[len(w.made)-1], nil
}

func (w *wire) FillPeer(_ hw.Endpoint, line *hot.Peer) error { line.Slots = ring; return nil }

func (w *wire) Answer(src hw.Source) hw.Endpoint {
	if src != 1 || w.own == nil {
		return nil
	}
	return w.own
}

// ring is where peers' rings are.
const ring = 64

// host is an endpoint of which a test says what it knows.
type host struct {
	disconnected, closed, here bool
	sought, connected, made    int
}

func (h *host) Disconnected() bool        { return h.disconnected }
func (h *host) Closed() bool              { return h.closed }
func (h *host) SeekEnds()                 { h.sought++ }
func (h *host) Connected(*rma.Path)       { h.connected++ }
func (h *host) Here(names.Name) bool      { return h.here }
func (h *host) Made()                     { h.made++ }
func (*host) Line(uint32) *dataplane.Link { return new(dataplane.Link) }
func nameOf(host byte, port uint16) names.Name {
	return names.New(netip.AddrFrom4([4]byte{10, 0, 0, host}), port)
}

// bench is the links of an endpoint with a transport on this host and some to others, and 10.0.0.1:1 in its vector.
type bench struct {
	Links
	host  host
	wires []*wire
	table hot.EP
	h     Leased
}

func newBench(t *testing.T, networks int) *bench {
	t.Helper()
	b := &bench{host: host{here: true}}
	vector, err := av.Open(&fi.AVAttr{}, av.Options{
		Owner: b, Format: fi.AddrStr, Capacity: 100, Limit: av.MaxLines, Reach: func(names.Name) error { return nil },
		Here: b.host.Here, Closed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := vector.InsertNames([]string{nameOf(1, 1).String()}, &av.Insertion{}); n != 1 {
		t.Fatal(err)
	}
	b.Init(&b.host, &config.Config{ConnectTimeout: time.Hour, SHMAcross: config.No})
	b.h.Init(&b.Links)
	if err := b.Open(&b.table, vector, false); err != nil {
		t.Fatal(err)
	}
	for range 1 + networks {
		w := &wire{}
		b.wires = append(b.wires, w)
		b.Add(w, rkey.Device{})
	}
	cancel := vector.Subscribe(b.DropAddress)
	t.Cleanup(func() {
		b.Close()
		b.h.Close()
		b.Free()
		cancel()
		_ = vector.Close()
	})
	return b
}

// link returns the link of the one address, which nothing holds.
func (b *bench) link(t *testing.T) *Link {
	t.Helper()
	l, err := b.Of(0)
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	return l
}

// connect has the link connect, and returns its endpoint.
func (b *bench) connect(t *testing.T) (*Link, *standIn) {
	t.Helper()
	l := b.link(t)
	p, err := b.Connect(l)
	if err != nil {
		t.Fatal(err)
	}
	return l, p.Endpoint.(*standIn)
}

// TestConnectFirst: an error of a transport's Connect has the next one tried unless the peer may still answer there.
// The last one's counts, with what others know of the peer's end.
func TestConnectFirst(t *testing.T) {
	for _, c := range []struct {
		first error
		next  bool // is tried
		ended bool
	}{
		{hw.ErrUnreachable, false, false},
		{fmt.Errorf("%w: %w", hw.ErrUnreachable, hw.ErrPeerDead), false, true},
		{hw.ErrNoPath, true, false},
		{fmt.Errorf("%w: %w", hw.ErrUnreachable, hw.ErrNoPath), true, false},
		{hw.ErrNoResource, true, false},
		{hw.ErrPermission, true, false},
		{hw.ErrInvalid, true, false},
		{fmt.Errorf("%w: %w: %w", hw.ErrPeerDead, hw.ErrNoPath, hw.ErrUnreachable), true, true},
		{fmt.Errorf("%w: %w: %w", hw.ErrPathLost, hw.ErrPeerDead, hw.ErrNoPath), true, false},
	} {
		b := newBench(t, 2)
		l, list := b.link(t), b.Transports()[1:]
		b.wires[1].err, b.wires[2].err = c.first, hw.ErrUnreachable
		_, p, err := l.connectFirst(list)
		if tried := p == list[1]; tried != c.next || peers.Ended(err) != c.ended ||
			tried && (!errors.Is(err, hw.ErrUnreachable) || errors.Is(err, hw.ErrNoPath)) {
			t.Errorf("%v: the next is tried: %v, %v", c.first, tried, err)
		}
		b.wires[2].err = nil
		ep, p, err := l.connectFirst(list)
		if reached := p == list[1] && ep != nil && err == nil; reached != c.next {
			t.Errorf("%v: the next reaches the peer: %v, %v", c.first, reached, err)
		}
	}
}

// TestConnectOver: which transport a link connects over.
func TestConnectOver(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b *bench)
		over   uint32
		err    error
	}{
		"shared memory":            {func(*bench) {}, 0, nil},
		"another host":             {func(b *bench) { b.host.here = false }, 1, nil},
		"no shared memory":         {func(b *bench) { b.apart = true }, 1, nil},
		"no segment here":          {func(b *bench) { b.wires[0].err = hw.ErrUnreachable }, 1, nil},
		"a segment a moment later": {func(b *bench) { b.wires[0].errs = []error{hw.ErrUnreachable} }, 0, nil},
		"refused here":             {func(b *bench) { b.wires[0].err = hw.ErrPermission }, 0, fi.EACCES},
		"nowhere yet": {func(b *bench) {
			b.wires[0].err, b.wires[1].err = hw.ErrUnreachable, hw.ErrUnreachable
		}, 0, fi.EAGAIN},
		"on this host alone, not yet": {func(b *bench) {
			b.wires[0].err, b.transports = hw.ErrUnreachable, b.transports[:1]
		}, 0, fi.EAGAIN},
	} {
		b := newBench(t, 1)
		c.change(b)
		p, err := b.Connect(b.link(t))
		if !errors.Is(err, c.err) || err == nil && (p.Via.Number != c.over || b.host.connected != 1) {
			t.Errorf("%s: %v, connected %d times, want transport %d", what, err, b.host.connected, c.over)
		}
	}
}

// TestEnds: what posts get of a link from the end of its peer on, and that one that shared memory with this side and
// is gone is not reached over a network.
func TestEnds(t *testing.T) {
	b := newBench(t, 1)
	l, ep := b.connect(t)
	b.Publish(0, l, l.Path())
	if b.Line(0).Slots != ring || l.Path().Slots != ring || !l.LeadsTo(ring) || !l.GoesTo(ring) {
		t.Fatalf("a connected link's line: %+v", b.Line(0))
	}
	ep.err = hw.ErrPeerDead
	if _, err := b.Connect(l); !errors.Is(err, fi.EAGAIN) || b.host.sought != 1 {
		t.Errorf("before its end is reported: %v, asked %d times", err, b.host.sought)
	}
	ep.reported, b.wires[0].err = true, hw.ErrUnreachable
	b.Forget(l)
	l.Leave(l.Path())
	if b.Line(0).Slots != 0 || l.LeadsTo(ring) || !l.GoesTo(ring) {
		t.Errorf("after its end: %+v", b.Line(0))
	}
	time.Sleep(peers.RetryInterval)
	if _, err := b.Connect(l); !errors.Is(err, fi.ECONNRESET) || len(b.wires[1].made) != 0 {
		t.Errorf("after its end: %v, %d connections over the network", err, len(b.wires[1].made))
	}
	l.Set(nil)
	b.wires[0].err = nil
	if p, err := b.Connect(l); err != nil || p.Serial != 2 {
		t.Errorf("anew: %v", err)
	}
	b.host.disconnected = true
	b.Publish(0, l, l.Path())
	if b.Line(0).Slots != 0 {
		t.Error("a line leads to the peer of a connection that has ended")
	}
	l.Set(nil)
	if _, err := b.Connect(l); !errors.Is(err, fi.ESHUTDOWN) {
		t.Errorf("after the end of the connection: %v", err)
	}
}

// TestPublishNothing: a post over a transport that the data plane has no way over waits for no thread that is at the
// link.
func TestPublishNothing(t *testing.T) {
	b := newBench(t, 1)
	b.wires[0].err = hw.ErrUnreachable
	l := b.link(t)
	p, err := b.Connect(l)
	if err != nil || p.Via.Number != 1 {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	done := make(chan bool)
	go func() {
		b.Publish(0, l, p)
		done <- true
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// TestAddressAgain: an address that is removed has no line, and when it comes again its peer is asked whether it is
// the same.
func TestAddressAgain(t *testing.T) {
	b := newBench(t, 0)
	l, ep := b.connect(t)
	b.Publish(0, l, l.Path())
	if b.Now(0) != l.Path() || b.Number(0) != l.Index+1 {
		t.Errorf("the address has link %d", b.Number(0))
	}
	if err := b.vector.Remove([]fi.Addr{0}, 0); err != nil {
		t.Fatal(err)
	}
	if b.Line(0).Slots != 0 || b.Number(0) != 0 || b.Now(0) != nil {
		t.Errorf("removed: %+v", b.Line(0))
	}
	if _, err := b.Of(0); !errors.Is(err, fi.EINVAL) {
		t.Errorf("link of an address that is removed: %v", err)
	}
	if n, err := b.vector.InsertNames([]string{nameOf(1, 1).String()}, &av.Insertion{}); n != 1 {
		t.Fatal(err)
	}
	if again := b.link(t); again != l {
		t.Fatal("another link")
	}
	if _, open := l.Ring(); open {
		t.Error("the ring of a peer that may be another is open")
	}
	ep.unsure = hw.ErrPeerDead
	if _, err := b.Connect(l); !errors.Is(err, fi.EAGAIN) || b.host.sought != 1 {
		t.Errorf("before it is known: %v, asked %d times", err, b.host.sought)
	}
	ep.unsure = nil
	if p, err := b.Connect(l); err != nil || p != l.Path() {
		t.Errorf("once it is known: %v", err)
	}
}

// TestSenders: senders are found by their sources, of each transport, until they are gone.
func TestSenders(t *testing.T) {
	b := newBench(t, 1)
	near, far := b.Transports()[0].Source(3), b.Transports()[1].Source(3)
	if _, met := b.h.Known(far); met {
		t.Error("one is known before it was met")
	}
	b.h.SetKnown(far, Sender{ID: 2, Number: 1})
	b.h.SetKnown(near, Sender{ID: 1})
	var all []hw.Source
	for src, s := range b.h.Senders() {
		if known, met := b.h.Known(src); !met || known != s {
			t.Errorf("source %d: %v, %v", src, known, met)
		}
		all = append(all, src)
	}
	if !slices.Equal(all, []hw.Source{near, far}) || NumberOf(far) != 1 {
		t.Errorf("senders at %v", all)
	}
	b.h.SetKnown(near, Sender{})
	if _, met := b.h.Known(near); met {
		t.Error("one is known that is gone")
	}
}

// TestBackPath: an answer goes over the link's path if that is the source's connection, else over one of its own, until
// the source is gone.
func TestBackPath(t *testing.T) {
	b := newBench(t, 0)
	l, ep := b.connect(t)
	src := b.Transports()[0].Source(1)
	if _, err := b.h.BackPath(l, src); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("over a connection that is lost: %v", err)
	}
	b.wires[0].own = ep
	if p, err := b.h.BackPath(l, src); err != nil || p != l.Path() || b.h.TakeBack(src) != nil {
		t.Errorf("over the link's: %v", err)
	}
	b.wires[0].own = &standIn{}
	p, err := b.h.BackPath(l, src)
	if again, _ := b.h.BackPath(l, src); err != nil || p == l.Path() || !p.Back || again != p {
		t.Errorf("over the source's own: %v", err)
	}
	if b.h.TakeBack(src) != p || b.h.TakeBack(src) != nil {
		t.Error("the path of a source that is gone is not taken out once")
	}
}

// TestSweep: of many links those stay that something names.
func TestSweep(t *testing.T) {
	b := newBench(t, 0)
	address := func(s Sender) peers.Address { return peers.Address{Name: nameOf(9, uint16(s.ID))} }
	listed := b.link(t)
	b.h.SetKnown(0, Sender{ID: 1})
	live, gone := b.h.Back(Sender{ID: 1}, address), b.h.Back(Sender{ID: 2}, address)
	if b.h.Back(Sender{ID: 1}, address) != live || live == gone {
		t.Fatal("not one link back to each sender")
	}
	used := b.Hold(peers.Address{Name: nameOf(2, 1)})
	defer used.Release()
	var named, awaited *Link
	for i := range uint16(1000) {
		l := b.Hold(peers.Address{Name: nameOf(3, i)})
		l.Release()
		switch i {
		case 5:
			named = l
		case 6:
			awaited = l
			l.Transmits.Add(1)
		}
	}
	b.h.Sweep(slices.Values([]*Link{named, nil}))
	var left []*Link
	for l := range b.All() {
		left = append(left, l)
	}
	if want := []*Link{listed, live, used, named, awaited}; !slices.Equal(left, want) {
		t.Errorf("%d links are left, want %d", len(left), len(want))
	}
	if b.Find(gone.To) != nil || b.At(gone.Index) != nil {
		t.Error("one that nothing names is found")
	}
	if again := b.h.Back(Sender{ID: 2}, address); again == gone {
		t.Error("a link that is removed is used again")
	}
}

// TestMade counts what the endpoint hears of links that are made, and of those that are there.
func TestMade(t *testing.T) {
	b := newBench(t, 1)
	before := b.host.made
	for range 2 {
		b.Hold(peers.Address{Name: nameOf(3, 9)}).Release()
	}
	if n := b.host.made - before; n != 1 {
		t.Errorf("%d links were made, not 1", n)
	}
}

// TestFree opens links again after an endpoint that could not be enabled has freed them: none is left.
func TestFree(t *testing.T) {
	b := newBench(t, 1)
	a := peers.Address{Name: nameOf(3, 9)}
	b.Hold(a).Release()
	b.h.Back(Sender{ID: 1}, func(Sender) peers.Address { return a })
	b.h.Close()
	b.Free()
	if b.Find(a) != nil {
		t.Error("a link is left")
	}
	other := peers.Address{Name: nameOf(4, 9)}
	if l := b.h.Back(Sender{ID: 1}, func(Sender) peers.Address { return other }); l.To != other || l.Index != 0 {
		t.Errorf("the way back is that to %v, number %d", l.To, l.Index)
	}
}
