package provider

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// owner is another provider with one receive at a time and a list of messages.
type owner struct {
	recv   *PeerReceive // nil: none is posted
	last   uint64       // entry
	given  map[uint64]PeerReceive
	queued map[uint64]uint64 // entry to message
	addrs  []fi.Addr
	freed  int
	known  int      // calls of Inserted
	refuse fi.Errno // Get says

	queueing, inserting func() // at the begin of Queue and Inserted, nil: nothing
}

func (o *owner) Get(_ bool, addr fi.Addr, _, _ uint64) (uint64, fi.Errno) {
	if o.refuse != fi.Success {
		return 0, o.refuse
	}
	o.last++
	o.addrs = append(o.addrs, addr)
	if o.recv == nil {
		return o.last, fi.ENOENT
	}
	o.given[o.last], o.recv = *o.recv, nil
	return o.last, fi.Success
}

func (o *owner) Queue(_ bool, entry, id, _, _ uint64) fi.Errno {
	if o.queueing != nil {
		o.queueing()
	}
	o.queued[entry] = id
	return fi.Success
}

func (o *owner) Receive(entry uint64) PeerReceive { return o.given[entry] }
func (o *owner) Free(uint64)                      { o.freed++ }
func (o *owner) Inserted() {
	if o.inserting != nil {
		o.inserting()
	}
	o.known++
}

// peerSide is an endpoint whose receives are o's.
func peerSide(t *testing.T, b *bench, o *owner) *side {
	t.Helper()
	return peerSideOver(t, b, o, &fi.AVAttr{})
}

// peerSideOver is peerSide with an address vector of its attributes.
func peerSideOver(t *testing.T, b *bench, o *owner, attr *fi.AVAttr) *side {
	t.Helper()
	b.domain.info.Caps |= fi.Peer | fi.AVUserID
	s := &side{t: t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
	srx, err := b.domain.OpenPeerRx(&fi.RxAttr{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if s.av, err = b.domain.OpenAV(attr); err != nil {
		t.Fatal(err)
	}
	s.cq, _ = b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 64}, nil)
	if s.ep, err = b.domain.OpenEndpoint(b.info); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0), s.ep.BindSharedRx(srx),
		s.ep.Enable()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.close()
		if err := srx.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// poll makes progress as the owner does.
func (s *side) poll() {
	if r := s.ep.base.rx.take(); r != nil {
		r.progress()
		r.give()
	}
}

// TestPeerReceives sends messages of every protocol to receives of another
// provider, and to none.
func TestPeerReceives(t *testing.T) {
	b := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Source})
	o := &owner{given: map[uint64]PeerReceive{}, queued: map[uint64]uint64{}}
	y := peerSide(t, b, o)
	x := b.side(t)
	x.know(y)
	raw, _ := x.ep.Name()
	id := []fi.Addr{4711}
	if n, err := y.av.Insert(raw, 1, &Insertion{Flags: fi.AVUserID, Addrs: id}); n != 1 || id[0] == 4711 {
		t.Fatalf("insert: %d, %v, address %d", n, err, id[0])
	}
	buf := make([]byte, 1<<20)
	for i, n := range []int{0, 8, 5000, 300_000, 8, 5000, 300_000} {
		data := bufPattern(n, byte(i))
		expected := i < 4
		recv := PeerReceive{IOV: iovOf(buf), Context: uint64(i)}
		if expected {
			o.recv = &recv
		}
		post(t, func() error {
			return x.ep.Send(&SendArgs{IOV: iovOf(data), Dest: x.addr[y], Tag: 5, Tagged: true, Context: 9,
				Flags: fi.DeliveryComplete})
		})
		for range 20 {
			y.poll()
		}
		if !expected {
			if len(o.queued) != 1 {
				t.Fatalf("%d messages queued", len(o.queued))
			}
			for entry, message := range o.queued {
				o.given[entry] = recv
				if err := StartPeer(entry, message); err != nil {
					t.Fatal(err)
				}
				wantErrno(t, StartPeer(entry, message), fi.ENOENT, "start twice")
				delete(o.queued, entry)
			}
		}
		e, failed, ok := peerSettle(t, y, x)
		if !ok || e.Len != uint64(n) || e.Context != uint64(i) || e.Src != 4711 || !bytes.Equal(buf[:n], data) {
			t.Fatalf("message %d of %d bytes: %+v %+v", i, n, e, failed)
		}
		if _, failed, ok := peerSettle(t, x, y); !ok {
			t.Fatalf("sender: %+v", failed)
		}
		if o.addrs[i] != 4711 || o.freed != i+1 {
			t.Fatalf("owner was asked about address %d, entries freed %d", o.addrs[i], o.freed)
		}
	}
	o.refuse = fi.ENOMEM
	post(t, func() error { return x.ep.Send(&SendArgs{Dest: x.addr[y], Flags: fi.DeliveryComplete}) })
	if _, failed, ok := peerSettle(t, x, y); ok || failed.Err != fi.ENOMEM {
		t.Errorf("message that the owner refuses: %+v", failed)
	}
	wantErrno(t, y.ep.PostRecv(&RecvArgs{}), fi.ENOSYS, "receive on the endpoint")
	wantErrno(t, DiscardPeer(1<<60), fi.ENOENT, "discard what is not there")
}

