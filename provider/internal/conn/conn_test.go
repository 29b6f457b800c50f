package conn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// call is one that a connection made to its endpoint.
type call struct {
	what string
	data string
	err  fi.Errno
}

// end is an endpoint of a test: it notes what its connection calls.
type end struct {
	t     *testing.T
	c     *Connection
	own   names.Name
	calls chan call
	reach func(ctx context.Context, peer names.Name) error // nil: the peer is reached
}

func (e *end) Reach(ctx context.Context, peer names.Name) error {
	if e.reach != nil {
		return e.reach(ctx, peer)
	}
	return nil
}

func (e *end) Connected(data []byte)            { e.calls <- call{what: "connected", data: string(data)} }
func (e *end) Failed(err fi.Errno, data []byte) { e.calls <- call{"failed", string(data), err} }
func (e *end) Ended()                           { e.calls <- call{what: "ended"} }
func (e *end) want(what, data string, err fi.Errno) {
	e.t.Helper()
	want(e.t, e.calls, call{what, data, err})
}

func want(t *testing.T, calls chan call, w call) {
	t.Helper()
	select {
	case got := <-calls:
		if got != w {
			t.Fatalf("%+v, want %+v", got, w)
		}
	case <-time.After(patience):
		t.Fatalf("not %+v for %v", w, patience)
	}
}

// newEnd makes an endpoint of a port that connects, or accepts a request. It is closed as one is.
func newEnd(t *testing.T, port uint16, key string, r *Request) *end {
	t.Helper()
	e := &end{t: t, own: names.New(netip.MustParseAddr("127.0.0.1"), port), calls: make(chan call, 8)}
	e.c = New(e, Settings{Key: keyOf(t, key), ConnectTimeout: patience, PeerTimeout: patience}, r)
	t.Cleanup(e.close)
	return e
}

func (e *end) close() {
	e.c.Stop()
	e.c.HangUp()
	e.c.Close()
}

func keyOf(t *testing.T, text string) authkey.Key {
	t.Helper()
	key, err := authkey.New([]byte(text), uint64(len(text)), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// passive listens at a port of its own.
type passive struct {
	*Listener
	at       names.Name
	requests chan *Request
}

func newPassive(t *testing.T, key string) *passive {
	t.Helper()
	p := &passive{requests: make(chan *Request, 8)}
	p.Listener = NewListener(keyOf(t, key), func(r *Request) error { p.requests <- r; return nil })
	var err error
	if p.at, err = p.Bind(names.New(netip.MustParseAddr("127.0.0.1"), 0), false); err != nil {
		t.Fatal(err)
	}
	if err := p.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		p.Drop()
	})
	return p
}

func (p *passive) request(t *testing.T) *Request {
	t.Helper()
	select {
	case r := <-p.requests:
		return r
	case <-time.After(patience):
		t.Fatalf("no request for %v", patience)
	}
	return nil
}

