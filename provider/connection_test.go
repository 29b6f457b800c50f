package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// connBench is what both ends of connections share in a test.
type connBench struct {
	*bench
	eq  *eq.Queue
	pep *Passive
	at  []byte // the passive endpoint's name
	// apart: the ends share no memory.
	apart bool
	fid   uintptr
}

func newConnBench(t *testing.T, hints *fi.Info) *connBench {
	return openConnBench(t, hints, func(*config.Config) {})
}

// newApartConnBench makes ends that reach each other over UDP.
func newApartConnBench(t *testing.T) *connBench {
	c := openConnBench(t, nil, func(c *config.Config) { c.UDP = config.Yes })
	c.apart = true
	return c
}

func openConnBench(t *testing.T, hints *fi.Info, change func(*config.Config)) *connBench {
	if hints == nil {
		hints = &fi.Info{}
	}
	hints.EP = &fi.EPAttr{Type: fi.EPMsg}
	c := &connBench{bench: newBench(t, func(c *config.Config) {
		c.ConnectTimeout = 20 * time.Second
		change(c)
	}, hints), fid: 100}
	var err error
	if c.eq, err = c.fabric.OpenEQ(&fi.EQAttr{WaitObj: fi.WaitFD}); err != nil {
		t.Fatal(err)
	}
	if c.pep, err = c.fabric.OpenPassive(c.info); err != nil {
		t.Fatal(err)
	}
	c.pep.SetFID(1)
	if err := c.pep.Listen(); !errors.Is(err, fi.ENOEQ) && fi.ErrnoOf(err) != fi.ENOEQ {
		t.Errorf("listen without event queue: %v", err)
	}
	for _, err := range []error{c.pep.BindEQ(c.eq, 0), c.pep.Listen()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if c.at, err = c.pep.Name(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, o := range []io.Closer{c.pep, c.eq} {
			if err := o.Close(); err != nil {
				t.Errorf("close %T: %v", o, err)
			}
		}
	})
	return c
}

// end makes an endpoint with queues of its own.
func (c *connBench) end(t *testing.T, info *fi.Info) *side {
	t.Helper()
	s := c.bare(t, info)
	if err := s.ep.Enable(); !errors.Is(err, fi.ENOEQ) {
		t.Errorf("enable without event queue: %v", err)
	}
	if err := s.ep.BindEQ(c.eq, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// bare makes an endpoint with a completion queue of its own.
func (c *connBench) bare(t *testing.T, info *fi.Info) *side {
	t.Helper()
	s := &side{t: t, bench: c.bench, domain: c.domain, addr: map[*side]fi.Addr{}}
	var err error
	if s.cq, err = c.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 256}, nil); err != nil {
		t.Fatal(err)
	}
	if s.ep, err = c.domain.OpenEndpoint(info); err != nil {
		t.Fatal(err)
	}
	if c.apart {
		wantErrno(t, s.ep.SetOpt(fi.OptSharedMemoryPermitted, 0), fi.Success, "forbid shared memory")
	}
	c.fid++
	s.ep.SetFID(c.fid)
	if err := s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.drop(t, s) })
	c.sides = append(c.sides, s)
	return s
}

// drop closes an end.
func (c *connBench) drop(t *testing.T, s *side) {
	if s.ep == nil {
		return
	}
	for _, o := range []io.Closer{s.ep, s.cq} {
		if err := o.Close(); err != nil {
			t.Errorf("close %T: %v", o, err)
		}
	}
	s.ep = nil
}

// event waits for an event of a number.
func (c *connBench) event(t *testing.T, want fi.EQEvent) eq.Event {
	t.Helper()
	return nextEvent(t, c.eq, want)
}

// nextEvent waits for an event of a number in a queue.
func nextEvent(t *testing.T, q *eq.Queue, want fi.EQEvent) eq.Event {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		e, err := q.Next()
		switch {
		case errors.Is(err, fi.EAGAIN):
		case err != nil:
			errEntry, _ := q.ReadErr(0)
			t.Fatalf("%v instead of event %d: %+v", err, want, errEntry)
		case fi.EQEvent(e.Number) != want:
			t.Fatalf("event %d, want %d", e.Number, want)
		default:
			return e
		}
	}
	t.Fatalf("no event %d within 20 s", want)
	return eq.Event{}
}

// failure waits for an error and returns it.
func (c *connBench) failure(t *testing.T) eq.ErrEntry {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if e, err := c.eq.ReadErr(0); err == nil {
			return e
		}
	}
	t.Fatal("no error within 20 s")
	return eq.ErrEntry{}
}

