package backends

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/provider/names"
)

// endpoint is one on a loopback address of this host, with a configuration that change makes of the default one.
func endpoint(t *testing.T, change func(*config.Config)) *Endpoint {
	t.Helper()
	c := *config.Default()
	c.SHMDir, c.SHMAcross, c.Verbs, c.CXI = t.TempDir(), config.No, config.No, config.No
	if change != nil {
		change(&c)
	}
	s, n, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &Endpoint{Config: &c, Device: NewDevice(&c, "lo", "", false, order.Word{}), Name: n, Socket: s, Stripes: 2}
}

// local opens the transport to peers on this host.
func local(t *testing.T, e *Endpoint, o LocalOptions) Local {
	t.Helper()
	o.Here, o.BounceCount = func(netip.Addr) bool { return true }, 16
	i, err := e.OpenLocal(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// TestLocal: endpoints of one folder reach each other, but one that shares no memory with peers has no name there; a
// name is one endpoint's at a time.
func TestLocal(t *testing.T) {
	a := endpoint(t, nil)
	b := endpoint(t, func(c *config.Config) { *c = *a.Config })
	i := local(t, a, LocalOptions{})
	if _, err := i.Connect(b.address()); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect before the peer is there: %v", err)
	}
	local(t, b, LocalOptions{})
	if _, err := i.Connect(b.address()); err != nil {
		t.Errorf("connect: %v", err)
	}
	if again, err := a.OpenLocal(&LocalOptions{BounceCount: 16}); err == nil {
		t.Errorf("two endpoints of a name: %v", again.Close())
	}
	apart := endpoint(t, func(c *config.Config) { *c = *a.Config })
	apart.Apart = true
	local(t, apart, LocalOptions{})
	if _, err := i.Connect(apart.address()); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect to one that is apart: %v", err)
	}
}

// TestPublished: an interface has the memory domain where regions are published, or one of its own.
func TestPublished(t *testing.T) {
	m := NewMemoryDomain()
	defer m.Close()
	if i := local(t, endpoint(t, nil), LocalOptions{Published: m, Collectives: true}); i.Memory() != m {
		t.Error("regions are published elsewhere")
	}
	for _, collectives := range []bool{false, true} {
		if i := local(t, endpoint(t, nil), LocalOptions{Collectives: collectives}); i.Memory() == m {
			t.Errorf("collectives %v: regions that are not for peers are published", collectives)
		}
	}
}

// TestNetworks: which transports to other hosts an endpoint has.
func TestNetworks(t *testing.T) {
	other := names.New(netip.MustParseAddr("192.0.2.1"), 7)
	for _, c := range []struct {
		what   string
		change func(*config.Config)
		apart  bool
		name   names.Name // zero: on loopback
		want   int
		err    error
	}{
		{what: "loopback"},
		{what: "loopback, shares no memory", apart: true, want: 1},
		{what: "loopback with FI_WEFT_UDP", change: func(c *config.Config) { c.UDP = config.Yes }, want: 1},
		{what: "another address", name: other, want: 1},
		{what: "without FI_WEFT_UDP", change: func(c *config.Config) { c.UDP = config.No }, apart: true, name: other},
		{what: "no device", change: func(c *config.Config) {
			c.Verbs, c.VerbsDevice = config.Yes, "nosuch"
		}, name: other, err: fi.ENODEV},
	} {
		e := endpoint(t, c.change)
		e.Apart = c.apart
		if !c.name.IsZero() {
			e.Name = c.name
		}
		n, err := e.OpenNetworks()
		if c.err != nil {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if err != nil || len(n.Ifaces) != c.want || n.Unbelled {
			t.Fatalf("%s: %+v, %v", c.what, n, err)
		}
		for _, i := range n.Ifaces {
			if err := i.Close(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		if err := n.Names.Close(); err != nil {
			t.Errorf("%s: names: %v", c.what, err)
		}
	}
}

// TestMapper: contexts of a scalable endpoint have an interface each behind one socket, and are answered for together.
func TestMapper(t *testing.T) {
	e := endpoint(t, func(c *config.Config) { c.UDP = config.Yes })
	e.Mapper = NewMapper(e.Socket, 0)
	for context := range uint8(2) {
		own := *e
		own.Context = context
		n, err := own.OpenNetworks()
		if err != nil || len(n.Ifaces) != 1 {
			t.Fatalf("context %d: %+v, %v", context, n, err)
		}
		defer n.Names.Close()
		defer n.Ifaces[0].Close()
	}
	if err := e.Mapper.Close(); err != nil {
		t.Error(err)
	}
	if err := NewMapper(e.Socket, 0).Close(); err != nil {
		t.Errorf("one that was not needed: %v", err)
	}
}

// TestList: each transport is said to be usable, or why it is not.
func TestList(t *testing.T) {
	c := endpoint(t, func(c *config.Config) { c.UDP = config.No }).Config
	list := List(c)
	if len(list) != 4 || list[0].Name != "shm" || list[3].Name != "udp" {
		t.Fatalf("%+v", list)
	}
	if list[0].Err != nil || list[0].Attr.MaxAMShort == 0 {
		t.Errorf("shared memory: %+v", list[0])
	}
	for _, b := range list[1:] {
		if b.Err == nil || b.Reaches != "peers on other hosts" {
			t.Errorf("%s is not wanted: %+v", b.Name, b)
		}
	}
}