// taken is the next request, reserved for an endpoint.
func (p *passive) taken(t *testing.T) *Request {
	t.Helper()
	r, err := Take(p.request(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (e *end) connect(p *passive, data string, want error) {
	e.t.Helper()
	if err := e.c.Connect(e.own, p.at, []byte(data)); !errors.Is(err, want) {
		e.t.Fatalf("connect: %v, want %v", err, want)
	}
}

func (e *end) accept(data string, want error) {
	e.t.Helper()
	if err := e.c.Accept(e.own, []byte(data)); fi.ErrnoOf(err) != fi.ErrnoOf(want) {
		e.t.Fatalf("accept: %v, want %v", err, want)
	}
}

// pair connects two endpoints.
func pair(t *testing.T) (a, b *end) {
	t.Helper()
	p := newPassive(t, "")
	a = newEnd(t, 7, "", nil)
	a.connect(p, "hello", nil)
	r := p.request(t)
	if string(r.Data()) != "hello" || r.Peer() != a.own || r.Local() != p.at {
		t.Fatalf("request of %s to %s with %q", r.Peer(), r.Local(), r.Data())
	}
	if _, err := Take(r); err != nil {
		t.Fatal(err)
	}
	b = newEnd(t, 9, "", r)
	b.accept("welcome", nil)
	b.want("connected", "", 0)
	a.want("connected", "welcome", 0)
	if peer, ok := a.c.Peer(); !ok || peer != p.at {
		t.Errorf("the active side's peer is %s", peer)
	}
	if peer, ok := b.c.Peer(); !ok || peer != a.own {
		t.Errorf("the passive side's peer is %s", peer)
	}
	if *a.c.Sender() != b.own || *b.c.Sender() != a.own {
		t.Errorf("messages of %s and %s are taken in", a.c.Sender(), b.c.Sender())
	}
	return a, b
}

// TestLeave: both sides see the end, whichever leaves, and no other connection follows.
func TestLeave(t *testing.T) {
	a, b := pair(t)
	if err := a.c.Ready(); err != nil {
		t.Errorf("a connected endpoint: %v", err)
	}
	if err := a.c.Connect(a.own, b.own, nil); !errors.Is(err, fi.EISCONN) {
		t.Errorf("connect again: %v", err)
	}
	if !b.c.Leave() || b.c.Leave() {
		t.Error("an endpoint leaves once")
	}
	a.want("ended", "", 0)
	a.close()
	b.want("ended", "", 0)
	for _, e := range []*end{a, b} {
		if err := e.c.Ready(); !errors.Is(err, fi.ESHUTDOWN) || e.c.Leave() {
			t.Errorf("after the end: %v", err)
		}
		if err := e.c.Connect(e.own, e.own, nil); !errors.Is(err, fi.EOPBADSTATE) {
			t.Errorf("connect after the end: %v", err)
		}
	}
}

// TestPeerGone: the end of the path that carries the data is that of the connection, at both sides.
func TestPeerGone(t *testing.T) {
	a, b := pair(t)
	a.c.PeerGone()
	a.want("ended", "", 0)
	b.want("ended", "", 0)
}

// TestReject: the peer gets the data, and no endpoint gets the request.
func TestReject(t *testing.T) {
	p, other := newPassive(t, ""), newPassive(t, "")
	a := newEnd(t, 7, "", nil)
	if err := a.c.Ready(); !errors.Is(err, fi.ENOTCONN) {
		t.Errorf("before the connection: %v", err)
	}
	a.connect(p, "", nil)
	a.connect(p, "", fi.EALREADY)
	r := p.taken(t)
	if _, err := Take(r); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("taken twice: %v", err)
	}
	if _, err := Take(p); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("another handle: %v", err)
	}
	b := newEnd(t, 9, "", r)
	done := 0
	r.OnDone(func() { done++ })
	if other.Reject(r, nil) {
		t.Error("another listener rejects the request")
	}
	if !p.Reject(r, []byte("no")) || p.Reject(r, nil) || done != 1 {
		t.Errorf("a request is rejected once: %d times done", done)
	}
	b.accept("", fi.EINVAL)
	a.want("failed", "no", fi.ECONNREFUSED)
	if _, ok := a.c.Peer(); ok {
		t.Error("there is a peer")
	}
	if err := a.c.Ready(); !errors.Is(err, fi.ESHUTDOWN) {
		t.Errorf("after the rejection: %v", err)
	}
}

// TestGiveBack: a request that an endpoint gives back may be taken by another, or is dropped if the listener has
// closed.
func TestGiveBack(t *testing.T) {
	p := newPassive(t, "")
	a := newEnd(t, 7, "", nil)
	a.connect(p, "", nil)
	r := p.request(t)
	if _, err := Take(r); err != nil {
		t.Fatal(err)
	}
	GiveBack(r)
	if _, err := Take(r); err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Drop()
	if len(a.calls) != 0 {
		t.Fatalf("a request that is taken is dropped: %+v", <-a.calls)
	}
	GiveBack(r)
	a.want("failed", "", fi.ECONNREFUSED)

	q := newPassive(t, "")
	c := newEnd(t, 7, "", nil)
	c.connect(q, "", nil)
	q.request(t)
	q.Close()
	q.Drop()
	c.want("failed", "", fi.ECONNREFUSED)
}

// TestCloseRejects: the peer of an endpoint that is closed before it accepts hears of that, and the passive endpoint
// has room for another request.
func TestCloseRejects(t *testing.T) {
	p := newPassive(t, "")
	a := newEnd(t, 7, "", nil)
	a.connect(p, "", nil)
	r := p.taken(t)
	var done atomic.Bool
	r.OnDone(func() { done.Store(true) })
	New(a, Settings{}, r).Close()
	a.want("failed", "", fi.ECONNREFUSED)
	if !done.Load() {
		t.Error("the request is not done with")
	}
	if _, err := Take(r); err == nil {
		t.Error("it is taken again")
	}
}

// TestKeys: sides with different keys do not connect, and hear nothing of each other's data.
func TestKeys(t *testing.T) {
	p := newPassive(t, "one")
	a := newEnd(t, 7, "two", nil)
	a.connect(p, "data", nil)
	a.want("failed", "", fi.ECONNREFUSED)
	if len(p.requests) != 0 {
		t.Error("a request without the key is reported")
	}
	c := newEnd(t, 7, "one", nil)
	c.connect(p, "data", nil)
	r, err := Take(p.request(t))
	if err != nil || string(r.Data()) != "data" {
		t.Fatalf("data %q, %v", r.Data(), err)
	}
	b := newEnd(t, 9, "three", r)
	b.accept("welcome", nil)
	b.want("connected", "", 0)
	c.want("failed", "", fi.EACCES)
	b.want("ended", "", 0)
}

// TestUnreachable: the connection fails with what Reach says.
func TestUnreachable(t *testing.T) {
	p := newPassive(t, "")
	a := newEnd(t, 7, "", nil)
	a.connect(p, "", nil)
	r := p.taken(t)
	b := newEnd(t, 9, "", r)
	b.reach = func(context.Context, names.Name) error { return fi.EHOSTUNREACH }
	b.accept("", nil)
	b.want("failed", "", fi.EHOSTUNREACH)
	a.want("failed", "", fi.ECONNRESET)
}

// TestStop: an endpoint that closes is not called any more, whatever its connection waits for. What an endpoint has
// heard before it stops, such as the close of its peer, does not count.
func TestStop(t *testing.T) {
	p := newPassive(t, "")
	asks := newEnd(t, 7, "", nil)
	asks.connect(p, "", nil)
	r := p.taken(t)
	reaches, entered := newEnd(t, 9, "", r), make(chan bool)
	reaches.reach = func(ctx context.Context, _ names.Name) error {
		close(entered)
		<-ctx.Done()
		return net.ErrClosed
	}
	reaches.accept("", nil)
	<-entered
	a, b := pair(t)
	ends := []*end{reaches, asks, a, b}
	for _, e := range ends {
		e.c.Stop()
		for len(e.calls) != 0 {
			<-e.calls
		}
		if err := e.c.Connect(e.own, e.own, nil); !errors.Is(err, fi.EOPBADSTATE) {
			t.Errorf("connect after the stop: %v", err)
		}
	}
	time.Sleep(10 * time.Millisecond)
	for i, e := range ends {
		if len(e.calls) != 0 {
			t.Errorf("endpoint %d is called: %+v", i, <-e.calls)
		}
	}
}

// TestHostileAnswer has an endpoint connect to a listener that does not answer as the protocol says.
func TestHostileAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		answer []byte
		want   fi.Errno
	}{
		"nonsense": {bytes.Repeat([]byte{7}, 50), fi.EPROTO},
		"request":  {(&cm.Message{Kind: cm.Request, Port: 1}).Append(nil), fi.EPROTO},
		"nothing":  {nil, fi.ECONNRESET},
		"half":     {(&cm.Message{Kind: cm.Reject}).Append(nil)[:7], fi.ECONNRESET},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if s, err := l.Accept(); err == nil {
				_, _ = cm.Read(s)
				_, _ = s.Write(tc.answer)
				_ = s.Close()
			}
		}()
		t.Run(name, func(t *testing.T) {
			a := newEnd(t, 7, "", nil)
			if err := a.c.Connect(a.own, NameOf(l.Addr()), nil); err != nil {
				t.Fatal(err)
			}
			a.want("failed", "", tc.want)
		})
		_ = l.Close()
	}
}