// join connects a new pair.
func (c *connBench) join(t *testing.T) (a, b *side) {
	t.Helper()
	a = c.end(t, c.info)
	if err := a.ep.Connect(c.at, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	r := c.event(t, fi.ConnReq)
	if string(r.Entry[16:]) != "hello" {
		t.Errorf("request with data %q", r.Entry[16:])
	}
	b = c.end(t, r.Info)
	if err := b.ep.Accept([]byte("welcome")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.event(t, fi.Connected)
	}
	return a, b
}

func TestConnection(t *testing.T) {
	for _, threading := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain} {
		c := newConnBench(t, &fi.Info{Domain: &fi.DomainAttr{Threading: threading}})
		a, b := c.join(t)
		for i, n := range sizes {
			for _, dir := range [][2]*side{{a, b}, {b, a}} {
				want, got := pattern(n, byte(i)), make([]byte, n)
				dir[1].recv(RecvArgs{IOV: iovOf(got), Tag: 5, Tagged: true, Context: 9}, dir[0])
				dir[0].send(SendArgs{IOV: iovOf(want), Tag: 5, Tagged: true, Context: 8}, dir[1])
				if e := dir[1].completion(dir[0]); e.Context != 9 || e.Len != uint64(n) || !bytes.Equal(want, got) {
					t.Errorf("%d bytes: %+v", n, e)
				}
				if e := dir[0].completion(dir[1]); e.Context != 8 {
					t.Errorf("sent %d bytes: %+v", n, e)
				}
			}
		}
		if err := a.ep.Connect(c.at, nil); !errors.Is(err, fi.EISCONN) {
			t.Errorf("connect again: %v", err)
		}
		b.recv(RecvArgs{Context: 3})
		c.drop(t, a)
		c.event(t, fi.Shutdown)
		if e := endOf(b); e.Context != 3 || e.Err != fi.ECANCELED {
			t.Errorf("receive of a disconnected endpoint: %+v", e)
		}
		if err := b.ep.Send(&SendArgs{}); !errors.Is(err, fi.ESHUTDOWN) {
			t.Errorf("send after the end: %v", err)
		}
		c.drop(t, b)
	}
}

// TestEndTakesPosts has the end of a connection end the receives that are still
// on their ring, in order and at once: a thread that waits for them may be asleep.
func TestEndTakesPosts(t *testing.T) {
	c := newConnBench(t, nil)
	a, b := c.join(t)
	for n := range uint64(3) {
		b.recv(RecvArgs{Context: n})
	}
	if n := leasedOf(b.ep).rx.matching.Posted(); n != 0 {
		t.Fatalf("%d receives are in matching", n)
	}
	b.ep.base.rx.acquire()
	(&connected{b.ep.base.conn, leasedOf(b.ep)}).end(fi.ECONNRESET)
	leasedOf(b.ep).rx.give()
	for n := range uint64(3) {
		if e, err := b.cq.ReadErr(); err != nil || e.Context != n || e.Err != fi.ECANCELED {
			t.Errorf("receive %d: %+v, %v", n, e, err)
		}
	}
	c.drop(t, a)
	c.drop(t, b)
}

// endOf waits for an error completion.
func endOf(s *side) (e cq.ErrEntry) {
	var buf [1]cq.Entry
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if _, err := s.cq.Read(buf[:]); errors.Is(err, fi.EAVAIL) {
			e, _ = s.cq.ReadErr()
			return e
		}
		s.ep.Progress()
	}
	s.t.Fatal("no error completion within 20 s")
	return e
}

