package backend

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/names"
)

// side is an endpoint as a program has one: with a fabric and a domain of its own.
type side struct {
	t      *testing.T
	domain *provider.Domain
	av     *provider.AV
	queue  *cq.Queue
	ep     *provider.Endpoint
	peer   fi.Addr
	// networks is how many the fabric has.
	networks int
}

// must ends the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configure has nothing but shared memory and the networks of programs lead to peers.
func configure(t *testing.T) {
	values := map[string]string{
		"FI_WEFT_SHM_ACROSS": "no", "FI_WEFT_UDP": "no", "FI_WEFT_VERBS": "no", "FI_WEFT_CXI": "no",
		"FI_WEFT_SHM_DIR": t.TempDir(),
	}
	provider.SetConfigLookup(func(name string) (string, bool) {
		value, is := values[name]
		return value, is
	})
	t.Cleanup(func() { provider.SetConfigLookup(nil) })
}

// openSide opens an endpoint that shares no memory with its peers.
func openSide(t *testing.T, networks ...provider.Network) *side {
	t.Helper()
	infos, err := provider.GetInfo(fi.Version(1, 20), "127.0.0.1", "0", fi.Source, &fi.Info{
		Caps:   fi.Tagged | fi.RMA,
		EP:     &fi.EPAttr{Type: fi.EPRDM},
		Domain: &fi.DomainAttr{MRMode: fi.MRProvKey},
	})
	must(t, err)
	fabric, err := provider.OpenFabric(infos[0].Fabric)
	must(t, err)
	t.Cleanup(func() { must(t, fabric.Close()) })
	for _, n := range networks {
		must(t, fabric.AddNetwork(n))
	}
	s := &side{t: t, networks: len(networks)}
	s.domain, err = fabric.OpenDomain(infos[0])
	must(t, err)
	t.Cleanup(func() { must(t, s.domain.Close()) })
	s.av, err = s.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable})
	must(t, err)
	t.Cleanup(func() { must(t, s.av.Close()) })
	s.queue, err = s.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 64}, nil)
	must(t, err)
	t.Cleanup(func() { must(t, s.queue.Close()) })
	s.ep, err = s.domain.OpenEndpoint(infos[0])
	must(t, err)
	t.Cleanup(func() { _ = s.ep.Close() }) // a test may have closed it
	must(t, s.ep.BindAV(s.av, 0))
	must(t, s.ep.BindCQ(s.queue, fi.Transmit|fi.Recv))
	return s
}

// openPair opens two endpoints that reach each other by the hub alone.
func openPair(t *testing.T, hub *Hub) (a, b *side) {
	t.Helper()
	configure(t)
	a, b = openSide(t, hub.Network()), openSide(t, hub.Network())
	for _, s := range []*side{a, b} {
		must(t, s.ep.SetOpt(fi.OptSharedMemoryPermitted, 0))
		must(t, s.ep.Enable())
	}
	a.know(b)
	b.know(a)
	return a, b
}

// know inserts a peer's address.
func (s *side) know(o *side) {
	s.t.Helper()
	name, err := o.ep.Name()
	must(s.t, err)
	var got [1]fi.Addr
	_, err = s.av.Insert(name, 1, &provider.Insertion{Addrs: got[:]})
	must(s.t, err)
	s.peer = got[0]
}

// iovOf describes memory of the heap that an operation uses.
func iovOf(b []byte) []fi.IOVec {
	return []fi.IOVec{{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}}
}

