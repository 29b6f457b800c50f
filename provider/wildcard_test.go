package provider

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

// wildcardSide is a side whose endpoint is bound to a family's wildcard.
func (b *bench) wildcardSide(t testing.TB, family uint16) *side {
	t.Helper()
	wild := b.info.Clone()
	wild.AddrFormat = fi.Sockaddr
	wild.SrcAddr = names.Any(family, 0).AppendSockaddr(nil)
	other := *b
	other.info = wild
	return other.side(t)
}

// insert puts a name into s's address vector.
func (s *side) insert(n names.Name) fi.Addr {
	s.t.Helper()
	addrs := make([]fi.Addr, 1)
	if k, err := s.av.Insert(n.AppendSockaddr(nil), 1, &Insertion{Addrs: addrs}); k != 1 {
		s.t.Fatalf("insert %v: %v", n, err)
	}
	return addrs[0]
}

func nameOf(s string) names.Name { return names.New(netip.MustParseAddr(s), 0) }

func directed() *fi.Info { return &fi.Info{Caps: fi.Msg | fi.Tagged | fi.DirectedRecv | fi.Source} }

// reached is an alias of a, which the endpoint has no name of.
func reached(t *testing.T, a *side, alias string) names.Name {
	t.Helper()
	n := nameOf(alias).WithPort(a.ep.base.name.Port)
	if a.ep.base.name == n {
		t.Skipf("%v is the endpoint's name: this host has no other address", n)
	}
	return n
}

// TestWildcardName shows by which name an endpoint that is bound to a wildcard
// is known, and that the kernel keeps its port.
func TestWildcardName(t *testing.T) {
	b := newBench(t, nil, nil)
	a := b.wildcardSide(t, names.AFInet)
	raw, err := a.ep.Name()
	if err != nil {
		t.Fatal(err)
	}
	n, err := names.FromSockaddr(raw)
	if err != nil || n.IsAny() || n.Port == 0 {
		t.Fatalf("%v, %v", n, err)
	}
	l, ok, err := names.Find(names.System, n)
	if err != nil || !ok || l.Iface != b.domain.DomainName() {
		t.Errorf("%v is on interface %q, the domain is %q", n, l.Iface, b.domain.DomainName())
	}
	for _, want := range []names.Name{n, nameOf("127.0.0.1").WithPort(n.Port), names.Any(names.AFInet, n.Port)} {
		if s, _, err := names.Reserve(want, "", ""); fi.ErrnoOf(err) != fi.EADDRINUSE {
			t.Errorf("bind %v: %v", want, err)
			s.Close()
		}
	}
	if err := b.domain.wildcardTaken(a.ep.base.info.Clone(), n.Port); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("a second endpoint: %v", err)
	}
}

func (d *Domain) wildcardTaken(info *fi.Info, port uint16) error {
	info.SrcAddr = names.Any(names.AFInet, port).AppendSockaddr(nil)
	ep, err := d.OpenEndpoint(info)
	if err == nil {
		_ = ep.Close()
	}
	return err
}

// TestWildcardExchange has b know a only by an address that a's wildcard
// admits: all protocols, both ways, and b's receives name it as their source.
func TestWildcardExchange(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"default":   nil,
		"fragments": func(c *config.Config) { c.UseCMA = config.No },
	} {
		for _, early := range []bool{true, false} {
			for _, first := range []string{"a", "b"} {
				t.Run(name+"/"+first+map[bool]string{true: "/early", false: "/late"}[early], func(t *testing.T) {
					bench := newBench(t, change, directed())
					a, b := bench.wildcardSide(t, names.AFInet), bench.side(t)
					a.know(b)
					b.addr[a] = b.insert(reached(t, a, "127.0.0.2"))
					if first == "a" {
						swap(t, a, b, 0, early)
						swap(t, b, a, fi.DeliveryComplete, early)
					} else {
						swap(t, b, a, fi.DeliveryComplete, early)
						swap(t, a, b, 0, early)
					}
				})
			}
		}
	}
}

// TestWildcardDualStack reaches an endpoint that is bound to [::] over IPv4.
func TestWildcardDualStack(t *testing.T) {
	bench := newBench(t, nil, directed())
	if _, err := names.First(names.Any(names.AFInet6, 0), "", ""); err != nil {
		t.Skipf("no IPv6 address: %v", err)
	}
	a, b := bench.wildcardSide(t, names.AFInet6), bench.side(t)
	if !a.ep.socket.Inet || !a.ep.socket.Inet6 {
		t.Skip("this system's IPv6 sockets have no IPv4")
	}
	a.know(b)
	b.addr[a] = b.insert(nameOf("127.0.0.1").WithPort(a.ep.base.name.Port))
	swap(t, b, a, fi.DeliveryComplete, true)
	swap(t, a, b, 0, true)
}