// TestManyConnections makes many connections at once from one process; each
// carries its own messages.
func TestManyConnections(t *testing.T) {
	c := newConnBench(t, nil)
	const n = 40
	active, passive := map[uintptr]*side{}, map[uintptr]*side{}
	for range n {
		s := c.end(t, c.info)
		active[s.ep.base.conn.fid] = s
		if err := s.ep.Connect(c.at, []byte(fmt.Sprint(s.ep.base.conn.fid))); err != nil {
			t.Fatal(err)
		}
	}
	for up := 0; up < 2*n; {
		e, err := c.eq.Next()
		switch {
		case errors.Is(err, fi.EAGAIN):
			time.Sleep(time.Millisecond)
		case err != nil:
			entry, _ := c.eq.ReadErr(0)
			t.Fatalf("%+v", entry)
		case fi.EQEvent(e.Number) == fi.Connected:
			up++
		default:
			var fid uintptr
			_, _ = fmt.Sscan(string(e.Entry[16:]), &fid)
			s := c.end(t, e.Info)
			passive[fid] = s
			if err := s.ep.Accept(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for fid, a := range active {
		want, got := pattern(100, byte(fid)), make([]byte, 100)
		b := passive[fid]
		b.recv(RecvArgs{IOV: iovOf(got)}, a)
		a.send(SendArgs{IOV: iovOf(want)}, b)
		b.completion(a)
		if !bytes.Equal(want, got) {
			t.Errorf("connection %d carries another's message", fid)
		}
	}
}

func TestReject(t *testing.T) {
	c := newConnBench(t, nil)
	a := c.end(t, c.info)
	if err := a.ep.Connect(c.at, nil); err != nil {
		t.Fatal(err)
	}
	r := c.event(t, fi.ConnReq).Info.Handle.(*ConnReq)
	if err := c.pep.Reject(r, []byte("no")); err != nil {
		t.Fatal(err)
	}
	if err := c.pep.Reject(r, nil); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("reject again: %v", err)
	}
	if e := c.failure(t); e.Err != fi.ECONNREFUSED || string(e.ErrData) != "no" || e.FID != a.ep.base.conn.fid {
		t.Errorf("rejection arrives as %+v", e)
	}
	info := c.info.Clone()
	info.Handle = r
	if _, err := c.domain.OpenEndpoint(info); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("endpoint for a rejected request: %v", err)
	}
}

// TestStrangersAtConnection has an endpoint send to a connected endpoint's name
// that is not its peer.
func TestStrangersAtConnection(t *testing.T) {
	c := newConnBench(t, nil)
	a, b := c.join(t)
	rdm := newBench(t, nil, nil)
	s := rdm.side(t)
	addrs := make([]fi.Addr, 1)
	if n, err := s.av.Insert(b.ep.base.name.AppendSockaddr(nil), 1, &Insertion{Addrs: addrs}); n != 1 {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	b.recv(RecvArgs{IOV: iovOf(got)}, a)
	s.send(SendArgs{IOV: iovOf([]byte("stranger")), Dest: addrs[0]})
	for range 100 {
		b.ep.Progress()
	}
	a.send(SendArgs{IOV: iovOf([]byte("my peer!"))}, b)
	b.completion(a)
	if string(got) != "my peer!" {
		t.Errorf("received %q", got)
	}
}

// TestTakenName gives a passive endpoint's address to an active one.
func TestTakenName(t *testing.T) {
	c := newConnBench(t, nil)
	p, err := c.fabric.OpenPassive(c.info)
	if err != nil {
		t.Fatal(err)
	}
	info := c.info.Clone()
	info.Handle = p
	want, _ := p.Name()
	s := c.end(t, info)
	if got, err := s.ep.Name(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("name % x, not % x: %v", got, want, err)
	}
	if _, err := c.domain.OpenEndpoint(info); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("taken twice: %v", err)
	}
	if err := p.Listen(); !errors.Is(err, fi.EOPBADSTATE) {
		t.Errorf("listen without a name: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	info.Handle = c.pep
	if _, err := c.domain.OpenEndpoint(info); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("name of one that listens: %v", err)
	}
}

// TestDomainEQ has endpoints without an event queue report to that of their domain, which their own replaces.
func TestDomainEQ(t *testing.T) {
	c := newConnBench(t, nil)
	first := c.domain
	var err error
	if c.domain, err = c.fabric.OpenDomain(c.info); err != nil {
		t.Fatal(err)
	}
	shared, own := openTestEQ(t, c.fabric), openTestEQ(t, c.fabric)
	wantErrno(t, c.domain.BindEQ(shared, 0), fi.Success, "bind to the domain")
	a := c.bare(t, c.info)
	wantErrno(t, a.ep.Enable(), fi.Success, "enable")
	wantErrno(t, a.ep.Connect(c.at, nil), fi.Success, "connect")
	b := c.bare(t, c.event(t, fi.ConnReq).Info)
	wantErrno(t, b.ep.Enable(), fi.Success, "enable")
	wantErrno(t, b.ep.Accept(nil), fi.Success, "accept")
	for range 2 {
		nextEvent(t, shared, fi.Connected)
	}
	wantErrno(t, b.ep.BindEQ(own, 0), fi.Success, "bind to the endpoint")
	c.drop(t, a)
	nextEvent(t, own, fi.Shutdown)
	c.drop(t, b)
	wantErrno(t, shared.Close(), fi.EBUSY, "close of the domain's queue")
	wantErrno(t, c.domain.Close(), fi.Success, "close domain")
	for _, q := range []*eq.Queue{shared, own} {
		wantErrno(t, q.Close(), fi.Success, "close queue")
	}
	c.domain = first
}
