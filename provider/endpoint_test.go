package provider

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
)

// side is an endpoint with everything bound to it.
type side struct {
	t      testing.TB
	bench  *bench
	domain *Domain
	av     *AV
	cq     *cq.Queue
	ep     *Endpoint
	addr   map[*side]fi.Addr
}

// bench is the fabric of a test.
type bench struct {
	t      testing.TB
	fabric *Fabric
	domain *Domain
	info   *fi.Info
	sides  []*side
}

func newBench(t testing.TB, change func(*config.Config), hints *fi.Info) *bench {
	t.Helper()
	return newBenchAt(t, "127.0.0.1", nil, change, hints)
}

// newBenchAt opens the fabric of an address with some settings.
func newBenchAt(t testing.TB, node string, settings map[string]string, change func(*config.Config),
	hints *fi.Info) *bench {
	t.Helper()
	SetConfigLookup(func(name string) (string, bool) {
		v, ok := settings[name]
		return v, ok
	})
	t.Cleanup(func() { SetConfigLookup(nil) })
	version := fi.Version(1, 20)
	if hints != nil && hints.Caps&(info.DirectedCaps|fi.TaggedMultiRecv)&^fi.DirectedRecv != 0 {
		version = fi.Version(2, 0)
	}
	infos, err := GetInfo(version, node, "0", fi.Source, hints)
	if err != nil {
		t.Fatal(err)
	}
	return openBench(t, infos[0], change)
}

// openBench opens the fabric and the domain of an answer.
func openBench(t testing.TB, of *fi.Info, change func(*config.Config)) *bench {
	t.Helper()
	b := &bench{t: t, info: of}
	var err error
	if b.fabric, err = OpenFabric(b.info.Fabric); err != nil {
		t.Fatal(err)
	}
	if b.domain, err = b.fabric.OpenDomain(b.info); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		c := *b.domain.cfg
		change(&c)
		b.domain.cfg = &c
	}
	t.Cleanup(func() {
		if err := b.domain.Close(); err != nil {
			t.Errorf("close domain: %v", err)
		}
		if err := b.fabric.Close(); err != nil {
			t.Errorf("close fabric: %v", err)
		}
	})
	return b
}

func (b *bench) side(t testing.TB) *side {
	t.Helper()
	return b.sideWith(t, fi.WaitNone)
}

// sideWith is side with a kind of wait object for its queue.
func (b *bench) sideWith(t testing.TB, wait fi.WaitObj) *side {
	t.Helper()
	s := &side{t: t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
	var err error
	if s.av, err = b.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable}); err != nil {
		t.Fatal(err)
	}
	if s.cq, err = b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 256, WaitObj: wait}, nil); err != nil {
		t.Fatal(err)
	}
	if s.ep, err = b.domain.OpenEndpoint(b.info); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0), s.ep.Enable()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.close)
	b.sides = append(b.sides, s)
	return s
}

// pair makes two sides that know each other.
func (b *bench) pair(t testing.TB) (x, y *side) {
	t.Helper()
	x, y = b.side(t), b.side(t)
	x.know(y)
	y.know(x)
	return x, y
}

func (s *side) close() {
	if s.ep == nil {
		return
	}
	for _, c := range []interface{ Close() error }{s.ep, s.cq, s.av} {
		if err := c.Close(); err != nil {
			s.t.Errorf("close %T: %v", c, err)
		}
	}
	s.ep = nil
}

// know puts the other sides into s's address vector.
func (s *side) know(others ...*side) {
	s.t.Helper()
	for _, o := range others {
		raw, err := o.ep.Name()
		if err != nil {
			s.t.Fatal(err)
		}
		addrs := make([]fi.Addr, 1)
		if n, err := s.av.Insert(raw, 1, &Insertion{Addrs: addrs}); n != 1 {
			s.t.Fatalf("insert: %d, %v", n, err)
		}
		s.addr[o] = addrs[0]
	}
}

// onHeap makes buffers escape: one on a goroutine's stack would move with it.
var onHeap atomic.Pointer[byte]

// lately keeps buffers reachable that were given by address lately: their callers have nothing else of most, and a
// pointer to one that was collected ends the process.
var lately struct {
	list [1024]atomic.Pointer[byte]
	next atomic.Uint32
}