// peerSettle is settle for sides of which one progresses by its owner.
func peerSettle(t *testing.T, s, other *side) (cq.Entry, cq.ErrEntry, bool) {
	t.Helper()
	var got [1]cq.Entry
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		s.poll()
		other.poll()
		n, err := s.cq.Read(got[:])
		if n == 1 {
			return got[0], cq.ErrEntry{}, true
		}
		if errors.Is(err, fi.EAVAIL) {
			e, err := s.cq.ReadErr()
			if err != nil {
				t.Fatal(err)
			}
			return cq.Entry{}, e, false
		}
	}
	t.Fatal("no completion")
	return cq.Entry{}, cq.ErrEntry{}, false
}

// TestPeerInserted shows that an owner hears of new addresses in the address vectors of its endpoints, until they
// are closed, and not of others.
func TestPeerInserted(t *testing.T) {
	b := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Source})
	first, second := &owner{}, &owner{}
	x, y := peerSide(t, b, first), peerSide(t, b, second)
	raw, _ := x.ep.Name()
	bad := make([]byte, len(raw))
	for i, step := range []struct {
		av            *AV
		addr          []byte
		first, second int
	}{{x.av, raw, 1, 0}, {y.av, raw, 1, 1}, {x.av, bad, 1, 1}} {
		_, _ = step.av.Insert(step.addr, 1, &Insertion{}) // what is bad is refused
		if first.known != step.first || second.known != step.second {
			t.Fatalf("step %d: %d and %d calls, want %d and %d", i, first.known, second.known, step.first, step.second)
		}
	}
}

// TestPeerInsertedLocked: an owner asks for addresses under the lock that it takes to queue a message, while the holder
// of the lease waits for it there.
func TestPeerInsertedLocked(t *testing.T) {
	b := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Source})
	o := &owner{given: map[uint64]PeerReceive{}, queued: map[uint64]uint64{}}
	y, x := peerSide(t, b, o), b.side(t)
	x.know(y)
	raw, _ := x.ep.Name()
	send := func() {
		post(t, func() error { return x.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y]}) })
	}
	send()
	for len(o.queued) == 0 {
		y.poll()
	}
	var lock sync.Mutex
	inserting, queueing, named := make(chan bool), make(chan bool), make(chan fi.Addr, 1)
	o.inserting = func() {
		lock.Lock()
		defer lock.Unlock()
		inserting <- true
		<-queueing
		for _, id := range o.queued {
			named <- PeerAddr(id)
		}
	}
	o.queueing = func() {
		queueing <- true
		lock.Lock()
		defer lock.Unlock()
	}
	var insertion sync.WaitGroup
	insertion.Go(func() { _, _ = y.av.Insert(raw, 1, &Insertion{}) })
	<-inserting
	send()
	polled := make(chan bool)
	go func() {
		for len(o.queued) == 1 {
			y.poll()
		}
		close(polled)
	}()
	select {
	case at := <-named:
		if at != 0 {
			t.Errorf("the sender's address is %d", at)
		}
	case <-time.After(time.Minute):
		t.Fatal("insertion and progress wait for each other")
	}
	<-polled
	insertion.Wait()
}

// TestPeerInsertedElsewhere: the owner hears once, from progress, of what another process inserts into a named address
// vector.
func TestPeerInsertedElsewhere(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, func(c *config.Config) { c.SHMDir = dir }, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Source})
	o := &owner{given: map[uint64]PeerReceive{}, queued: map[uint64]uint64{}}
	y, x := peerSideOver(t, b, o, &fi.AVAttr{Name: "elsewhere"}), b.side(t)
	other, err := b.domain.OpenAV(&fi.AVAttr{Name: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	x.know(y)
	post(t, func() error { return x.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y]}) })
	for len(o.queued) == 0 {
		y.poll()
	}
	var id uint64
	for _, id = range o.queued {
	}
	before := o.known
	y.poll()
	if at := PeerAddr(id); o.known != before || at != fi.AddrUnspec {
		t.Errorf("before it is inserted: %d calls, address %d", o.known-before, at)
	}
	raw, _ := x.ep.Name()
	if n, err := other.Insert(raw, 1, &Insertion{}); n != 1 {
		t.Fatalf("insert: %d, %v", n, err)
	}
	y.poll()
	y.poll()
	if at := PeerAddr(id); o.known != before+1 || at != 0 {
		t.Errorf("after it was inserted: %d calls, address %d", o.known-before, at)
	}
}