// post posts an operation as soon as there is room, and both sides make progress until then.
func (s *side) post(o *side, operation func() error) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; s.progress(o) {
		err := operation()
		if err == nil {
			return
		}
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// await reads the next completion of s; both sides make progress.
func (s *side) await(o *side) (cq.Entry, error) {
	s.t.Helper()
	var done [1]cq.Entry
	for end := time.Now().Add(time.Minute); ; s.progress(o) {
		n, err := s.queue.Read(done[:])
		switch {
		case n == 1:
			return done[0], nil
		case errors.Is(err, fi.EAVAIL):
			failed, err := s.queue.ReadErr()
			must(s.t, err)
			return failed.Entry, failed.Err
		case !errors.Is(err, fi.EAGAIN):
			s.t.Fatal(err)
		case time.Now().After(end):
			s.t.Fatal("no completion")
		}
	}
}

// done wants the next completion of s to be that of an operation without error.
func (s *side) done(o *side, context uint64) cq.Entry {
	s.t.Helper()
	e, err := s.await(o)
	if err != nil || e.Context != context {
		s.t.Fatalf("operation %d: %v, want %d", e.Context, err, context)
	}
	return e
}

func (s *side) progress(o *side) {
	s.ep.Progress()
	o.ep.Progress()
}

// delivered returns how many messages the interfaces of a hub have delivered.
func (h *Hub) delivered() (n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.open {
		n += i.Stats().Delivered
	}
	return n
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// TestProviderMessages sends messages of every protocol over the hub.
func TestProviderMessages(t *testing.T) {
	hub := &Hub{}
	a, b := openPair(t, hub)
	for tag, n := range []int{0, 8, maxShort + 1, maxBcopy, maxBcopy + 1, 1 << 20} {
		before := hub.delivered()
		sent, got := pattern(n), make([]byte, n+1)
		b.post(a, func() error {
			return b.ep.PostRecv(&provider.RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tag: uint64(tag), Tagged: true,
				Context: 1})
		})
		a.post(b, func() error {
			return a.ep.Send(&provider.SendArgs{IOV: iovOf(sent), Dest: a.peer, Tag: uint64(tag), Tagged: true,
				Context: 2})
		})
		a.done(b, 2)
		if e := b.done(a, 1); e.Len != uint64(n) || !bytes.Equal(got[:n], sent) {
			t.Fatalf("%d bytes: %d arrive, or others", n, e.Len)
		}
		if hub.delivered() == before {
			t.Fatalf("%d bytes have not gone over the hub", n)
		}
	}
}

// TestProviderRMA writes and reads a peer's memory over the hub.
func TestProviderRMA(t *testing.T) {
	hub := &Hub{}
	a, b := openPair(t, hub)
	for _, n := range []int{8, maxBcopy, 100_000} {
		memory, sent, got := make([]byte, n), pattern(n), make([]byte, n)
		mr, err := b.domain.RegMR(&fi.MRAttr{IOV: iovOf(memory), Access: fi.RemoteRead | fi.RemoteWrite}, 0)
		must(t, err)
		before := hub.delivered()
		remote := []fi.RMAIOVec{{Len: uint64(n), Key: mr.Key()}}
		a.post(b, func() error {
			return a.ep.RMA(&provider.RMAArgs{IOV: iovOf(sent), Remote: remote, Dest: a.peer, Context: 3,
				Flags: fi.DeliveryComplete})
		})
		a.done(b, 3)
		if !bytes.Equal(memory, sent) {
			t.Fatalf("a write of %d bytes is wrong", n)
		}
		a.post(b, func() error {
			return a.ep.RMA(&provider.RMAArgs{IOV: iovOf(got), Remote: remote, Dest: a.peer, Context: 4, Read: true})
		})
		a.done(b, 4)
		if !bytes.Equal(got, sent) {
			t.Fatalf("a read of %d bytes is wrong", n)
		}
		if hub.delivered() < before+4 {
			t.Fatalf("%d bytes have not gone over the hub", n)
		}
		must(t, mr.Close())
	}
}

// TestProviderOtherHost inserts the address of another host, to which the network may lead.
func TestProviderOtherHost(t *testing.T) {
	configure(t)
	address := names.New(netip.MustParseAddr("192.0.2.1"), 7).AppendSockaddr(nil)
	for _, s := range []*side{openSide(t), openSide(t, (&Hub{}).Network())} {
		var got [1]fi.Addr
		_, err := s.av.Insert(address, 1, &provider.Insertion{Addrs: got[:]})
		if networks := s.networks; err != nil || (got[0] != fi.AddrNotAvail) != (networks != 0) {
			t.Errorf("with %d networks: address %#x, %v", networks, got[0], err)
		}
	}
}

// TestProviderPeerGone has a peer close, after which what is sent to it fails.
func TestProviderPeerGone(t *testing.T) {
	a, b := openPair(t, &Hub{})
	got := make([]byte, 8)
	must(t, b.ep.PostRecv(&provider.RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tagged: true, Context: 1}))
	send := func() error {
		return a.ep.Send(&provider.SendArgs{IOV: iovOf(pattern(8)), Dest: a.peer, Tagged: true, Context: 2})
	}
	a.post(b, send)
	a.done(b, 2)
	b.done(a, 1)
	must(t, b.ep.Close())
	for end := time.Now().Add(time.Minute); ; a.ep.Progress() {
		err := send()
		if errors.Is(err, fi.ECONNRESET) {
			return
		}
		if err != nil && !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			t.Fatalf("send to a closed endpoint: %v", err)
		}
	}
}

// weak is an interface that lacks something.
type weak struct {
	*Iface
	attr hw.Attr
}

func (w weak) Attr() hw.Attr { return w.attr }

// TestProviderRefuses: networks without a name, interfaces that are too weak, and those that do not open.
func TestProviderRefuses(t *testing.T) {
	configure(t)
	hub := &Hub{}
	infos, err := provider.GetInfo(fi.Version(1, 20), "127.0.0.1", "0", fi.Source, &fi.Info{Caps: fi.Tagged})
	must(t, err)
	fabric, err := provider.OpenFabric(infos[0].Fabric)
	must(t, err)
	defer fabric.Close()
	good := hub.Network()
	must(t, fabric.AddNetwork(good))
	for _, n := range []provider.Network{good, {Name: "closed"}, {Open: good.Open}} {
		if err := fabric.AddNetwork(n); !errors.Is(err, fi.EINVAL) {
			t.Errorf("add %q: %v", n.Name, err)
		}
	}
	for name, c := range map[string]struct {
		change func(*hw.Attr)
		err    error
		want   fi.Errno
	}{
		"no order":    {func(a *hw.Attr) { a.Caps &^= hw.CapOrdered }, nil, fi.EINVAL},
		"short heads": {func(a *hw.Attr) { a.MaxAMHead-- }, nil, fi.EINVAL},
		"no payload":  {func(a *hw.Attr) { a.MaxAMBcopy = 0 }, nil, fi.EINVAL},
		"no device":   {nil, fi.ENODEV, fi.ENODEV},
		"no access":   {nil, hw.ErrPermission, fi.EACCES},
		"broken":      {nil, errors.New("broken"), fi.EIO},
	} {
		s := openSide(t, provider.Network{Name: name, Open: func(address []byte) (hw.Iface, error) {
			if c.err != nil {
				return nil, c.err
			}
			i, err := hub.OpenAt(address)
			must(t, err)
			w := weak{i, i.Attr()}
			c.change(&w.attr)
			return w, nil
		}})
		if err := s.ep.Enable(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if len(hub.open) != 0 {
		t.Errorf("%d interfaces stay open", len(hub.open))
	}
}