func iovOf(b []byte) []fi.IOVec {
	if len(b) == 0 {
		return nil
	}
	if onHeap.Store(&b[0]); len(b) <= 64<<10 {
		lately.list[lately.next.Add(1)%uint32(len(lately.list))].Store(&b[0])
	}
	return []fi.IOVec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: uint64(len(b))}}
}

// meet takes the leases of all sides in turn. The race detector sees what goes through
// them, and not what goes through rings off the Go heap: without it, buffers that
// a progress thread reads or has written would look like races.
func (s *side) meet() {
	if s.bench == nil {
		return // no progress thread drives it
	}
	for _, o := range s.bench.sides {
		if o.ep != nil {
			o.ep.base.rx.acquire()
			leasedOf(o.ep).rx.give()
		}
	}
}

// send posts until there is room, making progress on all sides meanwhile.
func (s *side) send(a SendArgs, others ...*side) {
	s.t.Helper()
	s.meet()
	s.retry(func() error { return s.ep.Send(&a) }, others)
}

func (s *side) recv(a RecvArgs, others ...*side) {
	s.t.Helper()
	s.meet()
	s.retry(func() error { return s.ep.PostRecv(&a) }, others)
}

func (s *side) retry(f func() error, others []*side) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			s.t.Fatalf("post: %v", err)
		}
		s.ep.Progress()
		for _, o := range others {
			o.ep.Progress()
		}
	}
}

// completion reads the next completion, making progress on all sides.
func (s *side) completion(others ...*side) cq.Entry {
	s.t.Helper()
	e, err := s.next(others...)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

func (s *side) next(others ...*side) (cq.Entry, error) {
	var buf [1]cq.Entry
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		n, err := s.cq.Read(buf[:])
		if n == 1 {
			s.meet()
			return buf[0], nil
		}
		if !errors.Is(err, fi.EAGAIN) {
			return cq.Entry{}, err
		}
		s.ep.Progress()
		for _, o := range others {
			o.ep.Progress()
		}
	}
	return cq.Entry{}, fmt.Errorf("no completion within a minute")
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) + byte(i>>8) + seed
	}
	return b
}

var sizes = []int{0, 1, 8, 96, 97, 104, 105, 4096, 8191, 8192, 8193, 65536, 65537, 1<<20 + 3, 9 << 20}

// swap sends one message of each size from a to b, the receive posted
// before or after the message arrived.
func swap(t *testing.T, a, b *side, flags uint64, early bool) {
	t.Helper()
	for i, n := range sizes {
		want, got := pattern(n, byte(i)), make([]byte, n)
		tag := uint64(i) << 40
		post := func() {
			b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Tag: tag, Context: 1, Tagged: true}, a)
		}
		if early {
			post()
		}
		a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Tag: tag, Data: 77, HasData: true, Context: 2, Tagged: true,
			Flags: flags}, b)
		if !early {
			for range 3 {
				b.ep.Progress()
			}
			post()
		}
		e := b.completion(a)
		if e.Context != 1 || e.Len != uint64(n) || e.Tag != tag || e.Data != 77 || e.Src != b.addr[a] ||
			e.Flags != fi.Recv|fi.Tagged|fi.RemoteCQData {
			t.Fatalf("%d bytes: %+v", n, e)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: wrong data", n)
		}
		if e := a.completion(b); e.Context != 2 || e.Flags != fi.Send|fi.Tagged {
			t.Fatalf("%d bytes: sent %+v", n, e)
		}
	}
}

func TestExchange(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"default":   nil,
		"alone":     func(c *config.Config) { c.AssistSize = 0 },
		"fragments": func(c *config.Config) { c.UseCMA = config.No },
		"closed":    func(c *config.Config) { c.UnexpectedBytes = 0 },
	} {
		for flagName, flags := range map[string]uint64{"": 0, "delivery": fi.DeliveryComplete} {
			for _, early := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/early=%v", name, flagName, early), func(t *testing.T) {
					bench := newBench(t, change, nil)
					a, b := bench.side(t), bench.side(t)
					a.know(b)
					b.know(a)
					swap(t, a, b, flags, early)
				})
			}
		}
	}
}