// TestWildcardSource finds the source address of a message from a peer that
// was inserted under an address that nothing has named yet, and none where the
// address vector has only others.
func TestWildcardSource(t *testing.T) {
	bench := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.Source})
	a, b := bench.wildcardSide(t, names.AFInet), bench.side(t)
	a.know(b)
	port := a.ep.base.name.Port
	message := func() fi.Addr {
		t.Helper()
		a.send(SendArgs{Dest: a.addr[b], Context: 1}, b)
		b.recv(RecvArgs{Src: fi.AddrUnspec, Context: 2}, a)
		a.completion(b)
		return b.completion(a).Src
	}
	b.insert(nameOf("127.0.0.1").WithPort(port + 1))
	if got := message(); got != fi.AddrNotAvail {
		t.Errorf("from a stranger: %d", got)
	}
	far := b.insert(reached(t, a, "127.0.0.3"))
	if got := message(); got != fi.AddrNotAvail {
		t.Errorf("under an address that nothing has named: %d", got)
	}
	b.send(SendArgs{Dest: far, Context: 3, Inject: true}, a)
	if got := message(); got != far {
		t.Errorf("after a send to it: %d, want %d", got, far)
	}
	if err := b.av.Remove([]fi.Addr{far}, 0); err != nil {
		t.Fatal(err)
	}
	if got := message(); got != fi.AddrNotAvail {
		t.Errorf("after its removal: %d", got)
	}
	near := b.insert(nameOf("127.0.0.1").WithPort(port))
	if got := message(); got != near {
		t.Errorf("under an address of this host: %d, want %d", got, near)
	}
	own := b.insert(a.ep.base.name)
	if got := message(); got != own && a.ep.base.name != nameOf("127.0.0.1").WithPort(port) {
		t.Errorf("under its own name: %d, want %d", got, own)
	}
}

// TestWildcardOrder posts receives that name a peer by several addresses, and
// receives from anybody, before the peer is known: they match in the order in
// which they were posted.
func TestWildcardOrder(t *testing.T) {
	for _, late := range []bool{false, true} { // whether the peer is known before the last half
		bench := newBench(t, nil, directed())
		a, b := bench.wildcardSide(t, names.AFInet), bench.side(t)
		a.know(b)
		sources := []fi.Addr{
			b.insert(nameOf("127.0.0.2").WithPort(a.ep.base.name.Port)), fi.AddrUnspec,
			b.insert(nameOf("127.0.0.3").WithPort(a.ep.base.name.Port)), b.insert(a.ep.base.name),
		}
		wrong := b.insert(nameOf("127.0.0.2").WithPort(a.ep.base.name.Port + 1))
		const n = 24
		var in [n][8]byte
		for i := range in {
			if late && i == n/2 {
				a.send(SendArgs{Dest: a.addr[b], Tag: 99, Tagged: true, Inject: true}, b)
				b.ep.Progress()
			}
			b.recv(RecvArgs{IOV: iovOf(in[i][:]), Src: wrong, Tag: 5, Tagged: true, Context: 1000}, a)
			b.recv(RecvArgs{IOV: iovOf(in[i][:]), Src: sources[i%len(sources)], Tag: 5, Tagged: true,
				Context: uint64(i)}, a)
		}
		for i := range in {
			out := pattern(8, byte(i))
			a.send(SendArgs{IOV: iovOf(out), Dest: a.addr[b], Tag: 5, Tagged: true}, b)
			if e := b.completion(a); e.Context != uint64(i) || !bytes.Equal(in[i][:], out) {
				t.Fatalf("late %v: message %d went to receive %d", late, i, e.Context)
			}
		}
	}
}

// TestWildcardKept holds a message of a peer before a receive names the peer by
// an alias, the first time while the peer is there and the second after it.
func TestWildcardKept(t *testing.T) {
	bench := newBench(t, nil, directed())
	a, b := bench.wildcardSide(t, names.AFInet), bench.side(t)
	a.know(b)
	alias := b.insert(reached(t, a, "127.0.0.2"))
	for _, tag := range []uint64{1, 2} {
		a.send(SendArgs{IOV: iovOf(pattern(8, byte(tag))), Dest: a.addr[b], Tag: tag, Tagged: true}, b)
		a.completion(b)
	}
	b.ep.Progress()
	for _, tag := range []uint64{1, 2} {
		got := make([]byte, 8)
		b.recv(RecvArgs{IOV: iovOf(got), Src: alias, Tag: tag, Tagged: true, Context: tag})
		if e := b.completion(); e.Context != tag || !bytes.Equal(got, pattern(8, byte(tag))) {
			t.Fatalf("tag %d: %+v", tag, e)
		}
		if tag == 1 {
			a.close()
			b.check()
		}
	}
}

// TestWildcardSuccessor replaces a peer that was bound to a wildcard by one that
// has the alias as its own name.
func TestWildcardSuccessor(t *testing.T) {
	bench := newBench(t, nil, directed())
	a, b := bench.wildcardSide(t, names.AFInet), bench.side(t)
	a.know(b)
	name := reached(t, a, "127.0.0.2")
	b.addr[a] = b.insert(name)
	swap(t, a, b, 0, true)
	swap(t, b, a, fi.DeliveryComplete, true)
	a.close()
	b.check()
	_, _ = b.cq.Read(make([]cq.Entry, 8))
	next := *bench
	next.info = bench.info.Clone()
	next.info.AddrFormat, next.info.SrcAddr = fi.Sockaddr, name.AppendSockaddr(nil)
	c := next.side(t)
	c.know(b)
	b.addr[c] = b.addr[a]
	swap(t, c, b, 0, true)
	swap(t, b, c, fi.DeliveryComplete, true)
}

// TestMaxPeers shows that every setting that the configuration takes can be
// opened.
func TestMaxPeers(t *testing.T) {
	load := func(v string) (*config.Config, error) {
		return config.Load(func(name string) (string, bool) { return v, name == "FI_WEFT_MAX_PEERS" })
	}
	if _, err := load("65535"); err == nil {
		t.Error("65535 is accepted")
	}
	c, err := load("65534")
	if err != nil || c.MaxPeers != loopback.MaxAttach {
		t.Fatalf("%v, %v", c, err)
	}
	b := newBench(t, func(own *config.Config) { own.MaxPeers = c.MaxPeers }, nil)
	a, o := b.pair(t)
	swap(t, a, o, 0, true)
}