func TestSendToSelf(t *testing.T) {
	a := newBench(t, nil, nil).side(t)
	a.know(a)
	got, want := make([]byte, 100000), pattern(100000, 1)
	a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[a], Context: 1})
	a.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 2})
	seen := a.completion().Context + a.completion().Context
	if seen != 3 || !bytes.Equal(got, want) {
		t.Fatalf("contexts sum to %d, data equal: %v", seen, bytes.Equal(got, want))
	}
}

// TestOrder sends a mix of sizes with one tag while the other side receives:
// receives must match in the order of the sends.
func TestOrder(t *testing.T) {
	bench := newBench(t, nil, nil)
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	rng := rand.New(rand.NewPCG(1, 2))
	const n, window = 3000, 16
	var out, in [n][]byte
	posted, received := 0, 0
	for i := 0; received < n; {
		if i < n && i < received+window {
			out[i] = pattern([]int{8, 200, 9000, 70000}[rng.IntN(4)], byte(i))
			a.send(SendArgs{IOV: iovOf(out[i]), Dest: a.addr[b], Tag: 5, Tagged: true, Context: uint64(i)}, b)
			i++
		}
		if posted < n && (posted < i || rng.IntN(2) == 0) {
			in[posted] = make([]byte, 70000)
			b.recv(RecvArgs{IOV: iovOf(in[posted]), Src: b.addr[a], Tag: 5, Tagged: true, Context: uint64(posted)}, a)
			posted++
		}
		a.ep.Progress()
		b.ep.Progress()
		var e [8]cq.Entry
		_, _ = a.cq.Read(e[:])
		k, err := b.cq.Read(e[:])
		if err != nil && !errors.Is(err, fi.EAGAIN) {
			t.Fatal(err)
		}
		for _, c := range e[:k] {
			if !bytes.Equal(in[c.Context][:c.Len], out[c.Context]) {
				t.Fatalf("receive %d got another message", c.Context)
			}
			out[c.Context], in[c.Context] = nil, nil
			received++
		}
	}
}

func TestTruncation(t *testing.T) {
	bench := newBench(t, nil, nil)
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	for _, n := range []int{100, 5000, 100000} {
		got := make([]byte, n-10)
		b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Context: 1})
		want := pattern(n, 3)
		a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Context: 2}, b)
		if _, err := b.next(a); !errors.Is(err, fi.EAVAIL) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		e, err := b.cq.ReadErr()
		if err != nil || e.Err != fi.ETRUNC || e.OLen != 10 || e.Context != 1 || e.Len != uint64(n-10) {
			t.Fatalf("%d bytes: %+v, %v", n, e, err)
		}
		if !bytes.Equal(got, want[:n-10]) {
			t.Fatalf("%d bytes: wrong data", n)
		}
		a.completion(b)
	}
}

func TestCancel(t *testing.T) {
	a := newBench(t, nil, nil).side(t)
	buf := make([]byte, 8)
	a.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 1, Tagged: true, Context: 11})
	a.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 2, Tagged: true, Context: 12})
	if err := a.ep.Cancel(11); err != nil {
		t.Fatal(err)
	}
	if _, err := a.next(); !errors.Is(err, fi.EAVAIL) {
		t.Fatal(err)
	}
	if e, _ := a.cq.ReadErr(); e.Err != fi.ECANCELED || e.Context != 11 {
		t.Fatalf("%+v", e)
	}
}

// TestReplacedEQ closes an endpoint that has events on a queue which another one has replaced.
func TestReplacedEQ(t *testing.T) {
	c := newConnBench(t, nil)
	a := c.end(t, c.info)
	a.ep.base.conn.Connected(nil)
	c.eq.PostError(eq.ErrEntry{FID: a.ep.base.conn.fid, Err: fi.ECONNRESET})
	second, err := c.fabric.OpenEQ(&fi.EQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ep.BindEQ(second, 0); err != nil {
		t.Fatal(err)
	}
	a.ep.base.conn.Connected(nil)
	c.drop(t, a)
	for i, q := range []*eq.Queue{c.eq, second} {
		if _, err := q.Next(); !errors.Is(err, fi.EAGAIN) {
			t.Errorf("queue %d has events of an endpoint that is closed: %v", i, err)
		}
	}
	if err := second.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
